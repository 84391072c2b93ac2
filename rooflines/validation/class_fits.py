"""Fits the constants of operator classes, through the very time form that plans use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import CannotTellError, InputError
from rooflines.hardware.constants import Constants
from rooflines.hardware.profile import HardwareProfile
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import operator_time
from rooflines.validation.class_forms import ClassForm, form_of
from rooflines.validation.kernel_tables.rows import KernelRows

Floats = NDArray[np.float64]
# Errors beyond 10 % count linearly rather than squared, so that a few odd kernels do not steer the fit.
_SOFT_ERROR: Final = 0.1
# Classes of up to so many shapes are judged with each shape held out by itself.
MOST_FOLDS: Final = 16


def predicted_s(rows: KernelRows, machine: Machine) -> Floats:
    """Time (N) that a machine gives for each row: its operators one after another (s)."""
    total = np.zeros(len(rows.measured_s))
    for operator in rows.operators:
        total = total + operator_time(operator, machine).seconds
    return total


def with_constants(profile: HardwareProfile, constants: Constants) -> Machine:
    """A device on which every operator has the same constants."""
    return Machine(profile, lambda _: constants, "one set of constants")


def fit_class(
    groups: Sequence[KernelRows], profile: HardwareProfile, form: ClassForm | None = None
) -> Constants:
    """Constants of one operator class that fit best: least soft-L1 of log(predicted / measured).

    Args:
        groups: rows of one class on one device; groups may differ in routing or number of devices.
        profile: the device.
        form: the time form; None for that of the rows' class.

    Raises:
        InputError: no rows, or rows of several classes.
        CannotTellError: too few rows or shapes to separate the constants.
    """
    from scipy.optimize import least_squares

    if not groups:
        raise InputError("rows of 0 operator classes: constants are fitted class by class")
    form = form or form_for(groups, profile)
    measured = np.concatenate([group.measured_s for group in groups])
    shapes = _shapes(groups)
    if len(measured) <= len(form.free) or len(shapes) < form.fewest_shapes:
        raise CannotTellError(
            f"{len(measured)} row(s) of {len(shapes)} shape(s) do not separate {len(form.free)} constants of "
            f"{groups[0].group.operator}: add {form.advice}"
        )

    def log_errors(logs: Floats) -> Floats:
        machine = with_constants(profile, form.constants(logs))
        predicted = np.concatenate([predicted_s(group, machine) for group in groups])
        return np.asarray(np.log(predicted / measured))

    bounds = list(form.free.values())
    found = least_squares(
        log_errors,
        np.log([one.start for one in bounds]),
        bounds=(np.log([one.lowest for one in bounds]), np.log([one.highest for one in bounds])),
        loss="soft_l1",
        f_scale=_SOFT_ERROR,
    )
    return form.constants(np.asarray(found.x))


def held_out_s(
    groups: Sequence[KernelRows],
    profile: HardwareProfile,
    folds: int = MOST_FOLDS,
    form: ClassForm | None = None,
) -> list[Floats]:
    """Predicted times of each group's rows (s), by constants fitted on rows of other shapes only.

    Rows whose constants cannot be fitted without their shape are NaN: a class with one shape has nothing that
    could be held out.

    Args:
        groups: rows of one class on one device.
        profile: the device.
        folds: parts that the shapes are divided into; no more than there are shapes are made.
        form: the time form; None for that of the rows' class.

    Raises:
        InputError: no rows, rows of several classes, or fewer than two folds.
    """
    if folds < 2:  # noqa: PLR2004 - one part to fit and one to test
        raise InputError(f"folds = {folds}: holding shapes out takes at least 2")
    form = form or form_for(groups, profile)
    # Of three shapes two are left to fit to, which states errors too large rather than not at all.
    form = replace(form, fewest_shapes=max(form.fewest_shapes - 1, 1))
    shapes = sorted(_shapes(groups))
    fold_of = {shape: number % folds for number, shape in enumerate(shapes)}
    numbers = [np.array([fold_of[str(shape)] for shape in group.shape]) for group in groups]
    predicted = [np.full(len(group.measured_s), np.nan) for group in groups]
    for fold in range(min(folds, len(shapes))):
        kept = [_some(group, number != fold) for group, number in zip(groups, numbers, strict=True)]
        try:
            machine = with_constants(profile, fit_class([group for group in kept if group], profile, form))
        except (CannotTellError, InputError):
            continue
        for group, number, result in zip(groups, numbers, predicted, strict=True):
            held = number == fold
            if held.any():
                result[held] = predicted_s(group.rows(held), machine)
    return predicted


def _some(group: KernelRows, chosen: NDArray[np.bool_]) -> KernelRows | None:
    return group.rows(chosen) if chosen.any() else None


def form_for(groups: Sequence[KernelRows], profile: HardwareProfile) -> ClassForm:
    """The time form of rows of one class on one device.

    Raises:
        InputError: no rows, rows of several classes, or of a class that has no form.
    """
    classes = {group.group.operator for group in groups}
    if len(classes) != 1:
        raise InputError(f"rows of {len(classes)} operator classes: constants are fitted class by class")
    storage = groups[0].operators[0].storage
    return form_of(classes.pop(), storage, profile, len(_shapes(groups)), groups[0].group.engine)


def _shapes(groups: Sequence[KernelRows]) -> set[str]:
    return {str(shape) for group in groups for shape in group.shape}
