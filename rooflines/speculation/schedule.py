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


def best_by_batch(
    batches: Sequence[int], speedups: NDArray[np.float64], slack: float = 0.0
) -> tuple[ScheduleEntry, ...]:
    """The best column of every batch, the first of equals, in the fewest ranges that slack allows.

    Times rise in steps where kernels change tiles, so that the best draft of one batch is another than that
    of its neighbours for a gain that no prediction resolves. With slack a range keeps its column while that
    is nearly the best; where two ranges may meet, they meet where the least is lost.

    Args:
        batches: rising; an entry reaches from its first batch to its last one given.
        speedups: shape (batches, choices), above 0; minus infinity for what may not be chosen.
        slack: what a choice may lose against the best of its batch, as a share.

    Raises:
        InputError: no batch, or batches that do not rise from 1.
    """
    rows = whole_number(np.asarray(batches, dtype=float), "batch", least=1)
    if rows.ndim != 1 or rows.size == 0 or np.any(np.diff(rows) <= 0):
        raise InputError("give at least one batch, in rising order")
    allowed = speedups >= (1.0 - slack) * speedups.max(axis=1, keepdims=True)
    ranges = _fewest_ranges(allowed, speedups)
    chosen = [choice for _, choice in ranges]
    starts = [0]
    for (start, choice), (_, before) in zip(ranges[1:], ranges, strict=False):
        starts.append(_meeting(start, starts[-1] + 1, allowed[:, choice], speedups[:, [before, choice]]))
    edges = [*starts, rows.size]
    return tuple(
        ScheduleEntry(int(rows[first]), int(rows[end - 1]), choice, float(speedups[first:end, choice].min()))
        for (first, end), choice in zip(pairwise(edges), chosen, strict=True)
    )


def _fewest_ranges(allowed: NDArray[np.bool_], speedups: NDArray[np.float64]) -> list[tuple[int, int]]:
    """First row and column of each range; a column that stays allowed longest leaves the fewest of them."""
    rows = np.arange(len(allowed))[:, None]
    # The next row, from each on, at which a column is not allowed.
    barred = np.where(allowed, len(allowed), rows)
    reach = np.minimum.accumulate(barred[::-1], axis=0)[::-1]
    ranges: list[tuple[int, int]] = []
    first = 0
    while first < len(allowed):
        end = int(reach[first].max())
        longest = np.flatnonzero(reach[first] == end)
        mean = np.log(speedups[first:end, longest]).sum(axis=0)
        ranges.append((first, int(longest[np.argmax(mean)])))
        first = end
    return ranges


def _meeting(start: int, least: int, allowed: NDArray[np.bool_], speedups: NDArray[np.float64]) -> int:
    """Where to go from one column to the next so that the product of the speedups is largest.

    Args:
        start: the last row where the next may begin, since the one before ends there.
        least: the first row where it may begin, for the one before to have any.
        allowed: rows of the next, shape (batches,).
        speedups: of the one before and the next, shape (batches, 2).
    """
    barred = np.flatnonzero(~allowed[least:start])
    first = least + (int(barred[-1]) + 1 if barred.size else 0)
    before, after = np.log(speedups[first:start]).T
    # Gain of each row that the next takes over, summed from the end.
    gain = np.cumsum((after - before)[::-1])[::-1]
    return first + int(np.argmax([*gain, 0.0]))


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
