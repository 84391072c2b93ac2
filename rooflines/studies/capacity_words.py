"""A capacity answer in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rooflines.serving.goodput import Objective
from rooflines.serving.workload import Workload
from rooflines.units import format_quantity

_BINDS: Final = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
    "network": "the network",
    "overhead": "per-kernel overhead",
}


def capacity_text(
    target: str,
    workload: Workload,
    rows: Sequence[Mapping[str, Any]],
    crossovers: Sequence[Mapping[str, Any]],
    *,
    rate: float | None,
    objective: Objective,
) -> str:
    """What the load needs or an engine carries, the best option, and where speculation stops paying."""
    asked = f"{workload.mean_prompt:,.0f} tokens in, {workload.mean_output:,.0f} out"
    load = "" if rate is None else f"{rate:,.4g} requests/s of "
    sentences = [f"{target}, {load}{asked}{_promise(objective)}:"]
    sentences += [_carries(row) if rate is None else _needs(row) for row in rows]
    if rate is not None:
        sentences += _best(rows)
        if not objective.promises:
            sentences.append("Nothing was promised, so these are the fewest that do not overflow.")
    sentences += [_stops(end) for end in crossovers]
    return " ".join(sentences)


def _promise(objective: Objective) -> str:
    parts = [
        f"{name} within {format_quantity(value, 's')}"
        for name, value in (("TPOT", objective.tpot_s), ("TTFT", objective.ttft_s))
        if value is not None
    ]
    return f", {' and '.join(parts)} for {objective.share:.0%}" if parts else ""


def _who(row: Mapping[str, Any]) -> str:
    how = "plain decoding" if row["drafter"] == "none" else row["drafter"]
    return f"{row['option']} with {how}"


def _needs(row: Mapping[str, Any]) -> str:
    if row["cards"] is None:
        return f"{_who(row)} cannot keep the promise at any load."
    times = f"TPOT {format_quantity(row['tpot_s'], 's')}, TTFT {format_quantity(row['ttft_s'], 's')}"
    draft = "" if row["drafter"] == "none" else f", draft {row['draft_length']}"
    return f"{_who(row)} needs {_cards(row['cards'])} (batch {row['batch']:.3g}{draft}, {times})."


def _carries(row: Mapping[str, Any]) -> str:
    most = f"overflows at {row['saturation_requests_per_s']:.3g} requests/s an engine"
    if row["goodput_requests_per_s"] <= 0:
        return f"{_who(row)} cannot keep the promise at any load ({most})."
    if row["tpot_s"] is None:
        return f"{_who(row)} {most}."
    return f"{_who(row)} carries {row['goodput_requests_per_s']:.3g} requests/s an engine ({most})."


def _best(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The option to take: the cheapest where all have prices, else the one with the fewest cards."""
    able = [row for row in rows if row["cards"] is not None]
    if len(able) < 2:  # noqa: PLR2004 - a best needs two
        return []
    if all(row["price_per_hour"] is not None for row in able):
        best = min(able, key=lambda row: row["price_per_hour"])
        if all(row["price_per_hour"] == best["price_per_hour"] for row in able):
            return [f"All cost {best['price_per_hour']:,.4g} an hour at the prices given."]
        return [f"Cheapest: {_who(best)}, {best['price_per_hour']:,.4g} an hour at the prices given."]
    best = min(able, key=lambda row: row["cards"])
    same = [row for row in able if row["cards"] == best["cards"]]
    if len(same) == len(able):
        return [f"All need {_cards(best['cards'])}."]
    return [f"Fewest cards: {_who(best)}."]


def _stops(end: Mapping[str, Any]) -> str:
    who = f"{end['drafter']} on {end['option']}"
    if end["batch"] is None:
        return f"{who} still pays at batch {end['searched_to']}, the largest that runs."
    if end["batch"] == 1:
        return f"{who} pays at no batch."
    where = f", where {_BINDS[end['bound']]} binds the {end['operator']} of the verify pass"
    return (
        f"{who} stops paying at batch {end['batch']} ({end['rate_requests_per_s']:.3g} requests/s an engine)"
        f"{where}."
    )


def _cards(count: int) -> str:
    return f"{count} card" if count == 1 else f"{count} cards"
