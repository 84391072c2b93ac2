"""Calibrations as tables: constants with what they rest on, and the errors of shapes held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from rooflines.hardware.calibration import Calibration, OperatorConstants
from rooflines.hardware.constants import TEXTBOOK, Constants
from rooflines.output.tables import render
from rooflines.rows import Columns, as_columns, as_records
from rooflines.units import format_quantity

if TYPE_CHECKING:
    from rooflines.validation.calibrate import Calibrated

SCHEMA_VERSION: Final = 1
_FOR_PEOPLE: Final = ("text", "markdown")


def constants_columns(listed: Sequence[Calibration], *, people: bool) -> Columns:
    """One row for each entry: what was fitted, and what it rests on."""
    return as_columns(_constants_row(one, entry, people=people) for one in listed for entry in one.operators)


def _constants_row(one: Calibration, entry: OperatorConstants, *, people: bool) -> dict[str, Any]:
    provenance = entry.provenance
    row: dict[str, Any] = {
        "calibration": one.name,
        "operator": entry.operator,
        "arithmetic": entry.arithmetic,
        "storage": entry.storage,
        "form": entry.form,
        "basis": provenance.basis,
        "stack": provenance.stack,
        "rows": provenance.rows,
        "shapes": provenance.shapes,
    }
    if people:
        return {**row, "constants": constants_words(entry.constants)}
    constants = {field.name: getattr(entry.constants, field.name) for field in fields(Constants)}
    # JSON has no infinity: null is the hard maximum.
    return {**row, **{name: None if math.isinf(value) else value for name, value in constants.items()}}


def constants_words(constants: Constants) -> str:
    """The constants that differ from the textbook, in words."""
    words = []
    for field in fields(Constants):
        value = getattr(constants, field.name)
        if value != getattr(TEXTBOOK, field.name):
            timed = field.name.endswith("_s")
            name = field.name.removesuffix("_s").replace("_", " ")
            words.append(f"{name} {format_quantity(value, 's') if timed else f'{value:.3g}'}")
    return ", ".join(words)


def residual_columns(listed: Sequence[Calibration]) -> Columns:
    """One row for each entry and region: how wrong predictions were; errors are fractions."""
    columns: Columns = {}
    for one in listed:
        for entry in one.operators:
            for residual in entry.residuals:
                row = {
                    "calibration": one.name,
                    "operator": entry.operator,
                    "arithmetic": entry.arithmetic,
                    "storage": entry.storage,
                    "stack": entry.provenance.stack,
                    **residual.model_dump(),
                }
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
    return columns


def left_out_columns(found: Calibrated) -> Columns:
    """One row for each group and reason: what was not fitted to."""
    return {
        "group": [str(one.group) for one in found.left_out],
        "rows": [one.rows for one in found.left_out],
        "reason": [one.reason for one in found.left_out],
    }


def calibrations_report(listed: Sequence[Calibration], fmt: str) -> str:
    """Constants of calibrations, and for people the errors of their predictions."""
    if fmt not in _FOR_PEOPLE:
        return render(constants_columns(listed, people=False), fmt)
    constants = render(constants_columns(listed, people=True), fmt, "Constants")
    return f"{constants}\n\n{render(_percent(residual_columns(listed)), fmt, 'Errors of predictions')}"


def calibration_report(listed: Sequence[Calibration], found: Calibrated, fmt: str) -> str:
    """The constants and the errors of held-out shapes; for people also what was left out and refused."""
    if fmt not in _FOR_PEOPLE:
        return render(residual_columns(listed), fmt)
    parts = [calibrations_report(listed, fmt)]
    if found.left_out:
        parts.append(render(left_out_columns(found), fmt, "Rows left out"))
    if found.refused:
        parts.append("\n".join(["Not fitted:", *(f"- {one}" for one in found.refused)]))
    return "\n\n".join(parts)


def _percent(columns: Columns) -> Columns:
    shares = ("median_abs_error", "p90_abs_error", "bias")
    kept = {
        name: values
        for name, values in columns.items()
        if not name.startswith("log_") and name != "new_shape_factor"
    }
    return {
        name: [f"{100 * value:.1f} %" for value in values] if name in shares else values
        for name, values in kept.items()
    }


def document(listed: Sequence[Calibration], found: Calibrated) -> dict[str, Any]:
    """The result for machines (docs/schemas/calibrate-kernels.schema.json)."""
    return {
        "schema_version": SCHEMA_VERSION,
        "constants": as_records(constants_columns(listed, people=False)),
        "residuals": as_records(residual_columns(listed)),
        "left_out": as_records(left_out_columns(found)),
        "refused": list(found.refused),
    }
