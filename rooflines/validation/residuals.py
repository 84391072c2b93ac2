"""How wrong predictions of measured rows were, as calibrations state it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rooflines.hardware.calibration import Residual
from rooflines.validation.judge import EVERYWHERE
from rooflines.validation.new_shapes import inner_ends, new_shape_factor

Floats = NDArray[np.float64]


def residual(region: str, log: Floats, *, in_sample: bool, factor: float | None = None) -> Residual:
    """Errors of some rows.

    Args:
        region: of the range that they lie in.
        log: ln(measured / predicted) (N).
        in_sample: whether constants were fitted to these rows.
        factor: widening for a new shape, where it was measured.
    """
    errors = np.expm1(-log)
    low, high = inner_ends(log)
    return Residual(
        region=region,
        rows=len(log),
        median_abs_error=float(np.median(np.abs(errors))),
        p90_abs_error=float(np.quantile(np.abs(errors), 0.9)),
        bias=float(np.median(errors)),
        log_q05=low,
        log_q95=high,
        in_sample=in_sample,
        new_shape_factor=factor,
    )


def residuals(
    shape: NDArray[np.str_],
    region: NDArray[np.str_],
    measured_s: Floats,
    held_out: Floats,
    fitted_s: Floats,
) -> tuple[Residual, ...]:
    """Errors by region and over all, of predictions without a row's shape where there are any.

    Args:
        shape: of each row (N), or whatever else was held out in turn.
        region: of each row (N).
        measured_s: what was measured (N) (s).
        held_out: predictions by constants that never saw the row's shape (N) (s); NaN where there is none.
        fitted_s: predictions by constants fitted to all rows (N) (s).
    """
    found = []
    for name in (*np.unique(region), EVERYWHERE):
        chosen = np.ones(len(region), dtype=bool) if name == EVERYWHERE else region == name
        outside = np.isfinite(held_out[chosen])
        in_sample = not outside.any()
        shapes = shape[chosen] if in_sample else shape[chosen][outside]
        predicted = fitted_s[chosen] if in_sample else held_out[chosen][outside]
        measured = measured_s[chosen] if in_sample else measured_s[chosen][outside]
        log = np.log(measured / predicted)
        factor = None if in_sample else new_shape_factor(log, shapes)
        found.append(residual(str(name), log, in_sample=in_sample, factor=factor))
    return tuple(found)
