"""How wrong the time of a pass may be: errors by cause, so that shared ones cancel in ratios.

The error of a kernel has parts that it shares with others: with all kernels of its class on the device, with
itself at other sizes (the same weights), with the other kernels of the same pass (the same positions). A
verify and a decode pass run the same weights, so that much drops out of their ratio, and of a speedup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from rooflines.costs.cost import Number, Operator
from rooflines.estimates import Estimate
from rooflines.hardware.calibration import OperatorConstants, width_family
from rooflines.timing.forms import NARROW_QUERY_ROWS
from rooflines.timing.intervals import log_ends
from rooflines.timing.machine import Machine, transferable_entry
from rooflines.timing.roofline import PassTime, operator_time

# What runs a pass: the software that constants were fitted to; another serving engine, or version of it;
# other libraries.
Software = Literal["same", "engine", "libraries"]


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of the variance of ln(truth / time), by what shares them; they add to 1.

    Attributes:
        family: all kernels of a class and format.
        region: those of them in one region of sizes.
        name: one kernel (one matrix, say) at all sizes.
        name_region: one kernel in one region.
        size: all kernels of a class and format in one pass.
        own: one kernel in one pass.
    """

    family: float = 0.0
    region: float = 0.0
    name: float = 0.0
    name_region: float = 0.0
    size: float = 0.0
    own: float = 0.0


# Products held out by shape in 23 groups of device, engine and format (AIConfigurator 0.12.0 tables,
# https://pypi.org/project/aiconfigurator-core/). Errors of two shapes are not correlated, or by 0.1 at the
# same m; those of one shape by 0.45 between two sizes of a region, 0.7 between a size and the median of four,
# and 0.2 between neighbouring regions. Attention and expert layers are alike: 0.3 and 0.15, 0.5 and 0.2.
MEASURED: Final = Shares(name=0.20, name_region=0.35, size=0.10, own=0.35)
# The same products by medians of the other devices: what a device adds to all of them is 0.35, 0.2 and 0.35
# of the variance in the three regions, half of it the same in all; the rest is shared as above.
PRODUCTS_BY_MEDIANS: Final = Shares(
    family=0.15, region=0.15, name=0.14, name_region=0.245, size=0.07, own=0.245
)
# Attention and expert layers by medians: a device adds 0.2 to 0.9 of the variance, a third to a half mostly.
MEDIANS: Final = Shares(family=0.30, region=0.10, name=0.12, name_region=0.21, size=0.06, own=0.21)
# Kernels of several new positions over a long cache took 0.97 to 1.03 of the time of one (same tables), so
# a decode and a verify pass err alike.
CACHED: Final = Shares(name=0.70, name_region=0.15, own=0.15)
# Residuals of whole passes of a model, whose parts are not known.
PASSES: Final = Shares(family=0.45, own=0.55)
# Times of the same products in two serving engines, or versions of one (eleven pairs of the same tables):
# 0.03 to 0.07 apart over a region, and by more from shape to shape.
OTHER_ENGINE: Final = Shares(family=0.1, region=0.1, name_region=0.3, own=0.5)
# Standard deviation of ln(time) that another engine adds, so that 90 % of its rows lie inside: over all pairs
# of engines and six devices of these tables. Prefill attention was measured on one engine only, so it takes
# the number of decode attention.
OTHER_ENGINE_LOG_SD: Final[Mapping[str, float]] = {
    "linear": 0.10,
    "decode_attention": 0.25,
    "prefill_attention": 0.25,
    "moe": 0.55,
    "collective": 0.75,
}
# Formats of 8 bits or less, for which engines have products of their own: 0.16 to 0.26 from shape to shape in
# three pairs.
OTHER_ENGINE_NARROW_LOG_SD: Final = 0.20
# Older libraries, timed by the host: layers are 10 to 17 % off (Vidur, https://github.com/microsoft/vidur,
# against the same tables, two devices), by -5 to +18 % over whole regions and alike for all layers.
OTHER_LIBRARIES: Final = Shares(family=0.4, region=0.4, name_region=0.1, own=0.1)
OTHER_LIBRARIES_LOG_SD: Final = 0.17
# Classes without any measurement (elementwise kernels, recurrences): half of the range from 5 to 95 % of
# 864 elementwise kernels of Vidur, over 1.645.
UNMEASURED_LOG_SD: Final = 0.32
# Attention over a cache with more query rows per key/value head than were measured: no slower in two engines,
# 1.6 to 4.3 times slower at 64 rows in others (the same tables, heads in place of positions).
UNMEASURED_WIDTH_LOG_SD: Final = 0.25
# Regions of products, by positions; other classes state errors over all of their range.
_REGIONS: Final = ((64.0, "m <= 64"), (512.0, "m 65-512"), (math.inf, "m > 512"))
_ALL: Final = "all"
_SIXTEEN_BITS: Final = 16
_SHARED_EXPERTS: Final = "experts that positions share"
_QUANTILE: Final = NormalDist().inv_cdf(0.95)


