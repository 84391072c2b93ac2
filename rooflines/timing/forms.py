"""The time forms: how FLOPs, bytes and constants become seconds.

All take numbers or NumPy arrays that broadcast.
"""

from __future__ import annotations

import math

import numpy as np

from rooflines.costs.cost import Number


def smooth_maximum(one: Number, other: Number, sharpness: float) -> Number:
    """(a^p + b^p)^(1/p): the sum for p = 1, the hard maximum for p = inf.

    Args:
        one: a, 0 or more.
        other: b, 0 or more.
        sharpness: p, 1 or more.
    """
    if math.isinf(sharpness):
        return np.maximum(one, other) if np.ndim(one) or np.ndim(other) else max(one, other)
    if sharpness == 1:
        return one + other
    high = np.maximum(one, other)
    low = np.minimum(one, other)
    # The ratio is at most 1, so nothing overflows; where both are 0 the result is 0.
    ratio = np.divide(low, high, out=np.zeros(np.shape(high)), where=high > 0)
    result = high * (1.0 + ratio**sharpness) ** (1.0 / sharpness)
    return float(result) if np.ndim(result) == 0 else result


def saturating(efficiency: float, tokens: Number, saturation_tokens: float) -> Number:
    """An efficiency that grows with the length it works on: e / (1 + s0 / n)."""
    if not saturation_tokens:
        return efficiency
    return efficiency / (1.0 + saturation_tokens / np.maximum(tokens, 1.0))
