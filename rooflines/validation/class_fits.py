"""Fits the constants of classes other than single products, through the very time form that plans use.

Every class has few free constants, each with a meaning; what a class leaves fixed is textbook. The forms and
what was tried beside them are in docs/calibration.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import CannotTellError, InputError
from rooflines.hardware.constants import DEFAULT_SHARPNESS, TEXTBOOK, Constants
from rooflines.hardware.profile import HardwareProfile
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import operator_time
from rooflines.validation.kernel_tables.rows import KernelRows

Floats = NDArray[np.float64]
# Errors beyond 10 % count linearly rather than squared, so that a few odd kernels do not steer the fit.
_SOFT_ERROR: Final = 0.1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the search for a constant starts, and between which values it stays."""

    start: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class ClassForm:
    """The time form of one operator class.

    Attributes:
        name: as calibrations call it.
        free: field of `Constants` -> bounds, for those that are fitted.
        fixed: field -> value, for those that are not textbook.
        fewest_shapes: shapes without which the free constants are not separable.
        advice: what to measure when they are not.
    """

    name: str
    free: Mapping[str, Bounds]
    fixed: Mapping[str, float] = field(default_factory=dict)
    fewest_shapes: int = 1
    advice: str = ""

    def constants(self, logs: Floats) -> Constants:
        """Constants out of the logarithms of the free ones, in their order."""
        values = {name: float(value) for name, value in zip(self.free, np.exp(logs), strict=True)}
        return replace(TEXTBOOK, **self.fixed, **values)


# Shares of bandwidth stay below the datasheet's; those of peaks may exceed it where a peak is stated too low.
_SHARE: Final = Bounds(0.85, 0.005, 1.0)
_PEAK_SHARE: Final = Bounds(0.6, 0.02, 1.3)
_FLOOR: Final = Bounds(12e-6, 1e-9, 1e-3)

FORMS: Final[Mapping[str, ClassForm]] = {
    # One more constant (a compute term, a smooth maximum) changed no held-out error by 0.1 points.
    "decode_attention": ClassForm(
        "bandwidth and floor",
        {"bandwidth_efficiency": _SHARE, "overhead_s": _FLOOR},
        {"sharpness": DEFAULT_SHARPNESS},
        advice="caches of 2x to 100x the last-level cache, such as batch 1..64 with 2k..64k of context",
    ),
    # Writing the cache is a kernel of its own before the products, so the times add; the loop over the keys
    # of one tile is serial, which the last constant prices.
    "prefill_attention": ClassForm(
        "sum of products, bytes, a serial loop and a floor",
        {
            "compute_efficiency": _PEAK_SHARE,
            "bandwidth_efficiency": Bounds(0.35, 0.005, 1.0),
            "token_overhead_s": Bounds(10e-9, 1e-12, 1e-6),
            "overhead_s": _FLOOR,
        },
        {"sharpness": 1.0},
        advice="prompts of 64 to 16k tokens, with one sequence and with several",
    ),
    # An expert's products waste a part of a tile of rows, so their share saturates in rows per expert hit.
    "moe": ClassForm(
        "smooth maximum, floor, and saturation in rows per expert",
        {
            "bandwidth_efficiency": _SHARE,
            "compute_efficiency": Bounds(0.35, 0.02, 1.3),
            "overhead_s": Bounds(25e-6, 1e-9, 1e-3),
            "saturation_tokens": Bounds(50.0, 0.1, 500.0),
        },
        {"sharpness": DEFAULT_SHARPNESS},
        advice="1 to 4096 tokens",
    ),
    "collective": ClassForm(
        "latency and bandwidth by number of devices",
        {
            "bandwidth_efficiency": Bounds(0.6, 0.005, 1.0),
            "overhead_s": Bounds(5e-6, 1e-7, 1e-3),
            "rank_overhead_s": Bounds(1e-6, 1e-9, 1e-4),
            "rank_contention": Bounds(0.3, 0.01, 4.0),
        },
        {"sharpness": 1.0},
        fewest_shapes=3,
        advice="messages of 1 KiB to 64 MiB on 2, 4 and 8 devices",
    ),
    "small": ClassForm(
        "bandwidth and floor",
        {"bandwidth_efficiency": _SHARE, "overhead_s": Bounds(2.5e-6, 1e-7, 1e-4)},
        {"sharpness": 1.0},
        advice="1 to 4096 tokens",
    ),
}


