"""Small facts of queueing theory, apart from engines."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError

Array = NDArray[np.float64]


def mean_prompt_wait_s(load: float, rate_per_s: float, service_s: Array, weights: Array) -> float:
    """Mean wait in M/G/1, lambda E[S^2] / (2 (1 - rho)) (Pollaczek-Khinchine) (s); infinite where rho >= 1.

    Args:
        load: rho, share of the time that the server is busy.
        rate_per_s: lambda (1/s).
        service_s: shape (K,), service times (s).
        weights: shape (K,), share of each.
    """
    if load >= 1.0:
        return math.inf
    return rate_per_s * float(service_s**2 @ weights) / (2.0 * (1.0 - load))


def exceeded_wait_s(waiting_share: float, mean_wait_s: float, share: float) -> float:
    """The wait that `share` of the customers does not exceed, its tail being exponential (s).

    Args:
        waiting_share: part of the customers that waits at all.
        mean_wait_s: mean wait of those that wait (s).
        share: within 0..1.
    """
    left = 1.0 - share
    if waiting_share <= left or mean_wait_s <= 0:
        return 0.0
    return mean_wait_s * math.log(waiting_share / left) if left > 0 else math.inf


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """The smallest value that at least `share` of the weight does not exceed.

    Raises:
        InputError: a share outside 0..1.
    """
    if not 0.0 < share <= 1.0:
        raise InputError(f"share {share:g} of a quantile: it must be above 0 and at most 1, such as 0.95")
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12), side="left"))
    return float(values[order[min(place, values.size - 1)]])
