"""Predicts every row of kernel tables without fitting to it, and says how right that was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import CannotTellError
from rooflines.rows import Columns, as_records
from rooflines.timing.machine import textbook_machine
from rooflines.validation.choose import Chosen, choose, estimate, in_sample, interval_s
from rooflines.validation.class_fits import predicted_s
from rooflines.validation.judge import Judged, Verdict, judge_times, premiums, verdicts
from rooflines.validation.kernel_tables.read import read_kernel_table
from rooflines.validation.kernel_tables.rows import Group, KernelRows, KernelTable, LeftOut
from rooflines.validation.left_out import with_left_out

SCHEMA_VERSION: Final = 1
_GROUP: Final = ("device", "engine", "version", "kernel", "operator", "dtype", "variant")
_ROW: Final = ("file", "line", *_GROUP, "quantity", "region", "shape")


@dataclass(frozen=True, slots=True)
class Validation:
    """Predictions beside measurements.

    Attributes:
        calibration: what was asked for.
        tables: what was read.
        judged: every used row, by group.
        verdicts: errors by group and region.
    """

    calibration: str
    tables: tuple[KernelTable, ...]
    judged: tuple[Judged, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(table.file for table in self.tables)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Rows that were not used, with reasons."""
        return tuple(one for table in self.tables for one in table.left_out)


def validate_kernels(paths: Iterable[Path], calibration: str | Path = "auto") -> Validation:
    """Read tables and judge every row of them.

    Args:
        paths: CSV files.
        calibration: see rooflines.validation.choose.choose.

    Raises:
        FileFormatError: a file is no table of kernels.
        UnknownNameError: no such calibration.
        CannotTellError: no row can be judged.
    """
    tables = tuple(read_kernel_table(path) for path in paths)
    judged = tuple(one for table in tables for one in judge_table(table, calibration))
    found = Validation(str(calibration), tables, judged, verdicts(judged))
    if not judged:
        reasons = dict.fromkeys(one.reason for one in found.left_out)
        raise CannotTellError(f"no row can be judged: {'; '.join(list(reasons)[:3])}")
    return found


def judge_table(table: KernelTable, calibration: str | Path = "auto") -> list[Judged]:
    """Times of every group of a table beside their predictions, and premiums of its layers."""
    judged = []
    for rows in table.groups:
        chosen = choose(rows, calibration)
        times = judge_times(
            rows,
            table.file,
            predicted_s=predicted_s(rows, chosen.machine),
            plain_s=predicted_s(rows, textbook_machine(chosen.machine.profile)),
            interval_s=interval_s(rows, chosen),
            in_sample=in_sample(rows, chosen),
            basis=chosen.basis,
            errors=_errors(rows, chosen),
        )
        judged.append(times)
        premium = premiums(times) if rows.group.operator == "layer" else None
        judged += [premium] if premium is not None else []
    return judged


def _errors(rows: KernelRows, chosen: Chosen) -> dict[str, NDArray[np.float64]]:
    """Errors by cause (N each) of rows of several kernels; those of single kernels have ends of their own."""
    if len(rows.operators) == 1:
        return {}
    errors = estimate(rows, chosen).errors
    return {cause: np.broadcast_to(log_sd, len(rows.measured_s)) for cause, log_sd in errors.items()}


def verdict_columns(found: Sequence[Verdict]) -> dict[str, list[Any]]:
    """Verdicts as a table; errors are fractions."""
    columns: dict[str, list[Any]] = {name: [getattr(one.group, name) for one in found] for name in _GROUP}
    for name in (
        "quantity",
        "region",
        "rows",
        "in_sample_rows",
        "median_abs_error",
        "p90_abs_error",
        "bias",
        "coverage",
        "plain_median_abs_error",
        "basis",
    ):
        columns[name] = [getattr(one, name) for one in found]
    return columns


def left_out_columns(found: Sequence[LeftOut]) -> dict[str, list[Any]]:
    """What was left out, as a table; rows of one group and reason are added up."""
    counted: dict[tuple[Group, str], int] = {}
    for one in found:
        counted[one.group, one.reason] = counted.get((one.group, one.reason), 0) + one.rows
    columns: dict[str, list[Any]] = {name: [getattr(group, name) for group, _ in counted] for name in _GROUP}
    return columns | {"rows": list(counted.values()), "reason": [reason for _, reason in counted]}


def row_columns(found: Validation) -> Columns:
    """Every row with its prediction, or with the reason why it has none.

    Times are in seconds, premiums are ratios. A line of several operators or quantities has a row for each.
    """
    unused: Columns = {name: [] for name in ("file", "line", *_GROUP)}
    reasons: list[str] = []
    for table in found.tables:
        for one in table.left_out:
            reasons += [one.reason] * one.rows
            unused["file"] += [table.file] * one.rows
            unused["line"] += one.lines
            for name in _GROUP:
                unused[name] += [getattr(one.group, name)] * one.rows
    return with_left_out(_used_columns(found.judged), unused, reasons)


def _used_columns(judged: Sequence[Judged]) -> Columns:
    columns: Columns = {name: [] for name in _ROW}
    numbers = ("size", "measured", "predicted", "low", "high", "plain", "in_sample")
    columns |= {name: [] for name in numbers}
    for one in judged:
        count = len(one.measured)
        columns["file"] += [one.file] * count
        columns["quantity"] += [one.quantity] * count
        for name in _GROUP:
            columns[name] += [getattr(one.group, name)] * count
        for name in ("line", "region", "shape", *numbers):
            columns[name] += getattr(one, name).tolist()
    return columns


def document(found: Validation) -> dict[str, Any]:
    """The result for machines (docs/schemas/validate-kernels.schema.json)."""
    return {
        "schema_version": SCHEMA_VERSION,
        "calibration": found.calibration,
        "files": list(found.files),
        "rows_used": int(sum(len(one.measured) for one in found.judged if one.quantity == "time")),
        "rows_left_out": sum(one.rows for one in found.left_out),
        "groups": as_records(verdict_columns(found.verdicts)),
        "left_out": as_records(left_out_columns(found.left_out)),
    }
