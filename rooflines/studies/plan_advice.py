"""What a plan recommends at one batch, out of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rooflines.speculation.drafters.base import Drafter
from rooflines.studies.plan_words import cycle_words

Row = dict[str, Any]
# What a batch that does not fit has no answer to.
_UNKNOWN: Final = (
    "drafter",
    "draft_length",
    "verify_width",
    "speedup",
    "speedup_low",
    "speedup_high",
    "certain",
    "measured_length",
    "longest_compared",
    "break_even_acceptance",
    "break_even_cost_ratio",
)


def best_row(batch: int, rows: Iterable[Row]) -> Row | None:
    """The row of largest speedup at one batch, the shortest draft of equals; None where nothing fits."""
    here = [row for row in rows if row["batch"] == batch and row["speedup"] is not None]
    return max(here, key=lambda row: (row["speedup"], -row["draft_length"])) if here else None


@dataclass(frozen=True, slots=True)
class Reach:
    """How far what is known of a drafter reaches.

    Attributes:
        measured: draft length up to which its acceptance was measured; None without an end.
        compared: the longest draft of those compared, where it could draft more; None where it could not, or
            was asked for one length alone.
    """

    measured: int | None
    compared: int | None


def reach_of(drafter: Drafter, asked: Sequence[int], measured: int | None) -> Reach:
    """How far what is known of a drafter reaches.

    Args:
        drafter: who proposes.
        asked: draft lengths to compare.
        measured: draft length up to which its acceptance was measured; None without an end.
    """
    longest = max(drafter.draft_lengths(asked))
    more = longest + 1 in drafter.draft_lengths((longest + 1,))
    several = len({length for length in asked if length > 0}) > 1
    return Reach(measured, longest if more and several else None)


def recommend(batch: int, rows: Iterable[Row], memory: Sequence[Row], reach: Mapping[str, Reach]) -> Row:
    """The best of all drafters, draft lengths and trees at one batch; plain decoding where none wins.

    Args:
        batch: B.
        rows: of the plan, best trees included.
        memory: of the plan.
        reach: of what is known of each drafter.
    """
    best = best_row(batch, rows)
    room = max(row["largest_batch"] for row in memory if row["batch"] == batch)
    answer: Row = {"batch": batch, "fits": best is not None, "largest_batch": room}
    if best is None:
        return {**answer, "speculate": False, **dict.fromkeys(_UNKNOWN)}
    wins = best["speedup"] > 1.0 and best["draft_length"] > 0
    known = reach[best["drafter"]]
    return {
        **answer,
        "speculate": wins,
        "drafter": best["drafter"],
        "draft_length": best["draft_length"] if wins else 0,
        "verify_width": best["verify_width"] if wins else 1,
        "speedup": best["speedup"],
        "speedup_low": best["speedup_low"],
        "speedup_high": best["speedup_high"],
        "certain": _certain(best),
        "measured_length": known.measured if wins and best["extrapolated"] else None,
        "longest_compared": wins and best["draft_length"] == known.compared,
        "break_even_acceptance": best["break_even_acceptance"],
        "break_even_cost_ratio": best["break_even_cost_ratio"],
    }


def reasons(batches: Sequence[int], rows: Sequence[Row], *, always: bool) -> dict[int, str]:
    """Why it pays or not, by batch: where it does not, and everywhere if so asked.

    Args:
        batches: B.
        rows: of the plan, best trees included.
        always: also say why where it pays.
    """
    best = {batch: best_row(batch, rows) for batch in batches}
    return {
        batch: cycle_words(row)
        for batch, row in best.items()
        if row is not None and row["draft_length"] > 0 and (always or row["speedup"] <= 1.0)
    }


def _certain(row: Row) -> bool | None:
    """Whether the interval of a speedup lies on one side of 1; None where it has none."""
    if row["speedup_low"] is None:
        return None
    return bool(row["draft_length"] == 0 or row["speedup_low"] > 1.0 or row["speedup_high"] < 1.0)
