"""Between which factors of a prediction the truth lies, out of the residuals that constants state.

Rows of one shape err alike, so the shapes, not the rows, are what was drawn: ends that hold 90 % of the rows
of some shapes are widened for the next one. By how much, residuals state (rooflines.validation.new_shapes
measures it by leaving shapes out). Where they do not, the spread is widened as Student's t widens that of few
observations, times sqrt(1 + 1/S) for a shape that was not among them (prediction interval of the next
observation, NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.2 and 4.1.3.2,
https://www.itl.nist.gov/div898/handbook/).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

from rooflines.hardware.calibration import OperatorConstants

EVERYWHERE: Final = "all"
_UPPER: Final = 0.95  # upper end of a 90 % interval


def log_ends(entry: OperatorConstants, region: str, *, new_shape: bool = True) -> tuple[float, float] | None:
    """Ends of the 90 % interval of ln(truth / prediction).

    Args:
        entry: constants with their residuals.
        region: part of the range; where it has no residuals, those of the whole range stand in.
        new_shape: whether the prediction is of a shape that the constants never saw.

    Returns:
        None where no residuals are stated.
    """
    stated = entry.residual(region) or entry.residual(EVERYWHERE)
    if stated is None:
        return None
    if not new_shape:
        return stated.log_q05, stated.log_q95
    factor = stated.new_shape_factor
    return widened_ends(
        stated.log_q05,
        stated.log_q95,
        few_shapes_factor(entry.provenance.shapes) if factor is None else factor,
    )


def widened_ends(low: float, high: float, factor: float) -> tuple[float, float]:
    """An interval widened around its middle.

    Args:
        low: lower end.
        high: upper end.
        factor: new over old width.
    """
    middle, half = (low + high) / 2.0, (high - low) / 2.0 * factor
    return middle - half, middle + half


def few_shapes_factor(shapes: int) -> float:
    """How much wider the interval of the next shape is than the spread over S shapes; 1 for endless ones.

    One shape tells nothing of others; it is widened as two are. 0, where shapes are not counted, widens
    nothing.
    """
    if shapes <= 0:
        return 1.0
    freedom = max(shapes - 1, 1)
    return _student(freedom) / NormalDist().inv_cdf(_UPPER) * math.sqrt(1.0 + 1.0 / shapes)


def _student(freedom: int) -> float:
    """95 % quantile of Student's t: exact for 1 and 2 degrees of freedom, else to 0.4 %.

    Beyond them the expansion in 1 / freedom (Abramowitz and Stegun 1964, equation 26.7.5).
    """
    if freedom == 1:
        return math.tan(math.pi * (_UPPER - 0.5))
    if freedom == 2:  # noqa: PLR2004 - closed form
        return (2.0 * _UPPER - 1.0) / math.sqrt(2.0 * _UPPER * (1.0 - _UPPER))
    z = NormalDist().inv_cdf(_UPPER)
    first = (z**3 + z) / 4.0
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3
