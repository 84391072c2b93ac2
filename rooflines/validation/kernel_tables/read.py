"""Reads a table of measured kernels; what it lists is told by its columns, never by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.errors import FileFormatError, MissingPeakError
from rooflines.hardware.profile import HardwareProfile
from rooflines.validation.kernel_tables.attention import ATTENTION_KINDS
from rooflines.validation.kernel_tables.cells import LINE, read_cells, read_numbers
from rooflines.validation.kernel_tables.collective import COLLECTIVE_KINDS
from rooflines.validation.kernel_tables.kind import Context, Kind, column
from rooflines.validation.kernel_tables.linear import LINEAR_KINDS
from rooflines.validation.kernel_tables.moe import MOE_KINDS
from rooflines.validation.kernel_tables.names import find_device, format_of
from rooflines.validation.kernel_tables.rows import Group, KernelRows, KernelTable, LeftOut, Texts
from rooflines.validation.kernel_tables.sisters import without_odd_shapes
from rooflines.validation.kernel_tables.small import SMALL_KINDS

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final = (*LINEAR_KINDS, *ATTENTION_KINDS, *MOE_KINDS, *COLLECTIVE_KINDS, *SMALL_KINDS)
# No table has such columns.
_UNREAD: Final = "not read for"
_SCREENED: Final = "left out for"
_MICRO: Final = 1e-6


def read_kernel_table(path: Path | str) -> KernelTable:
    """Read a CSV file of kernel timings.

    Args:
        path: a file with the columns of one of the kinds (docs/validation.md lists them); further columns
            are not read.

    Returns:
        Its rows by group, and what was left out with reasons.

    Raises:
        FileFormatError: the file is missing, is no CSV, has the columns of no kind, or has no rows.
    """
    path = Path(path)
    frame = read_cells(path)
    kinds = [kind for kind in KINDS if set(kind.columns) <= set(frame.columns)]
    if not kinds:
        raise FileFormatError(f"{path}: {_missing(frame.columns)}")
    if frame.empty:
        raise FileFormatError(f"{path}: the table has no rows")
    groups: list[KernelRows] = []
    left_out: list[LeftOut] = []
    device = cache(find_device)  # groups are many, devices few
    for kind in kinds:
        numbered = _numbers(frame, kind)
        for group, rows in _groups(numbered, kind):
            read, others = _read_group(group, rows, kind, device(group.device))
            groups += read
            left_out += others
    used, odd = without_odd_shapes(groups)
    return KernelTable(path.name, kinds[0].name, used, (*left_out, *odd))


def _missing(columns: Iterable[str]) -> str:
    """Say which columns the nearest kind of table would need."""
    given = set(columns)
    nearest = max(KINDS, key=lambda kind: len(given & set(kind.columns)) / len(kind.columns))
    lacking = [name for name in nearest.columns if name not in given]
    if len(lacking) * 2 > len(nearest.columns):
        known = ", ".join(dict.fromkeys(kind.name for kind in KINDS))
        return f"its columns are those of no table of kernels; known are {known} (docs/validation.md)"
    return f"its columns are nearest to those of {nearest.name}, but lack {', '.join(lacking)}"


def _numbers(frame: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """The frame with the columns of numbers as numbers, and why rows cannot be used ('' where they can)."""
    numbers, unread = read_numbers(frame, kind.numbers, kind.time)
    frame = frame.assign(**numbers)
    frame[_UNREAD], frame[_SCREENED] = unread, ""
    readable = unread == ""
    if kind.screen is not None and readable.any():
        frame.loc[readable, _SCREENED] = kind.screen(frame[readable])
    return frame


def _groups(frame: pd.DataFrame, kind: Kind) -> Iterator[tuple[Group, pd.DataFrame]]:
    fixed = {
        "device": kind.device,
        "engine": kind.engine,
        "version": "engine_version",
        "kernel": kind.kernel,
        "dtype": kind.dtype,
    }
    keys = [name for name in (*fixed.values(), *kind.variants) if name in frame.columns]
    for values, rows in frame.groupby(list(dict.fromkeys(keys)), sort=True, dropna=False):
        found = dict(zip(dict.fromkeys(keys), values, strict=True))
        named = {
            field: name.removeprefix("=") if name.startswith("=") else str(found.get(name, ""))
            for field, name in fixed.items()
        }
        variant = " ".join(
            part for part in (kind.variant, *(_variant(name, found[name]) for name in kind.variants)) if part
        )
        yield Group(operator=kind.operator, variant=variant, **named), rows


def _variant(name: str, value: object) -> str:
    if name in ("num_gpus", "num_workers"):
        return f"{float(str(value)):g} devices"
    return str(value)


def _read_group(
    group: Group, frame: pd.DataFrame, kind: Kind, profile: HardwareProfile | str
) -> tuple[tuple[KernelRows, ...], tuple[LeftOut, ...]]:
    if isinstance(profile, str):
        return (), (LeftOut(group, profile, _lines(frame)),)
    group = Group(**{**_fields(group), "device": profile.id})
    storage = format_of(group.dtype)
    if storage is None:
        return (), (LeftOut(group, f"dtype {group.dtype!r} is not known", _lines(frame)),)
    group = Group(**{**_fields(group), "dtype": storage.name})
    context = Context(profile, storage)
    left_out = _by_reason(group, frame, np.asarray(frame[_UNREAD], dtype=np.str_))
    used = frame[frame[_UNREAD] == ""]
    try:
        if len(used):
            screened = np.asarray(used[_SCREENED], dtype=np.str_)
            why = np.where(screened != "", screened, kind.leave_out(used, context))
            left_out += _by_reason(group, used, why)
            used = used[why == ""]
        if used.empty:
            return (), left_out
        described = kind.describe(used, context)
        for operator in described.operators:
            if np.any(operator.cost.matmul_flops):
                profile.peak_flop_per_s(operator.arithmetic)
    except MissingPeakError as error:
        return (), (*left_out, LeftOut(group, str(error), _lines(used)))
    rows = KernelRows(
        group,
        described.operators,
        column(used, kind.time) * _MICRO,
        described.shape,
        described.region,
        described.size,
        np.asarray(used[LINE], dtype=np.int64),
    )
    return (rows,), left_out


def _by_reason(group: Group, frame: pd.DataFrame, why: Texts) -> tuple[LeftOut, ...]:
    """Rows of a group that have a reason to be left out, by reason."""
    found = np.unique(why[why != ""])
    return tuple(LeftOut(group, str(reason), _lines(frame[why == reason])) for reason in found)


def _lines(frame: pd.DataFrame) -> tuple[int, ...]:
    return tuple(map(int, frame[LINE]))


def _fields(group: Group) -> dict[str, str]:
    return {name: getattr(group, name) for name in group.__slots__}
