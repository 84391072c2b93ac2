"""Chunked prefill: what a chunk of a prompt adds to a decode or verify step that carries it along.

One forward pass processes the positions of both: linear layers, experts and norms read their weights once
for all of them, while attention runs as the two kernels that it is (Sarathi-Serve, arXiv 2403.02310, calls
this a hybrid batch). A pass of both is therefore priced operator by operator, not as the sum of two passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime, operator_time

# Kernels that process decode and prefill positions in one launch.
_SHARED: Final = ("linear", "moe", "small", "collective")
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Folded:
    """All operators of a pass with one name, kind and format: their total and how many there are."""

    operator: Operator
    total: Cost
    count: float
    rows: Number


def chunk_extra_s(step: PassTime, chunk: PassTime, machine: Machine) -> Number:
    """Seconds that a prefill chunk adds to a step it rides along with (s); broadcasts.

    Never below the chunk's attention alone, and at most the whole chunk's pass: what is saved is reading
    weights twice and launching twice.
    """
    alone, along = _folded(step), _folded(chunk)
    extra: Number = 0.0
    for key, part in along.items():
        partner = alone.get(key)
        if partner is None or part.operator.kind not in _SHARED:
            extra = extra + _seconds(part, machine)
        else:
            extra = extra + np.maximum(
                _seconds(_together(partner, part), machine) - _seconds(partner, machine), 0.0
            )
    return extra


def _folded(timed: PassTime) -> dict[_Key, _Folded]:
    found: dict[_Key, _Folded] = {}
    for operator in (time.operator for time in timed.operators):
        key = (operator.name, operator.kind, operator.arithmetic, operator.storage)
        own = _Folded(
            operator, operator.cost * operator.count, operator.count, operator.rows * operator.count
        )
        before = found.get(key)
        found[key] = (
            own
            if before is None
            else _Folded(operator, before.total + own.total, before.count + own.count, before.rows + own.rows)
        )
    return found


def _together(step: _Folded, chunk: _Folded) -> _Folded:
    """Both in one launch: work and activations add, weights are read once.

    Experts hit by the step are taken to be among those that the chunk hits, which is larger by far.
    """
    one, other = step.total, chunk.total
    total = replace(
        one + other,
        weight_bytes=np.maximum(one.weight_bytes, other.weight_bytes),
        kernels=np.maximum(one.kernels, other.kernels),
    )
    return _Folded(chunk.operator, total, max(step.count, chunk.count), step.rows + chunk.rows)


def _seconds(part: _Folded, machine: Machine) -> Number:
    """Time of the mean instance, times their number."""
    mean = replace(
        part.operator, cost=part.total * (1.0 / part.count), count=part.count, rows=part.rows / part.count
    )
    return operator_time(mean, machine).seconds


@dataclass(frozen=True, slots=True)
class Exchange:
    """Sending tokens to their experts and back, in one pass.

    Attributes:
        tokens: positions in the pass, of all the devices that share the experts.
        seconds: dispatch and combine of all layers (s).
        share: of the pass.
        bound: ``latency`` where the floors of the kernels are the larger part, else ``bandwidth``.
    """

    tokens: float
    seconds: float
    share: float
    bound: str


def expert_exchange(served: Deployment, timed: PassTime, tokens: float) -> Exchange | None:
    """The all-to-all of a pass (scalars); None where no devices exchange tokens.

    Args:
        served: whose pass it is.
        timed: the pass.
        tokens: positions that one group of tensor-parallel devices processes.
    """
    parts = [time for time in timed.operators if time.operator.name in ("expert dispatch", "expert combine")]
    if not parts:
        return None
    seconds = _total(time.seconds for time in parts)
    floors = _total(time.overhead_s for time in parts)
    bound = "latency" if floors > seconds / 2 else "bandwidth"
    return Exchange(tokens * served.parallelism.replicas, seconds, seconds / float(timed.seconds), bound)


def _total(parts: Iterable[Number]) -> float:
    return float(sum(float(part) for part in parts))
