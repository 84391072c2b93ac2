"""Where the operators of a pass stand under the roofs of a device: the numbers behind a roofline plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from rooflines.studies.intensity import time_phase
from rooflines.timing.deployment import Deployment
from rooflines.timing.roofline import OperatorTime, total_cost

PlotPhase = Literal["prefill", "decode", "verify"]
EVERYTHING: Final = "whole pass"
OTHER: Final = "other products"
# Operators that do the same kind of work share a colour.
_MEMBERS: Final = {
    "attention projections": (
        "qkv projection",
        "query projection",
        "output projection",
        "latent projections",
        "query up projection",
        "latent absorption",
        "latent expansion",
        "index query projection",
        "index key projection",
        "cross query projection",
        "cross kv projection",
        "cross output projection",
    ),
    "attention": (
        "attention",
        "windowed attention",
        "chunked attention",
        "latent attention",
        "sparse latent attention",
        "index scores",
        "cross attention",
    ),
    "feed-forward": (
        "gate and up projection",
        "up projection",
        "down projection",
        "shared expert gate and up projection",
        "shared expert up projection",
        "shared expert down projection",
        "shared expert gate",
    ),
    "head": ("head",),
    "routed experts": (
        "routed experts",
        "router",
        "expert latent projection",
        "expert latent output",
    ),
    "recurrent layers": (
        "recurrent projections",
        "recurrence",
        "mamba x projection",
        "mamba step projection",
    ),
}
GROUPS: Final = {operator: group for group, operators in _MEMBERS.items() for operator in operators}


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A group of operators of one pass under the roofs of its device.

    Attributes:
        hardware: profile id.
        model: what is run.
        phase: of the pass.
        group: a value of `GROUPS`, `OTHER` or `EVERYTHING`.
        batch: B.
        context: S, cached positions per sequence.
        new_tokens: n, new positions per sequence.
        matmul_flops: on one device (FLOP).
        bytes_moved: over its memory interface (bytes).
        network_bytes: sent over its link (bytes).
        seconds: all kernels of the group one after another (s).
    """

    hardware: str
    model: str
    phase: PlotPhase
    group: str
    batch: int
    context: int
    new_tokens: int
    matmul_flops: float
    bytes_moved: float
    network_bytes: float
    seconds: float

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOP per byte of memory traffic (FLOP/byte)."""
        return self.matmul_flops / self.bytes_moved

    @property
    def attained_flop_per_s(self) -> float:
        """Matrix FLOPs over predicted time (FLOP/s)."""
        return self.matmul_flops / self.seconds


@dataclass(frozen=True, slots=True)
class Roof:
    """What bounds a kernel of one arithmetic on one device.

    Attributes:
        hardware: profile id.
        name: of the device, for people.
        arithmetic: dtype whose peak it is.
        peak_flop_per_s: dense peak (FLOP/s).
        memory_bytes_per_s: (bytes/s).
        network_bytes_per_s: one direction of the link between devices (bytes/s); None where it plays no part.
    """

    hardware: str
    name: str
    arithmetic: str
    peak_flop_per_s: float
    memory_bytes_per_s: float
    network_bytes_per_s: float | None = None

    @property
    def ridge_flop_per_byte(self) -> float:
        """Intensity at which the two bounds meet (FLOP/byte)."""
        return self.peak_flop_per_s / self.memory_bytes_per_s


def roofline_points(
    deployment: Deployment, phase: PlotPhase, batches: Iterable[int], context: int, new_tokens: int
) -> list[RooflinePoint]:
    """One point a batch for each group of operators that multiplies matrices, and one for the whole pass.

    The scan of a recurrent layer multiplies none, but belongs to those that do: its bytes and its time count
    with theirs. Elementwise kernels count in the whole pass alone.
    """
    points: list[RooflinePoint] = []
    for batch in batches:
        timed = time_phase(deployment, phase, batch, context, None if phase == "decode" else new_tokens)
        groups: dict[str, list[OperatorTime]] = {}
        for time in timed.operators:
            group = GROUPS.get(time.operator.name)
            if group is not None or np.any(np.asarray(time.operator.cost.matmul_flops) > 0):
                groups.setdefault(group or OTHER, []).append(time)
        parts = {name: (total_cost(times), _seconds(times)) for name, times in groups.items()}
        parts[EVERYTHING] = (timed.cost, float(timed.seconds))
        points += [
            RooflinePoint(
                hardware=deployment.machine.profile.id,
                model=deployment.model.name,
                phase=phase,
                group=name,
                batch=batch,
                context=context,
                new_tokens=1 if phase == "decode" else new_tokens,
                matmul_flops=float(cost.matmul_flops),
                bytes_moved=float(cost.bytes_moved),
                network_bytes=float(cost.network_bytes),
                seconds=seconds,
            )
            for name, (cost, seconds) in parts.items()
        ]
    return points


def roofs(deployment: Deployment, phases: Sequence[PlotPhase]) -> list[Roof]:
    """The roofs that passes of a deployment run under, one for each dtype of their arithmetic.

    The link between devices is a roof where several devices share the work and the profile states it. No
    profile states the bandwidth of a last-level cache, so there is no roof of it.
    """
    profile = deployment.machine.profile
    used: dict[str, None] = {}
    for phase in phases:
        for time in time_phase(deployment, phase, 1, 1, 1).operators:
            if time.operator.cost.matmul_flops > 0:
                used[time.operator.arithmetic] = None
    shared = deployment.parallelism.devices > 1
    return [
        Roof(
            profile.id,
            profile.name,
            arithmetic,
            profile.peak_flop_per_s(arithmetic),
            profile.bandwidth_bytes_per_s,
            deployment.machine.link_bytes_per_s() if shared else None,
        )
        for arithmetic in used
    ]


def _seconds(times: Iterable[OperatorTime]) -> float:
    return float(sum(float(time.seconds) for time in times))