def pass_estimate(
    time: PassTime, machine: Machine, name: str, *, software: Software = "same", new_shapes: Number = 1.0
) -> Estimate:
    """The time of a pass (s) with its errors by cause; host time per pass is taken as exact.

    Args:
        time: of the pass, on `machine`.
        machine: states the residuals of its constants.
        name: of the pass, such as ``verify``: passes of one name are wrong alike in every part.
        software: what runs the pass, beside that which the constants were fitted to.
        new_shapes: 1 where the constants never saw the shapes of the pass, 0 where they were fitted to them.

    Returns:
        An estimate without errors for the textbook, whose error is not known.
    """
    whole = np.asarray(time.seconds)
    absolute_s = pass_errors_s(time, machine, name, software=software, new_shapes=new_shapes)
    return Estimate(time.seconds, {cause: part / whole for cause, part in absolute_s.items()}, machine.basis)


def pass_errors_s(
    time: PassTime, machine: Machine, name: str, *, software: Software = "same", new_shapes: Number = 1.0
) -> dict[str, Number]:
    """What `pass_estimate` says, as standard deviations of the time (s); shaped by what each depends on."""
    absolute_s: dict[str, Number] = {}
    for one in time.operators:
        causes = _errors(one.operator, machine, name, software, new_shapes)
        if machine.calibration is not None and np.any(one.operator.distinct_log_sd):
            causes[_SHARED_EXPERTS] = _of_experts(one.operator, machine)
        for cause, log_sd in causes.items():
            absolute_s[cause] = absolute_s.get(cause, 0.0) + one.seconds * log_sd
    return absolute_s


def elsewhere(kind: str, storage: str, software: Software) -> tuple[Shares, float]:
    """What software other than the measured one adds: standard deviation of ln(time), and what shares it.

    Args:
        kind: operator class.
        storage: format of the weights, or of the cache.
        software: that runs the pass.
    """
    if software == "same":
        return OTHER_ENGINE, 0.0
    log_sd = OTHER_ENGINE_LOG_SD.get(kind, UNMEASURED_LOG_SD)
    if software == "libraries":
        return OTHER_LIBRARIES, max(log_sd, OTHER_LIBRARIES_LOG_SD)
    if kind == "linear" and width_family(storage) < _SIXTEEN_BITS:
        return OTHER_ENGINE, OTHER_ENGINE_NARROW_LOG_SD
    return OTHER_ENGINE, log_sd


def _errors(
    operator: Operator, machine: Machine, name: str, software: Software, new_shapes: Number
) -> dict[str, Number]:
    """Standard deviation of ln(truth / time) of an operator in a pass, by cause."""
    calibration, entry = machine.calibration, machine.errors_of(operator)
    if calibration is None or entry is None:
        return {}
    whole = calibration.of_whole_passes
    if whole is not None:
        log_sd = _log_sd(whole, _ALL, 1.0)
        return {} if log_sd is None else _shared(PASSES, log_sd, "passes", name)
    family = f"{operator.kind} {operator.arithmetic} {operator.storage}"
    medians = entry.provenance.basis in ("transferable", "judged")
    if software == "same" and entry.provenance.stack not in ("", calibration.stack):
        software = "engine"
    shares = _shares_of(operator.kind, medians=medians)
    errors: dict[str, Number] = {}
    for region, inside in _regions(operator):
        found = _log_sd(entry, region, new_shapes)
        if found is not None and not medians:
            found = _at_most_unmeasured(found, entry, operator, region)
        stated = UNMEASURED_LOG_SD if found is None else found
        parts = [(shares, stated, family)]
        if not medians:  # which are over several stacks already
            parts.append((*elsewhere(operator.kind, operator.storage, software), f"software of {family}"))
        for divided, log_sd, cause in parts:
            _add(errors, _shared(divided, log_sd * inside, cause, name, operator.name, region))
    _add(errors, _unmeasured_width(operator, family))
    return errors


