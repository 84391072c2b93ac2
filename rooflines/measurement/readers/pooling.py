"""Survival of several intervals or requests, pooled by the cycles behind each.

Rates by position are printed rounded, and the cycles that they are over often are not printed at all; but the
accepted tokens are, and accepted = cycles x (a_1 + a_2 + ...), so that cycles = accepted / sum of the rates.
Where nothing was accepted, the drafted tokens stand in: cycles = drafted / positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooflines.errors import FileFormatError
from rooflines.measurement.readers.results import AcceptanceRecord


@dataclass(frozen=True, slots=True)
class Interval:
    """What is printed of one interval or request.

    Attributes:
        accepted: drafted tokens that were accepted.
        drafted: tokens that were drafted.
        rates: survival of each position.
    """

    accepted: int
    drafted: int
    rates: tuple[float, ...]

    @property
    def cycles(self) -> float:
        """Cycles behind the rates."""
        total = sum(self.rates)
        return self.accepted / total if self.accepted and total > 0 else self.drafted / len(self.rates)


def pooled_survival(intervals: Sequence[Interval], *, label: str, meaning: str) -> AcceptanceRecord:
    """Pool rates by position over intervals.

    A position that an interval does not have (its drafts were shorter) counts as never accepted there.

    Raises:
        FileFormatError: nothing was drafted.
    """
    cycles = sum(interval.cycles for interval in intervals)
    if cycles <= 0:
        raise FileFormatError(f"{label}: nothing was drafted, so there is no acceptance to read")
    length = max(len(interval.rates) for interval in intervals)
    survival = tuple(
        sum(one.cycles * one.rates[place] for one in intervals if place < len(one.rates)) / cycles
        for place in range(length)
    )
    return AcceptanceRecord(
        label=label,
        definition="survival",
        values=survival,
        draft_length=length,
        cycles=round(cycles),
        tokens_per_cycle=1.0 + sum(survival),
        meaning=meaning,
    )
