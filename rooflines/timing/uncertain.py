"""How wrong the time of a pass may be: errors by cause, so that shared ones cancel in ratios.

The error of a kernel has three parts: one that all kernels of its class and format share on the device, one
that those of its region share, and one of this kernel at this size. A verify and a decode pass share the
first and often the second, so that much drops out of their ratio, and of a speedup.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np

from rooflines.costs.cost import Number, Operator
from rooflines.estimates import Estimate
from rooflines.timing.intervals import log_ends
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import OperatorTime, PassTime

# Shares of the variance. Over nine groups of 16-bit products the errors of two sizes of one shape correlate
# by 0.7 where both have m <= 64 and by 0.25 where one has not (AIConfigurator 0.12.0 tables,
# https://pypi.org/project/aiconfigurator-core/).
_CLASS: Final = 0.25
_REGION: Final = 0.45
_OWN: Final = 1.0 - _CLASS - _REGION
# Regions of products, by positions; other classes state errors over all of their range.
_REGIONS: Final = ((64.0, "m <= 64"), (512.0, "m 65-512"), (math.inf, "m > 512"))
_QUANTILE: Final = NormalDist().inv_cdf(0.95)


def pass_estimate(time: PassTime, machine: Machine, name: str) -> Estimate:
    """The time of a pass (s) with its errors by cause; host time per pass is taken as exact.

    Args:
        time: of the pass, on `machine`.
        machine: states the residuals of its constants.
        name: of the pass, such as ``verify``: passes of one name are wrong alike in every part.

    Returns:
        An estimate without errors for the textbook, whose error is not known.
    """
    absolute: dict[str, Number] = {}
    for one in time.operators:
        for cause, log_sd in _errors(one, machine, name).items():
            absolute[cause] = absolute.get(cause, 0.0) + one.seconds * log_sd
    return Estimate(
        time.seconds,
        {cause: part / np.asarray(time.seconds) for cause, part in absolute.items()},
        machine.basis,
    )


def _errors(one: OperatorTime, machine: Machine, name: str) -> dict[str, Number]:
    """Standard deviation of ln(truth / time) of an operator, by cause."""
    operator = one.operator
    entry = machine.errors_of(operator)
    if entry is None or not entry.residuals:
        return {}
    family = f"{operator.kind} {operator.arithmetic} {operator.storage}"
    errors: dict[str, Number] = {}
    for region, inside in _regions(operator):
        ends = log_ends(entry, region)
        if ends is None:
            continue
        log_sd = (ends[1] - ends[0]) / 2.0 / _QUANTILE * inside
        for cause, share in (
            (family, _CLASS),
            (f"{family} {region}", _REGION),
            (f"{family} {region}: {operator.name} of {name}", _OWN),
        ):
            errors[cause] = errors.get(cause, 0.0) + math.sqrt(share) * log_sd
    return errors


def _regions(operator: Operator) -> list[tuple[str, Number]]:
    """Regions, each with 1 where the operator lies in it and 0 elsewhere."""
    if operator.kind != "linear":
        return [("all", 1.0)]
    rows, least = np.asarray(operator.rows, dtype=float), 0.0
    found: list[tuple[str, Number]] = []
    for most, name in _REGIONS:
        inside = ((rows > least) & (rows <= most)).astype(float) if least else (rows <= most).astype(float)
        if np.any(inside):
            found.append((name, float(inside) if inside.ndim == 0 else inside))
        least = most
    return found
