"""The time forms: how FLOPs, bytes and constants become seconds.

All take numbers or NumPy arrays that broadcast.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from rooflines.costs.cost import Number

# Kernels that pack new positions and query heads of a kv head took the same time for 1, 16 and 32 rows on
# HBM-bound caches (0.97-1.03, H100, H200 and Blackwell, AIConfigurator 0.12.0 tables,
# https://pypi.org/project/aiconfigurator-core/); from 64 rows on it depends on the kernel.
NARROW_QUERY_ROWS: Final = 32.0


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


def widened(query_rows: Number, factor: float) -> Number:
    """How much longer attention takes for its query rows: 1 up to 32, `factor` from 64 on, linear between."""
    if factor == 1.0:
        return 1.0
    return 1.0 + (factor - 1.0) * np.clip(np.asarray(query_rows) / NARROW_QUERY_ROWS - 1.0, 0.0, 1.0)