def form_of(operator: str) -> ClassForm:
    """The form of a class.

    Raises:
        InputError: the class has none here.
    """
    if operator not in FORMS:
        raise InputError(f"operator class {operator!r} has no form here: fit one of {', '.join(FORMS)}")
    return FORMS[operator]


def predicted_s(rows: KernelRows, machine: Machine) -> Floats:
    """Time (N) that a machine gives for each row: its operators one after another (s)."""
    total = np.zeros(len(rows.measured_s))
    for operator in rows.operators:
        total = total + operator_time(operator, machine).seconds
    return total


def with_constants(profile: HardwareProfile, constants: Constants) -> Machine:
    """A device on which every operator has the same constants."""
    return Machine(profile, lambda _: constants, "one set of constants")


def fit_class(groups: Sequence[KernelRows], profile: HardwareProfile) -> Constants:
    """Constants of one operator class that fit best: least soft-L1 of log(predicted / measured).

    Args:
        groups: rows of one class on one device; groups may differ in routing or number of devices.
        profile: the device.

    Raises:
        InputError: no rows, or rows of several classes.
        CannotTellError: too few rows or shapes to separate the constants.
    """
    from scipy.optimize import least_squares

    form = _form(groups)
    measured = np.concatenate([group.measured_s for group in groups])
    shapes = {str(shape) for group in groups for shape in group.shape}
    if len(measured) <= len(form.free) or len(shapes) < form.fewest_shapes:
        raise CannotTellError(
            f"{len(measured)} row(s) of {len(shapes)} shape(s) do not separate {len(form.free)} constants of "
            f" {groups[0].group.operator}: add {form.advice}"
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


def held_out_s(groups: Sequence[KernelRows], profile: HardwareProfile, folds: int = 5) -> list[Floats]:
    """Predicted times of each group's rows (s), by constants fitted on rows of other shapes only.

    Rows whose constants cannot be fitted without their shape are NaN: a class with one shape has nothing that
    could be held out.

    Args:
        groups: rows of one class on one device.
        profile: the device.
        folds: parts that the shapes are divided into; no more than there are shapes are made.

    Raises:
        InputError: no rows, rows of several classes, or fewer than two folds.
    """
    if folds < 2:  # noqa: PLR2004 - one part to fit and one to test
        raise InputError(f"folds = {folds}: holding shapes out takes at least 2")
    _form(groups)
    shapes = sorted({str(shape) for group in groups for shape in group.shape})
    fold_of = {shape: number % folds for number, shape in enumerate(shapes)}
    numbers = [np.array([fold_of[str(shape)] for shape in group.shape]) for group in groups]
    predicted = [np.full(len(group.measured_s), np.nan) for group in groups]
    for fold in range(min(folds, len(shapes))):
        kept = [_some(group, number != fold) for group, number in zip(groups, numbers, strict=True)]
        try:
            machine = with_constants(profile, fit_class([group for group in kept if group], profile))
        except (CannotTellError, InputError):
            continue
        for group, number, result in zip(groups, numbers, predicted, strict=True):
            held = number == fold
            if held.any():
                result[held] = predicted_s(group.rows(held), machine)
    return predicted


def _some(group: KernelRows, chosen: NDArray[np.bool_]) -> KernelRows | None:
    return group.rows(chosen) if chosen.any() else None


def _form(groups: Sequence[KernelRows]) -> ClassForm:
    classes = {group.group.operator for group in groups}
    if len(classes) != 1:
        raise InputError(f"rows of {len(classes)} operator classes: constants are fitted class by class")
    return form_of(classes.pop())