def _shares_of(kind: str, *, medians: bool) -> Shares:
    """What shares the errors of a class, by its own constants or by medians of other devices."""
    if medians:
        return PRODUCTS_BY_MEDIANS if kind == "linear" else MEDIANS
    return CACHED if kind == "decode_attention" else MEASURED


def _log_sd(entry: OperatorConstants, region: str, new_shapes: Number) -> Number | None:
    """Standard deviation of ln(truth / time) in a region; None where no residuals are stated."""
    new, seen = log_ends(entry, region), log_ends(entry, region, new_shape=False)
    if new is None or seen is None:
        return None
    half = (new[1] - new[0]) * new_shapes + (seen[1] - seen[0]) * (1.0 - new_shapes)
    return half / 2.0 / _QUANTILE


def _at_most_unmeasured(log_sd: Number, entry: OperatorConstants, operator: Operator, region: str) -> Number:
    """What few shapes leave open is no more than on a device of which nothing was measured.

    The spread over the shapes that were measured stays, however wide it is.
    """
    unmeasured = transferable_entry(operator.kind, operator.arithmetic, operator.storage)
    ceiling, seen = _log_sd(unmeasured, region, 1.0), _log_sd(entry, region, 0.0)
    if ceiling is None or seen is None:
        return log_sd
    least = np.minimum(log_sd, np.maximum(ceiling, seen))
    return float(least) if np.ndim(least) == 0 else least


def _shared(  # noqa: PLR0917 - an error, and the four things that it may be shared by
    shares: Shares, log_sd: Number, family: str, name: str, operator: str = "", region: str = ""
) -> dict[str, Number]:
    """An error divided among its causes, each of which has a name that says what shares it."""
    place = f"{family} {region}".strip()
    causes = {
        family: shares.family,
        f"{family}, {region}": shares.region,
        f"{operator}: {family}": shares.name,
        f"{operator}: {family}, {region}": shares.name_region,
        f"{place} in {name}": shares.size,
        f"{operator}: {place} in {name}": shares.own,
    }
    return {cause: math.sqrt(share) * log_sd for cause, share in causes.items() if share}


def _of_experts(operator: Operator, machine: Machine) -> Number:
    """Standard deviation of ln(time) of experts for how many of them a pass hits: more to read, fewer rows.

    All passes of several positions share it, whatever they are called.
    """
    most_s, least_s = (
        operator_time(_hitting(operator, np.exp(sign * operator.distinct_log_sd)), machine).seconds
        for sign in (1.0, -1.0)
    )
    half: Number = np.log(most_s / least_s) / 2.0
    return half


def _hitting(operator: Operator, factor: Number) -> Operator:
    """The same work on so many times as many experts."""
    cost = replace(operator.cost, weight_bytes=operator.cost.weight_bytes * factor)
    return replace(operator, cost=cost, rows=operator.rows / factor)


def _unmeasured_width(operator: Operator, family: str) -> dict[str, Number]:
    wide = np.asarray(operator.query_rows) > NARROW_QUERY_ROWS
    if operator.kind != "decode_attention" or not wide.any():
        return {}
    inside = wide.astype(float)
    sd: Number = UNMEASURED_WIDTH_LOG_SD * (float(inside) if inside.ndim == 0 else inside)
    return {f"{family} of many positions": sd}


def _add(errors: dict[str, Number], more: Mapping[str, Number]) -> None:
    """Put further parts beside those there are; of one cause, each acts in a region of its own."""
    for cause, log_sd in more.items():
        errors[cause] = errors.get(cause, 0.0) + log_sd


def _regions(operator: Operator) -> list[tuple[str, Number]]:
    """Regions, each with 1 where the operator lies in it and 0 elsewhere."""
    rows = np.asarray(operator.rows, dtype=float)
    if operator.kind != "linear" or not rows.any():
        return [(_ALL, 1.0)]
    least = 0.0
    found: list[tuple[str, Number]] = []
    for most, name in _REGIONS:
        inside = ((rows > least) & (rows <= most)).astype(float)
        if np.any(inside):
            found.append((name, float(inside) if inside.ndim == 0 else inside))
        least = most
    return found
