"""Reads a table of measured kernels; what it lists is told by its columns, never by its name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.errors import FileFormatError, MissingPeakError
from rooflines.validation.kernel_tables.attention import ATTENTION_KINDS
from rooflines.validation.kernel_tables.collective import COLLECTIVE_KINDS
from rooflines.validation.kernel_tables.kind import Context, Kind, column
from rooflines.validation.kernel_tables.linear import LINEAR_KINDS
from rooflines.validation.kernel_tables.moe import MOE_KINDS
from rooflines.validation.kernel_tables.names import device_of, format_of
from rooflines.validation.kernel_tables.rows import Group, KernelRows, KernelTable, LeftOut
from rooflines.validation.kernel_tables.sisters import without_odd_shapes
from rooflines.validation.kernel_tables.small import SMALL_KINDS

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final = (*LINEAR_KINDS, *ATTENTION_KINDS, *MOE_KINDS, *COLLECTIVE_KINDS, *SMALL_KINDS)
_SCREENED: Final = "left out for"  # no table has such a column
_HEADER: Final = 2  # the first row of values is line 2 of its file
_MICRO: Final = 1e-6


def read_kernel_table(path: Path | str) -> KernelTable:
    """Read a CSV file of kernel timings.

    Args:
        path: a file with the columns of one of the kinds (docs/validation.md lists them); further columns
            are not read.

    Returns:
        Its rows by group, and what was left out with reasons.

    Raises:
        FileFormatError: the file is missing, is no CSV, has the columns of no kind, or a cell of a number
            holds none.
    """
    path = Path(path)
    frame = _frame(path)
    kinds = [kind for kind in KINDS if set(kind.columns) <= set(frame.columns)]
    if not kinds:
        raise FileFormatError(f"{path}: {_missing(frame.columns)}")
    if frame.empty:
        raise FileFormatError(f"{path}: the table has no rows")
    groups: list[KernelRows] = []
    left_out: list[LeftOut] = []
    for kind in kinds:
        numbered = _numbers(frame, kind, path)
        for group, rows in _groups(numbered, kind):
            read, others = _read_group(group, rows, kind)
            groups += read
            left_out += others
    used, odd = without_odd_shapes(groups)
    return KernelTable(path.name, kinds[0].name, used, (*left_out, *odd))


def _frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # A row that is longer than the header is warned of, and cut.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False)
    except OSError as error:
        raise FileFormatError(f"kernel table {path} cannot be read: {error.strerror or error}") from None
    except (ValueError, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise FileFormatError(f"kernel table {path} is not a CSV file: {reason}") from None


def _missing(columns: Iterable[str]) -> str:
    """Say which columns the nearest kind of table would need."""
    given = set(columns)
    nearest = max(KINDS, key=lambda kind: len(given & set(kind.columns)) / len(kind.columns))
    lacking = [name for name in nearest.columns if name not in given]
    if len(lacking) * 2 > len(nearest.columns):
        known = ", ".join(dict.fromkeys(kind.name for kind in KINDS))
        return f"its columns are those of no table of kernels; known are {known} (docs/validation.md)"
    return f"its columns are nearest to those of {nearest.name}, but lack {', '.join(lacking)}"


def _numbers(frame: pd.DataFrame, kind: Kind, path: Path) -> pd.DataFrame:
    """The frame with the columns of numbers as numbers."""
    import pandas as pd

    frame = frame.copy()
    frame["line"] = np.arange(len(frame)) + _HEADER
    for name in (*kind.numbers, kind.time):
        values = pd.to_numeric(frame[name], errors="coerce")
        bad = np.flatnonzero(~np.isfinite(values.to_numpy(dtype=float)))
        if len(bad):
            row = int(bad[0])
            raise FileFormatError(
                f"{path}: line {row + _HEADER}, column {name}: {frame[name].iloc[row]!r} is not a number"
                + (f" (and {len(bad) - 1} more rows)" if len(bad) > 1 else "")
            )
        frame[name] = values
    frame[_SCREENED] = kind.screen(frame) if kind.screen is not None else ""
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
    group: Group, frame: pd.DataFrame, kind: Kind
) -> tuple[tuple[KernelRows, ...], tuple[LeftOut, ...]]:
    profile, storage = device_of(group.device), format_of(group.dtype)
    if profile is None:
        return (), (LeftOut(group, f"device {group.device!r} is in no profile", len(frame)),)
    group = Group(**{**_fields(group), "device": profile.id})
    if storage is None:
        return (), (LeftOut(group, f"dtype {group.dtype!r} is not known", len(frame)),)
    group = Group(**{**_fields(group), "dtype": storage.name})
    possible = np.all([column(frame, name) > 0 for name in (*kind.numbers, kind.time)], axis=0)
    left_out = [LeftOut(group, "a size or time is not above zero", int(np.count_nonzero(~possible)))]
    frame = frame[possible]
    context = Context(profile, storage)
    used = frame
    if len(frame):
        try:
            screened = np.asarray(frame[_SCREENED], dtype=np.str_)
            why = np.where(screened != "", screened, kind.leave_out(frame, context))
        except MissingPeakError as error:
            return (), (LeftOut(group, str(error), len(frame)), *_some(left_out))
        left_out += [LeftOut(group, str(one), int(np.sum(why == one))) for one in np.unique(why) if one]
        used = frame[why == ""]
    if used.empty:
        return (), _some(left_out)
    described = kind.describe(used, context)
    rows = KernelRows(
        group,
        described.operators,
        column(used, kind.time) * _MICRO,
        described.shape,
        described.region,
        described.size,
        np.asarray(used["line"], dtype=np.int64),
    )
    return (rows,), _some(left_out)


def _some(left_out: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    return tuple(one for one in left_out if one.rows)


def _fields(group: Group) -> dict[str, str]:
    return {name: getattr(group, name) for name in group.__slots__}
