"""From costs to seconds: what binds an operator, and how long it takes.

The textbook roofline (Williams, Waterman, Patterson 2009, doi 10.1145/1498765.1498785) is the case of
infinite sharpness, efficiencies of 1 and no overhead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.costs.cost import Cost, Number, Operator, Pass
from rooflines.hardware.constants import Constants
from rooflines.timing.forms import (
    faster_protocol_s,
    padded_rows,
    reduced_bytes,
    saturating,
    sent_share,
    smooth_maximum,
    tiled_work,
    widened,
)
from rooflines.timing.machine import Machine

BOUNDS: Final = ("memory", "compute", "network", "overhead")
_PAIR: Final = 2  # fewest devices of a collective


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Seconds of one operator, all its instances together, and what they are made of.

    Attributes:
        operator: what was timed.
        seconds: total (s).
        memory_s: time to move its bytes at the attained bandwidth (s).
        compute_s: time of its matrix products at the attained peak (s).
        network_s: time of its bytes on the link (s).
        overhead_s: floors of its kernels (s).
    """

    operator: Operator
    seconds: Number
    memory_s: Number
    compute_s: Number
    network_s: Number
    overhead_s: Number

    @property
    def bound(self) -> str | np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
        """The largest part by name: memory, compute, network or overhead."""
        return _largest(self.memory_s, self.compute_s, self.network_s, self.overhead_s)


@dataclass(frozen=True, slots=True)
class PassTime:
    """Seconds of a pass, operator by operator, plus host overhead."""

    operators: tuple[OperatorTime, ...]
    host_s: Number
    seconds: Number

    @property
    def cost(self) -> Cost:
        """Cost of all operators on one device."""
        return total_cost(self.operators)

    @property
    def bound(self) -> str | np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
        """What most of the pass waits for."""
        sums = [
            sum((getattr(time, part) for time in self.operators), start=0.0)
            for part in ("memory_s", "compute_s", "network_s", "overhead_s")
        ]
        sums[3] = sums[3] + self.host_s
        return _largest(*sums)


def total_cost(times: Iterable[OperatorTime]) -> Cost:
    """What operators do together, every instance counted."""
    total = Cost()
    for time in times:
        total = total + time.operator.cost * time.operator.count
    return total


def _largest(*parts: Number) -> str | np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
    stacked = np.stack(np.broadcast_arrays(*parts))
    chosen = np.array(BOUNDS)[np.argmax(stacked, axis=0)]
    return str(chosen) if chosen.ndim == 0 else chosen


def operator_time(operator: Operator, machine: Machine) -> OperatorTime:
    """Time of all instances of an operator.

    Raises:
        MissingPeakError: the device states no peak for the dtype of the arithmetic.
        ProfileError: a collective on a device that states no link.
    """
    constants, cost, count = machine.constants(operator), operator.cost, operator.count
    if operator.kind == "collective":
        return _collective_time(operator, constants, machine.link_bytes_per_s())
    bandwidth = machine.profile.bandwidth_bytes_per_s * constants.bandwidth_efficiency
    moved = cost.bytes_moved
    if constants.kv_traffic != 1.0:
        moved = moved + (constants.kv_traffic - 1.0) * cost.kv_bytes
    memory: Number = moved / bandwidth * count
    compute: Number = 0.0
    if np.any(np.asarray(cost.matmul_flops) > 0):
        peak = machine.profile.peak_flop_per_s(operator.arithmetic)
        share = _compute_share(operator, constants)
        compute = cost.matmul_flops * _work(operator, constants, machine) / (peak * share) * count
    floor = constants.overhead_s + constants.token_overhead_s * operator.query_tokens
    overhead = floor * cost.kernels * count
    seconds = smooth_maximum(memory, compute, constants.sharpness)
    if constants.wide_factor != 1.0:
        seconds = seconds * widened(operator.query_rows, constants.wide_factor)
    seconds = seconds + overhead
    return OperatorTime(operator, seconds, memory, compute, 0.0, overhead)


def _collective_time(operator: Operator, constants: Constants, link_bytes_per_s: float) -> OperatorTime:
    share = (_PAIR / operator.ranks) ** constants.rank_contention
    sent, bandwidth = operator.cost.network_bytes, link_bytes_per_s * constants.bandwidth_efficiency
    network: Number = sent / share / bandwidth
    if constants.bulk_overhead_s:
        network = faster_protocol_s(network, constants.bulk_overhead_s)
    if operator.reduces and constants.one_stage_bytes:
        own = reduced_bytes(sent, operator.ranks, share, constants.one_stage_bytes) / bandwidth
        bulk = sent / share / bandwidth + constants.bulk_overhead_s
        limit = constants.bulk_from_bytes * sent_share(operator.ranks) or math.inf
        network = np.where(np.asarray(sent) < limit, own, bulk)
    network = network * operator.count
    latency = constants.overhead_s + constants.rank_overhead_s * (operator.ranks - _PAIR)
    overhead = latency * operator.cost.kernels * operator.count
    return OperatorTime(operator, network + overhead, 0.0, 0.0, network, overhead)


def _compute_share(operator: Operator, constants: Constants) -> Number:
    """Share of the peak that products attain; it saturates in positions, or in positions per expert hit."""
    saturation: Number = constants.saturation_tokens
    if operator.kind != "moe":
        return saturating(constants.compute_efficiency, operator.query_tokens, saturation)
    if constants.narrow_tile_share != 1.0:
        # Where between one and two positions tiles change differs from layer to layer, and no table shows it.
        wide = np.clip(np.asarray(operator.tokens_per_expert) - 1.0, 0.0, 1.0)
        saturation = saturation * (constants.narrow_tile_share + (1.0 - constants.narrow_tile_share) * wide)
    return saturating(constants.compute_efficiency, operator.rows, saturation)


def _work(operator: Operator, constants: Constants, machine: Machine) -> Number:
    """Arithmetic that a linear kernel does over that which is of use."""
    if operator.kind != "linear" or not np.all(np.asarray(operator.rows) > 0):
        return 1.0
    if constants.padded_to_rows:
        return padded_rows(operator.rows, constants.padded_to_rows) / operator.rows
    if constants.smallest_tile_rows and np.all(np.asarray(operator.outputs) > 0):
        units = machine.profile.compute_units
        return tiled_work(
            operator.rows,
            operator.outputs,
            constants.smallest_tile_rows,
            constants.tile_half_intensity,
            None if units is None else units.value.si,
        )
    return 1.0


def pass_time(forward: Pass, machine: Machine) -> PassTime:
    """Time of a pass: its operators one after another, plus host overhead."""
    times = tuple(operator_time(operator, machine) for operator in forward.operators)
    return PassTime(times, machine.overhead_s, _sum((time.seconds for time in times), machine.overhead_s))


def _sum(parts: Iterable[Number], start: float) -> Number:
    """Add parts in order, into one array as soon as there is one of the full shape."""
    total: Number = start
    own = False
    for part in parts:
        if own and isinstance(total, np.ndarray) and np.broadcast(total, part).shape == total.shape:
            total += part
        else:
            total, own = total + part, True
    return total


def attainable_flop_per_s(intensity: Number, peak_flop_per_s: float, bytes_per_s: float) -> Number:
    """The roof over an intensity: min(peak, intensity x bandwidth) (FLOP/s)."""
    return np.minimum(peak_flop_per_s, np.asarray(intensity) * bytes_per_s)
