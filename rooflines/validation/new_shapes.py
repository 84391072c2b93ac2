"""How far a shape that was never measured may lie: ends of 90 % intervals out of residuals of other shapes.

Rows of one shape err alike, so ends that hold 90 % of the rows of some shapes hold fewer of the next one. By
how much is measured rather than assumed: ends are made without each shape in turn, and the widening is what
90 % of the rows left out need (jackknife+ of Barber, Candes, Ramdas and Tibshirani 2021,
https://arxiv.org/abs/1905.02928, with whole shapes left out and distances in half-widths of the interval).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.timing.intervals import few_shapes_factor, widened_ends

Floats = NDArray[np.float64]
Texts = NDArray[np.str_]
COVERAGE: Final = 0.9
_ENDS: Final = ((1.0 - COVERAGE) / 2.0, (1.0 + COVERAGE) / 2.0)
# Two ends are no quantiles of fewer rows.
_FEWEST_ROWS: Final = 4
# Of three shapes, two are left to tell the spread from, and it may be next to nothing by chance: no widening
# is larger than Student's for three.
_FEW_SHAPES: Final = 3


def inner_ends(log: Floats) -> tuple[float, float]:
    """The 5 and 95 % quantiles of ln(measured / predicted) (N)."""
    low, high = np.quantile(log, _ENDS)
    return float(low), float(high)


def new_shape_factor(log: Floats, shape: Texts) -> float | None:
    """How much wider than `inner_ends` the 90 % interval of the next shape is.

    It is the quantile of conformal prediction, 0.9 (1 + 1 / N), of the N distances of rows from ends made of
    the other shapes; no less than 1, and no more than Student's factor for three shapes (for two, if there
    are no more).

    Args:
        log: ln(measured / predicted), each by constants that did not see the row's shape (N).
        shape: of each row (N); of medians over devices, the device.

    Returns:
        None for one shape, which tells nothing of others, or where the others of each are too few rows.
    """
    shapes = np.unique(shape)
    distances: list[Floats] = []
    for one in shapes:
        own = shape == one
        others = log[~own]
        if len(others) < _FEWEST_ROWS:
            continue
        low, high = inner_ends(others)
        if high > low:
            distances.append(np.abs(log[own] - (low + high) / 2.0) / ((high - low) / 2.0))
    if not distances:
        return None
    every = np.concatenate(distances)
    needed = float(np.quantile(every, min(COVERAGE * (1.0 + 1.0 / len(every)), 1.0)))
    return min(max(needed, 1.0), few_shapes_factor(min(len(shapes), _FEW_SHAPES)))


def next_shape_ends(log: Floats, shape: Texts) -> tuple[float, float]:
    """Ends of the 90 % interval of ln(truth / prediction) of a shape that is not among these.

    Args:
        log: ln(measured / predicted), each by constants that did not see the row's shape (N).
        shape: of each row (N).
    """
    factor = new_shape_factor(log, shape)
    low, high = inner_ends(log)
    return widened_ends(low, high, few_shapes_factor(len(np.unique(shape))) if factor is None else factor)
