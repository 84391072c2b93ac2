"""The best choice for every batch, as ranges: what engines take as a draft length by batch.

Goodput control (TurboSpec, https://arxiv.org/abs/2406.14066) chooses one draft length for all requests of a
batch; which one is best changes with the batch, since verifying gets dearer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance, whole_number

# Cycle cost kappa in plain decode steps of that batch, by (batch, draft length), by broadcasting.
CycleCost: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One choice for a range of batches, both ends included.

    Attributes:
        first_batch: of the range.
        last_batch: of the range.
        choice: which column is best; of `schedule_draft_length`, the draft length.
        speedup: the least among the batches of the range.
    """

    first_batch: int
    last_batch: int
    choice: int
    speedup: float


def best_by_batch(batches: Sequence[int], speedups: NDArray[np.float64]) -> tuple[ScheduleEntry, ...]:
    """The best column of every batch, the first of equals, neighbours of equal choice merged.

    Args:
        batches: rising; an entry reaches from its first batch to its last one given.
        speedups: shape (batches, choices).

    Raises:
        InputError: no batch, or batches that do not rise from 1.
    """
    rows = whole_number(np.asarray(batches, dtype=float), "batch", least=1)
    if rows.ndim != 1 or rows.size == 0 or np.any(np.diff(rows) <= 0):
        raise InputError("give at least one batch, in rising order")
    best = np.argmax(speedups, axis=1)
    edges = [0, *(np.flatnonzero(np.diff(best)) + 1).tolist(), best.size]
    return tuple(
        ScheduleEntry(
            int(rows[first]),
            int(rows[end - 1]),
            int(best[first]),
            float(speedups[first:end, best[first]].min()),
        )
        for first, end in pairwise(edges)
    )


def schedule_draft_length(
    batches: Sequence[int], acceptance: Acceptance, cycle_cost: CycleCost, longest: int
) -> tuple[ScheduleEntry, ...]:
    """The best draft length of every batch, the shortest of equals.

    Args:
        batches: rising.
        acceptance: of the drafter, the same at any batch.
        cycle_cost: kappa(batch, gamma); at gamma = 0 it is what plain decoding costs, 1.
        longest: largest draft length considered; 0 means no speculation.
    """
    lengths = np.arange(int(whole_number(longest, "longest draft length")) + 1, dtype=float)
    rows = np.asarray(batches, dtype=float)
    kappa = np.broadcast_to(cycle_cost(rows[:, None], lengths[None, :]), (rows.size, lengths.size))
    return best_by_batch(batches, np.asarray(acceptance.tokens_per_cycle(lengths)) / kappa)
