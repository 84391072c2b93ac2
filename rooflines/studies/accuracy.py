"""How accurate predicted times are: tables of measured kernels, judged by what was never fitted to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import CannotTellError, FileFormatError
from rooflines.hardware.calibration_files import calibrations_of
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.constants import Constants
from rooflines.timing.machine import textbook_machine
from rooflines.validation.class_fits import fit_class, predicted_s, with_constants
from rooflines.validation.class_forms import WAVES
from rooflines.validation.held_out import ends_of_others, held_out_judged
from rooflines.validation.judge import PREMIUM_REGIONS, Judged, Verdict, judge_times, verdicts
from rooflines.validation.judge_tables import judge_table
from rooflines.validation.kernel_tables.read import read_kernel_table
from rooflines.validation.kernel_tables.rows import KernelRows, KernelTable, LeftOut

Floats = NDArray[np.float64]
_LAST_POSITION: Final = PREMIUM_REGIONS[-1][0]
# A table and an additive model are made of every other row, and judged on those between.
_FEWEST_POSITIONS: Final = 8
# Fewer shapes do not show how tiles fill a device.
_SHAPES_FOR_TILES: Final = 6
MODELS: Final = ("plain roofline", "roofline", "additive", "table")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What a report of accuracy rests on.

    Attributes:
        files: names of the tables.
        kernels: single kernels, each predicted by constants fitted on other shapes.
        layers: layers and their verify premiums, predicted by the calibrations that ship.
        transferred: 16-bit products, each predicted by medians of the other devices' constants.
        left_out: rows that were not used, with reasons.
        verify_models: error of four models of a verify pass by layer and width, as columns.
    """

    files: tuple[str, ...]
    kernels: tuple[Judged, ...]
    layers: tuple[Judged, ...]
    transferred: tuple[Judged, ...]
    left_out: tuple[LeftOut, ...]
    verify_models: dict[str, list[Any]]


def study_accuracy(folder: Path) -> Accuracy:
    """Judge all tables of kernels in a folder.

    Args:
        folder: CSV files; those that are no tables of kernels are passed over.

    Raises:
        CannotTellError: no file is a table of kernels.
    """
    tables = kernel_tables(folder)
    layers = [one for table in tables for one in _layers(table)]
    return Accuracy(
        files=tuple(table.file for table in tables),
        kernels=tuple(held_out_judged([_only(table, _is_kernel) for table in tables])),
        layers=tuple(layers),
        transferred=tuple(transferred(tables)),
        left_out=tuple(one for table in tables for one in table.left_out),
        verify_models=verify_models(layers),
    )


def kernel_tables(folder: Path) -> tuple[KernelTable, ...]:
    """All tables of kernels in a folder, by name.

    Raises:
        CannotTellError: there is none.
    """
    tables = []
    for path in sorted(folder.glob("*.csv")):
        try:
            tables.append(read_kernel_table(path))
        except FileFormatError:
            continue
    if not tables:
        raise CannotTellError(
            f"no table of measured kernels in {folder}: name the folder that has them (ROOFLINES_DATA)"
        )
    return tuple(tables)


def _layers(table: KernelTable) -> list[Judged]:
    """Layers by the shipped calibrations; those of Vidur by that of another stack of the device."""
    judged: list[Judged] = []
    for rows in table.groups:
        if rows.group.operator == "layer":
            others = [one for one in calibrations_of(rows.group.device) if one.stack != rows.group.stack]
            name = others[0].name if rows.group.engine == "vidur" and others else "auto"
            judged += judge_table(KernelTable(table.file, table.kind, (rows,), ()), name)
    return judged


def _only(table: KernelTable, wanted: Callable[[KernelRows], bool]) -> KernelTable:
    return KernelTable(table.file, table.kind, tuple(filter(wanted, table.groups)), table.left_out)


def _is_kernel(rows: KernelRows) -> bool:
    """Single kernels of the engines that calibrations are fitted to."""
    return rows.group.operator != "layer" and rows.group.engine != "vidur"


def transferred(tables: Iterable[KernelTable]) -> list[Judged]:
    """16-bit products of every device, by the median constants of all the other devices.

    Ends of an interval are made of the errors of the other devices, each left out in turn.
    """
    groups = [
        (rows, table.file)
        for table in tables
        for rows in table.groups
        if rows.group.operator == "linear" and rows.group.dtype == "bf16" and _is_kernel(rows)
    ]
    fitted = {
        rows.group: fit_class([rows], load_hardware(rows.group.device), WAVES)
        for rows, _ in groups
        if len(np.unique(rows.shape)) >= _SHAPES_FOR_TILES
    }
    times: list[tuple[KernelRows, str, Floats]] = []
    for rows, file in groups:
        others = [one for group, one in fitted.items() if group.device != rows.group.device]
        if others:
            machine = with_constants(load_hardware(rows.group.device), median_constants(others))
            times.append((rows, file, predicted_s(rows, machine)))
    return [_transferred(*one, ends) for one, ends in zip(times, _device_ends(times), strict=True)]


