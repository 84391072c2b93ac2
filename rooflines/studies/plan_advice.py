"""What a plan recommends at one batch, out of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
    "break_even_acceptance",
    "break_even_cost_ratio",
)


def best_row(batch: int, rows: Iterable[Row]) -> Row | None:
    """The row of largest speedup at one batch, the shortest draft of equals; None where nothing fits."""
    here = [row for row in rows if row["batch"] == batch and row["speedup"] is not None]
    return max(here, key=lambda row: (row["speedup"], -row["draft_length"])) if here else None


def recommend(
    batch: int, rows: Iterable[Row], memory: Sequence[Row], measured: Mapping[str, int | None]
) -> Row:
    """The best of all drafters, draft lengths and trees at one batch; plain decoding where none wins.

    Args:
        batch: B.
        rows: of the plan, best trees included.
        memory: of the plan.
        measured: by drafter, the draft length up to which its acceptance was measured; None without an end.
    """
    best = best_row(batch, rows)
    room = max(row["largest_batch"] for row in memory if row["batch"] == batch)
    answer: Row = {"batch": batch, "fits": best is not None, "largest_batch": room}
    if best is None:
        return {**answer, "speculate": False, **dict.fromkeys(_UNKNOWN)}
    wins = best["speedup"] > 1.0 and best["draft_length"] > 0
    return {
        **answer,
        "speculate": wins,
        "drafter": best["drafter"],
        "draft_length": best["draft_length"] if wins else 0,
        "verify_width": best["verify_width"] if wins else 1.0,
        "speedup": best["speedup"],
        "speedup_low": best["speedup_low"],
        "speedup_high": best["speedup_high"],
        "certain": _certain(best),
        "measured_length": measured[best["drafter"]] if wins and best["extrapolated"] else None,
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
