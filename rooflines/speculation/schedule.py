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


@dataclass(frozen=True, slots=True)
class Steadiness:
    """What a schedule may lose to be simple.

    Attributes:
        slack: what it may lose at a batch against the best there, as a share.
        shorter: what a change to a shorter draft, or another as long, must gain: the logarithm of the gain
            times the doublings of the batch over which it is had (0.01 is 1 % over a doubling).
        longer: the same of a change to a longer draft.
    """

    slack: float
    shorter: float
    longer: float


def best_by_batch(batches: Sequence[int], speedups: NDArray[np.float64]) -> tuple[ScheduleEntry, ...]:
    """The best column of every batch, the first of equals.

    Args:
        batches: rising; an entry reaches from its first batch to its last one given.
        speedups: shape (batches, choices).

    Raises:
        InputError: no batch, or batches that do not rise from 1.
    """
    return _entries(_rising(batches), speedups, speedups.argmax(axis=1))


def steady_by_batch(
    batches: Sequence[int], speedups: NDArray[np.float64], lengths: Sequence[int], steadiness: Steadiness
) -> tuple[ScheduleEntry, ...]:
    """A column that is nearly the best of every batch, in few ranges whose drafts seldom get longer.

    Times rise in steps where kernels change tiles, so that the best draft of one batch is another than that
    of its neighbours for a gain that no prediction resolves. Verifying gets dearer with the batch, so that
    drafts should get shorter; where a longer one gains over a wide range of batches (experts that are all
    read already), it is chosen.

    Of all schedules it is the one that gives most away least: the logarithm of the best speedup over its
    own, summed over doublings of the batch, with what the steadiness asks for each change.

    Args:
        batches: rising; an entry reaches from its first batch to its last one given.
        speedups: shape (batches, choices), above 0; minus infinity for what may not be chosen.
        lengths: draft length of each choice.
        steadiness: what a change must gain.

    Raises:
        InputError: no batch, or batches that do not rise from 1.
    """
    rows = _rising(batches)
    best = speedups.max(axis=1, keepdims=True)
    lost = np.full(speedups.shape, np.inf)
    np.log(best / speedups, out=lost, where=speedups >= (1.0 - steadiness.slack) * best)
    edges = np.concatenate([rows[:1] - 0.5, (rows[1:] + rows[:-1]) / 2.0, rows[-1:] + 0.5])
    doublings = np.diff(np.log2(edges))
    drafted = np.asarray(lengths, dtype=float)
    longer = drafted[:, None] < drafted[None, :]
    change = np.where(longer, steadiness.longer, steadiness.shorter)
    np.fill_diagonal(change, 0.0)
    return _entries(rows, speedups, _cheapest_path(lost * doublings[:, None], change))


def _rising(batches: Sequence[int]) -> NDArray[np.float64]:
    rows = np.asarray(whole_number(np.asarray(batches, dtype=float), "batch", least=1))
    if rows.ndim != 1 or rows.size == 0 or np.any(np.diff(rows) <= 0):
        raise InputError("give at least one batch, in rising order")
    return rows


def _entries(
    rows: NDArray[np.float64], speedups: NDArray[np.float64], chosen: NDArray[np.intp]
) -> tuple[ScheduleEntry, ...]:
    """The column of every row as ranges."""
    edges = [*np.flatnonzero(np.diff(chosen, prepend=-1)), rows.size]
    return tuple(
        ScheduleEntry(
            first_batch=int(rows[first]),
            last_batch=int(rows[end - 1]),
            choice=int(chosen[first]),
            speedup=float(speedups[first:end, chosen[first]].min()),
        )
        for first, end in pairwise(edges)
    )


def _cheapest_path(cost: NDArray[np.float64], change: NDArray[np.float64]) -> NDArray[np.intp]:
    """The column of each row of least cost in all (Viterbi's algorithm).

    Args:
        cost: of each row and column; infinite where a column may not be chosen.
        change: cost of going from one column to another.
    """
    spent = cost.copy()
    for row in range(1, len(cost)):
        spent[row] += (spent[row - 1, :, None] + change).min(axis=0)
    chosen = np.empty(len(cost), dtype=np.intp)
    chosen[-1] = np.argmin(spent[-1])
    for row in range(len(cost) - 1, 0, -1):
        chosen[row - 1] = np.argmin(spent[row - 1] + change[:, chosen[row]])
    return chosen


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
