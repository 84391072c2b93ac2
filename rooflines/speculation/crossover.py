"""Where speculation stops paying: the smallest batch at which no draft length wins, and what binds there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.timing.roofline import PassTime
from rooflines.timing.step_times import StepTimer


@dataclass(frozen=True, slots=True)
class Crossover:
    """The end of the region in which speculation pays.

    Attributes:
        batch: smallest batch at which the best speedup over the draft lengths is 1 or less; None where it
            still pays at the largest batch searched.
        searched_to: the largest batch searched.
        operator: the operator of the verify pass that grew most over a plain step, at `batch`; None where
            passes were measured whole.
        bound: what binds that operator there.
    """

    batch: int | None
    searched_to: int
    operator: str | None = None
    bound: str | None = None


@dataclass(frozen=True, slots=True)
class BatchSearch:
    """The speedup of every batch from 1 on, by draft length.

    Attributes:
        draft_lengths: those compared, without 0; of trees, their depths.
        speedups: shape (batches, draft lengths).
    """

    draft_lengths: tuple[int, ...]
    speedups: NDArray[np.float64]

    @property
    def largest_batch(self) -> int:
        """The last batch searched."""
        return int(self.speedups.shape[0])


def search_batches(
    target: StepTimer,
    drafter: Drafter,
    acceptance: Rates,
    draft_lengths: Sequence[int],
    context: float,
    *,
    largest_batch: int,
    overhead_s: float = 0.0,
    verify_length: int | None = None,
    host: CycleHost = DEVICE_ALONE,
) -> BatchSearch:
    """Price every batch from 1 to `largest_batch` (0: none fits, so there is nothing to search)."""
    lengths = tuple(length for length in draft_lengths if length > 0)
    if not lengths or largest_batch < 1:
        return BatchSearch(lengths, np.zeros((max(largest_batch, 0), len(lengths))))
    batches = np.arange(1, largest_batch + 1, dtype=float)[:, None]
    gammas = np.asarray(lengths, dtype=float)[None, :]
    times = cycle_times(
        target,
        drafter,
        batches,
        context,
        gammas,
        overhead_s=overhead_s,
        verify_length=verify_length,
        host=host,
    )
    speedups = np.asarray(cycle(times, acceptance).speedup, dtype=float)
    return BatchSearch(lengths, np.broadcast_to(speedups, (largest_batch, len(lengths))))


def crossover(
    target: StepTimer,
    drafter: Drafter,
    acceptance: Rates,
    draft_lengths: Sequence[int],
    context: float,
    *,
    largest_batch: int,
    overhead_s: float = 0.0,
    verify_length: int | None = None,
) -> Crossover:
    """Search every batch from 1 to `largest_batch` (0: none fits, so there is nothing to cross).

    Every batch is priced rather than bisected, since with mixtures of experts the speedup is not monotonic
    in the batch: a loss at batch 1 may recover and come back later. The *last* loss-free batch decides: the
    crossover is the smallest batch from which on no draft length wins.
    """
    found = search_batches(
        target,
        drafter,
        acceptance,
        draft_lengths,
        context,
        largest_batch=largest_batch,
        overhead_s=overhead_s,
        verify_length=verify_length,
    )
    return end_of(found, target, drafter, context, verify_length=verify_length)


def end_of(
    found: BatchSearch,
    target: StepTimer,
    drafter: Drafter,
    context: float,
    *,
    verify_length: int | None = None,
) -> Crossover:
    """Where a search stops paying, and what binds there."""
    if not found.draft_lengths or not found.largest_batch:
        return Crossover(None, found.largest_batch)
    wins = np.flatnonzero(found.speedups.max(axis=1) > 1.0)
    first_loss = 0 if wins.size == 0 else int(wins[-1]) + 1
    if first_loss >= found.largest_batch:
        return Crossover(None, found.largest_batch)
    batch = first_loss + 1
    length = float(found.draft_lengths[int(found.speedups[first_loss].argmax())])
    draft = cycle_times(target, drafter, float(batch), context, length, verify_length=verify_length).draft
    plain = target.decode(float(batch), context)
    verify = target.verify(float(batch), context, draft.verify_width, draft.ancestors)
    if not isinstance(plain, PassTime) or not isinstance(verify, PassTime):
        return Crossover(batch, found.largest_batch)
    operator, bound = grown_most(plain, verify)
    return Crossover(batch, found.largest_batch, operator, bound)


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