def _device_ends(times: Sequence[tuple[KernelRows, str, Floats]]) -> Iterator[tuple[Floats, Floats]]:
    """Ends of ln(measured / predicted) for the rows of each group, out of the groups of other devices."""
    if not times:
        return
    low, high = ends_of_others(
        np.concatenate([np.log(rows.measured_s / predicted) for rows, _, predicted in times]),
        np.concatenate([np.full(len(rows.region), rows.group.device) for rows, _, _ in times]),
        np.concatenate([rows.region for rows, _, _ in times]),
    )
    first = 0
    for rows, _, _ in times:
        own = slice(first, first + len(rows.region))
        first += len(rows.region)
        yield low[own], high[own]


def _transferred(rows: KernelRows, file: str, predicted: Floats, ends: tuple[Floats, Floats]) -> Judged:
    low, high = ends
    return judge_times(
        rows,
        file,
        predicted_s=predicted,
        plain_s=predicted_s(rows, textbook_machine(load_hardware(rows.group.device))),
        interval_s=(predicted * np.exp(low), predicted * np.exp(high)),
        in_sample=np.zeros(len(predicted), dtype=bool),
        basis="medians of the other devices",
    )


def median_constants(given: Sequence[Constants]) -> Constants:
    """Median of each constant of products cut into tiles."""
    middle = {name: float(np.median([getattr(one, name) for one in given])) for name in WAVES.free}
    return Constants(**middle, **dict(WAVES.fixed))


def verify_models(layers: Iterable[Judged]) -> dict[str, list[Any]]:
    """Median error of four models of a verify pass of one layer, by group and width.

    The plain and the calibrated roofline predict; the additive model (a fixed time and one per position) and
    the table (times between measured widths, interpolated) are made of every other width of the same layer,
    so they need that layer measured. All four are judged on the widths between.

    Returns:
        Columns `device`, `engine`, `dtype`, `region`, `rows`, and one of median errors a model.
    """
    columns: dict[str, list[Any]] = {name: [] for name in ("device", "engine", "dtype", "region", "rows")}
    columns |= {name: [] for name in MODELS}
    for times in layers:
        if times.quantity != "time":
            continue
        errors, widths = _model_errors(times)
        first = 1.0
        for last, name in PREMIUM_REGIONS:
            here = (widths > first) & (widths <= last)
            first = last
            if not here.any():
                continue
            group = times.group
            for column, value in zip(
                ("device", "engine", "dtype", "region", "rows"),
                (group.device, group.engine, group.dtype, name, int(here.sum())),
                strict=True,
            ):
                columns[column].append(value)
            for model in MODELS:
                columns[model].append(float(np.median(np.abs(errors[model][here]))))
    return columns


def _model_errors(times: Judged) -> tuple[dict[str, Floats], Floats]:
    """Errors of each model on every other width of each layer, and these widths."""
    found: dict[str, list[Floats]] = {model: [] for model in MODELS}
    widths: list[Floats] = []
    for shape in np.unique(times.shape):
        rows = np.flatnonzero((times.shape == shape) & (times.size <= _LAST_POSITION))
        rows = rows[np.argsort(times.size[rows], kind="stable")]
        kept, judged = rows[::2], rows[1:-1:2]
        if len(rows) < _FEWEST_POSITIONS:
            continue
        measured = times.measured[judged]
        values = {
            "plain roofline": times.plain[judged],
            "roofline": times.predicted[judged],
            "additive": _additive(times.size[kept], times.measured[kept], times.size[judged]),
            "table": np.interp(times.size[judged], times.size[kept], times.measured[kept]),
        }
        for model, value in values.items():
            found[model].append(value / measured - 1.0)
        widths.append(times.size[judged])
    empty = [np.zeros(0)]
    return {model: np.concatenate(parts or empty) for model, parts in found.items()}, np.concatenate(
        widths or empty
    )


def _additive(widths: Floats, measured: Floats, wanted: Floats) -> Floats:
    """A + b n with the least relative squares."""
    matrix = np.stack([np.ones(len(widths)), widths], axis=1) / measured[:, None]
    fixed, each = np.linalg.lstsq(matrix, np.ones(len(widths)), rcond=None)[0]
    return np.asarray(fixed + each * wanted)


def kernel_verdicts(found: Accuracy) -> tuple[Verdict, ...]:
    """Errors of held-out kernels by group and region."""
    return verdicts(found.kernels)
