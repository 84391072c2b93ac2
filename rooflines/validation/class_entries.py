"""Entries of a calibration for the classes of rooflines.validation.class_fits, with held-out residuals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rooflines.costs.cost import Operator
from rooflines.errors import CannotTellError
from rooflines.hardware.calibration import (
    ANY,
    LeftOutRows,
    OperatorClass,
    OperatorConstants,
    Provenance,
)
from rooflines.hardware.profile import HardwareProfile
from rooflines.timing.forms import NARROW_QUERY_ROWS
from rooflines.validation.class_fits import fit_class, form_for, held_out_s, predicted_s, with_constants
from rooflines.validation.class_forms import FITTED
from rooflines.validation.kernel_tables.rows import KernelRows, LeftOut
from rooflines.validation.residuals import residuals

Key = tuple[OperatorClass, str, str]


def entry_key(operator: Operator) -> Key:
    """Class, arithmetic and storage under which a calibration keeps constants of an operator."""
    if operator.kind in ("collective", "small"):
        return operator.kind, ANY, ANY
    return operator.kind, operator.arithmetic, operator.storage


class Fitted(NamedTuple):
    """What was fitted, and why the rest was not."""

    entries: tuple[OperatorConstants, ...]
    refused: tuple[str, ...]


def class_entries(
    rows: Iterable[KernelRows],
    left_out: Iterable[LeftOut],
    files: Sequence[str],
    profile: HardwareProfile,
) -> Fitted:
    """Fit every class of one device and stack that has a form here; other classes are passed over.

    Args:
        rows: used rows of one device and stack.
        left_out: what was not used of them.
        files: names of the tables they are from.
        profile: the device.

    Returns:
        One entry for each class, arithmetic and storage, and the refusals of those that the rows cannot
        separate, which say what to add.
    """
    together: dict[Key, list[KernelRows]] = {}
    for one in rows:
        if one.group.operator in FITTED:
            together.setdefault(entry_key(one.operators[0]), []).append(one)
    not_used = tuple(left_out)
    entries, refused = [], []
    for key in sorted(together):
        try:
            entries.append(_entry(key, together[key], not_used, files, profile))
        except CannotTellError as error:
            refused.append(f"{together[key][0].group}: {error}")
    return Fitted(tuple(entries), tuple(refused))


def _entry(
    key: Key,
    rows: Sequence[KernelRows],
    left_out: Sequence[LeftOut],
    files: Sequence[str],
    profile: HardwareProfile,
) -> OperatorConstants:
    constants = fit_class(rows, profile)
    operator, arithmetic, storage = key
    dtypes = {one.group.dtype for one in rows}
    counted: dict[str, int] = {}
    for one in left_out:
        if one.group.operator == operator and one.group.dtype in dtypes:
            counted[one.reason] = counted.get(one.reason, 0) + one.rows
    machine = with_constants(profile, constants)
    shapes = sorted({str(shape) for one in rows for shape in one.shape})
    return OperatorConstants(
        operator=operator,
        arithmetic=arithmetic,
        storage=storage,
        form=form_for(rows, profile).name,
        constants=constants,
        provenance=Provenance(
            basis="measured",
            stack=rows[0].group.stack,
            files=tuple(files),
            rows=sum(len(one.measured_s) for one in rows),
            shapes=len(shapes),
            shape_names=tuple(shapes),
            left_out=tuple(LeftOutRows(reason=reason, rows=count) for reason, count in counted.items()),
            note=_note(rows),
        ),
        residuals=residuals(
            np.concatenate([one.shape for one in rows]),
            np.concatenate([one.region for one in rows]),
            np.concatenate([one.measured_s for one in rows]),
            np.concatenate(held_out_s(rows, profile)),
            np.concatenate([predicted_s(one, machine) for one in rows]),
        ),
    )


def _note(rows: Sequence[KernelRows]) -> str:
    """What the rows do not tell about a class."""
    if rows[0].group.operator != "decode_attention":
        return ""
    widest = max(float(np.max(one.operators[0].query_rows)) for one in rows)
    return (
        f"one new position and up to {widest:g} query rows per kv head: a verify pass with more than "
        f"{NARROW_QUERY_ROWS:g} is not measured, and taken as equal"
    )
