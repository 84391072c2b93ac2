"""Where speculation stops paying: the smallest batch at which no draft length wins, and what binds there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.timing.deployment import Deployment
from rooflines.timing.roofline import PassTime


@dataclass(frozen=True, slots=True)
class Crossover:
    """The end of the region in which speculation pays.

    Attributes:
        batch: smallest batch at which the best speedup over the draft lengths is 1 or less; None where it
            still pays at the largest batch searched.
        searched_to: the largest batch searched.
        operator: the operator of the verify pass that grew most over a plain step, at `batch`.
        bound: what binds that operator there.
    """

    batch: int | None
    searched_to: int
    operator: str | None = None
    bound: str | None = None


def crossover(
    target: Deployment,
    drafter: Drafter,
    acceptance: Acceptance,
    draft_lengths: Sequence[int],
    context: float,
    *,
    largest_batch: int,
    overhead_s: float = 0.0,
) -> Crossover:
    """Search every batch from 1 to `largest_batch` (0: none fits, so there is nothing to cross).

    Every batch is priced rather than bisected, since with mixtures of experts the speedup is not monotonic
    in the batch: a loss at batch 1 may recover and come back later. The *last* loss-free batch decides: the
    crossover is the smallest batch from which on no draft length wins.
    """
    batches = np.arange(1, largest_batch + 1, dtype=float)[:, None]
    lengths = np.asarray([length for length in draft_lengths if length > 0], dtype=float)[None, :]
    if lengths.size == 0 or largest_batch < 1:
        return Crossover(None, largest_batch)
    times = cycle_times(target, drafter, batches, context, lengths, overhead_s=overhead_s)
    speedups = np.broadcast_to(cycle(times, acceptance).speedup, (largest_batch, lengths.size))
    wins = np.flatnonzero(speedups.max(axis=1) > 1.0)
    first_loss = 0 if wins.size == 0 else int(wins[-1]) + 1
    if first_loss >= largest_batch:
        return Crossover(None, largest_batch)
    batch = first_loss + 1
    length = float(lengths[0, speedups[first_loss].argmax()])
    here = cycle_times(target, drafter, float(batch), context, length, overhead_s=overhead_s)
    operator, bound = grown_most(here.target, here.verify)
    return Crossover(batch, largest_batch, operator, bound)


def grown_most(plain: PassTime, verify: PassTime) -> tuple[str, str]:
    """The operator whose time grew most from a plain step to a verify pass (scalars), and what binds it.

    Operators of equal name (attention in windowed and full layers, say) count together; the largest of them
    says what binds.
    """
    before, after = _by_name(plain), _by_name(verify)
    name = max(after, key=lambda known: after[known] - before.get(known, 0.0))
    largest = max(
        (time for time in verify.operators if time.operator.name == name),
        key=lambda time: float(time.seconds),
    )
    return name, str(largest.bound)


def _by_name(times: PassTime) -> dict[str, float]:
    found: dict[str, float] = {}
    for time in times.operators:
        found[time.operator.name] = found.get(time.operator.name, 0.0) + float(time.seconds)
    return found
