"""Fits the constants of the time form to measured kernels, and says how well they predict other shapes.

The form is that of rooflines.timing.forms: t = ((c / e_f)^p + (b / e_b)^p)^(1/p) + t0, with c and b the times
that the datasheet would allow for the FLOPs and the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import CannotTellError, InputError
from rooflines.hardware.constants import DEFAULT_SHARPNESS, Constants
from rooflines.timing.forms import smooth_maximum

Floats = NDArray[np.float64]
# Weights of one shape leave e_b and t0 inseparable: over nine GPUs one gave errors up to 88 %, three 7 %.
FEWEST_SHAPES: Final = 3
# e_b, e_f and t0 (us) of an average GPU start the search; shares above 1 absorb a peak stated too low.
_START: Final = (0.8, 0.75, 4.0)
_LOWEST: Final = (0.02, 0.02, 0.001)
_HIGHEST: Final = (1.3, 1.3, 1000.0)
# Errors beyond 10 % count linearly rather than squared, so that a few odd kernels do not steer the fit.
_SOFT_ERROR: Final = 0.1


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Measured kernels of one device, stack, dtype and operator class; arrays of one length N.

    Attributes:
        compute_s: FLOPs over the dense peak (s).
        memory_s: bytes over the memory bandwidth (s).
        measured_s: what the kernel took (s).
        shape: number of the weight shape that a row belongs to; rows of a shape are held out together.
    """

    compute_s: Floats
    memory_s: Floats
    measured_s: Floats
    shape: NDArray[np.int64]

    def __post_init__(self) -> None:
        lengths = {len(self.compute_s), len(self.memory_s), len(self.measured_s), len(self.shape)}
        if len(lengths) != 1:
            raise InputError(f"arrays of kernel times have lengths {sorted(lengths)}: give one value a row")
        times = np.stack([self.memory_s, self.measured_s])
        if not (np.all(np.isfinite(times)) and np.all(times > 0) and np.all(self.compute_s >= 0)):
            raise InputError("times of kernels must be finite and above zero (and FLOPs no less than zero)")

    def rows(self, chosen: NDArray[np.bool_]) -> KernelTimes:
        """The rows where `chosen` (N) is true."""
        return KernelTimes(
            self.compute_s[chosen], self.memory_s[chosen], self.measured_s[chosen], self.shape[chosen]
        )


def predict_s(times: KernelTimes, constants: Constants) -> Floats:
    """Predicted times (N) of the kernels (s)."""
    compute = times.compute_s / constants.compute_efficiency
    memory = times.memory_s / constants.bandwidth_efficiency
    return np.asarray(smooth_maximum(memory, compute, constants.sharpness) + constants.overhead_s)


def fit_kernels(times: KernelTimes, sharpness: float = DEFAULT_SHARPNESS) -> Constants:
    """Constants that fit best: least soft-L1 of the logarithms of predicted over measured.

    Raises:
        CannotTellError: fewer than three shapes, which do not separate bandwidth from floor.
    """
    from scipy.optimize import least_squares

    shapes = len(np.unique(times.shape))
    if shapes < FEWEST_SHAPES:
        raise CannotTellError(
            f"{shapes} weight shape(s) do not separate bandwidth from floor: measure {FEWEST_SHAPES} or more "
            "that span 4x in bytes, each with m = 1, 16, 64, 256, 1024 and 4096"
        )

    def constants(logs: Floats) -> Constants:
        e_b, e_f, overhead_us = np.exp(logs)
        return Constants(float(e_b), float(e_f), float(overhead_us) * 1e-6, sharpness)

    def log_errors(logs: Floats) -> Floats:
        return np.asarray(np.log(predict_s(times, constants(logs)) / times.measured_s))

    found = least_squares(
        log_errors,
        np.log(_START),
        bounds=(np.log(_LOWEST), np.log(_HIGHEST)),
        loss="soft_l1",
        f_scale=_SOFT_ERROR,
    )
    return constants(found.x)


def held_out_errors(times: KernelTimes, folds: int = 5, sharpness: float = DEFAULT_SHARPNESS) -> Floats:
    """Relative errors (N) of each row, predicted with constants fitted on other shapes only.

    Raises:
        CannotTellError: too few shapes remain to fit.
        InputError: fewer than two folds.
    """
    if folds < 2:  # noqa: PLR2004 - one part to fit and one to test
        raise InputError(f"folds = {folds}: holding shapes out takes at least 2")
    _, number = np.unique(times.shape, return_inverse=True)
    errors = np.empty(len(times.shape))
    for fold in range(min(folds, int(number.max()) + 1)):
        held = number % folds == fold
        constants = fit_kernels(times.rows(~held), sharpness)
        errors[held] = predict_s(times.rows(held), constants) / times.measured_s[held] - 1
    return errors
