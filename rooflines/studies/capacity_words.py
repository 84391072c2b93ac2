"""A capacity answer in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rooflines.serving.goodput import Objective
from rooflines.serving.workload import Workload
from rooflines.units import format_quantity

Row = Mapping[str, Any]
_HALF: Final = 0.5
_BINDS: Final = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
    "network": "the network",
    "overhead": "per-kernel overhead",
}


def capacity_text(
    target: str,
    workload: Workload,
    rows: Sequence[Row],
    loads: Sequence[Row],
    crossovers: Sequence[Row],
    *,
    rate: float | None,
    objective: Objective,
) -> str:
    """What the load needs or an engine carries, the best option, and where speculation stops paying."""
    asked = f"{workload.mean_prompt:,.0f} tokens in, {workload.mean_output:,.0f} out"
    load = "" if rate is None else f"{rate:,.4g} requests/s of "
    sentences = [f"{target}, {load}{asked}{_promise(objective)}:"]
    if rate is not None:
        sentences += [_needs(row) for row in rows]
        sentences += _best(rows)
        if not objective.promises:
            sentences.append("Nothing was promised, so these are the fewest that do not overflow.")
    elif objective.promises:
        sentences += [_carries(row) for row in rows]
    else:
        sentences += [_overflows(row, loads) for row in rows]
    sentences += [_gains(row) for row in rows if row["goodput_over_plain"]]
    sentences += [_stops(end) for end in crossovers]
    return "\n".join(sentences)


def _promise(objective: Objective) -> str:
    parts = [
        f"{name} within {format_quantity(value, 's')}"
        for name, value in (("TPOT", objective.tpot_s), ("TTFT", objective.ttft_s))
        if value is not None
    ]
    return f", {' and '.join(parts)} for {objective.share:.0%}" if parts else ""


def who(row: Row) -> str:
    """A way to serve in words."""
    how = "plain decoding" if row["drafter"] == "none" else row["drafter"]
    return f"{row['option']} with {how}"


def _needs(row: Row) -> str:
    if row["cards"] is None:
        return f"{who(row)} cannot keep the promise at any load: {_alone(row)}."
    draft = "" if row["drafter"] == "none" else f", draft {row['draft_length']}"
    prompts = (
        f", {row['prefill_engines']} of {row['engines']} engines for prompts"
        if row["prefill_engines"]
        else ""
    )
    return f"{who(row)} needs {_cards(row)}{prompts}: batch {row['batch']:.3g}{draft}, {_times(row)}."


def _carries(row: Row) -> str:
    if not row["goodput_tokens_per_s_per_card"]:
        return f"{who(row)} cannot keep the promise at any load: {_alone(row)}."
    most = f"overflows at {row['saturation_requests_per_s']:.3g}"
    return f"{who(row)} carries {_rate(row, 'goodput')} requests/s an engine within it, and {most}."


def _alone(row: Row) -> str:
    tpot, ttft = (format_quantity(row[f"alone_{name}_s"], "s") for name in ("tpot", "ttft"))
    return f"even a request that meets no other has TPOT {tpot} and TTFT {ttft} on average"


def _overflows(row: Row, loads: Sequence[Row]) -> str:
    """What is worth knowing of an engine where neither a load nor a promise is given."""
    most = f"{who(row)} overflows at {_rate(row, 'saturation')} requests/s an engine"
    half = min(
        (one for one in loads if (one["option"], one["drafter"]) == (row["option"], row["drafter"])),
        key=lambda one: abs(one["plain_load"] - _HALF),
    )
    if half["overloaded"]:
        return f"{most}."
    return f"{most}; at {half['rate_requests_per_s']:.3g} the batch is {half['batch']:.3g}, {_times(half)}."


def _rate(row: Row, what: str) -> str:
    """Requests per second with their interval: ``12.5 (10.9-14.1)``."""
    value = f"{row[f'{what}_requests_per_s']:.3g}"
    low, high = row[f"{what}_low_requests_per_s"], row[f"{what}_high_requests_per_s"]
    return value if low is None else f"{value} ({low:.3g}-{high:.3g})"


def _times(row: Row) -> str:
    return ", ".join(f"{name.upper()} {_time(row, name)}" for name in ("tpot", "ttft"))


def _time(row: Row, name: str) -> str:
    """A time with its interval: ``14.5 ms (12.4 ms to 17.2 ms)``, or to an overload."""
    value = format_quantity(row[f"{name}_s"], "s")
    low, high = row[f"{name}_low_s"], row[f"{name}_high_s"]
    if low is None:
        return value
    end = "an overload" if high is None else format_quantity(high, "s")
    return f"{value} ({format_quantity(low, 's')} to {end})"


def _gains(row: Row) -> str:
    """How much more an engine carries with drafts than without, and whether that can be told."""
    name = f"{row['drafter']} on {row['option']}"
    value, low, high = (row[f"goodput_over_plain{end}"] for end in ("", "_low", "_high"))
    if row["goodput_over_plain_low"] == row["goodput_over_plain_high"] == 1.0:
        return f"{name} carries what plain decoding does: at that load it drafts nothing."
    said = f"{name} carries {value:.2f} times what plain decoding does"
    if low is None:
        return f"{said}."
    end = f"({low:.2f}-{high:.2f})" if high is not None else f"({low:.2f} or more)"
    unsure = low <= 1.0 and (high is None or high >= 1.0)
    return f"{said} {end}{', so that it cannot be told which is more' if unsure else ''}."


def _best(rows: Sequence[Row]) -> list[str]:
    """The option to take: the cheapest where all have prices, else the one with the fewest cards."""
    able = [row for row in rows if row["cards"] is not None]
    if len(able) < 2:  # noqa: PLR2004 - a best needs two
        return []
    if all(row["price_per_hour"] is not None for row in able):
        best = min(able, key=lambda row: row["price_per_hour"])
        if all(row["price_per_hour"] == best["price_per_hour"] for row in able):
            return [f"All cost {best['price_per_hour']:,.4g} an hour at the prices given."]
        return [f"Cheapest: {who(best)}, {best['price_per_hour']:,.4g} an hour at the prices given."]
    best = min(able, key=lambda row: row["cards"])
    same = [row for row in able if row["cards"] == best["cards"]]
    if len(same) == len(able):
        return [f"All need {_count(best['cards'])}."]
    return [f"Fewest cards: {who(best)}."]


def _stops(end: Row) -> str:
    name = f"{end['drafter']} on {end['option']}"
    if end["batch"] is None:
        doubt = "" if end["batch_low"] is None else f" (it may stop from batch {end['batch_low']} on)"
        return f"{name} still pays at batch {end['searched_to']}, the largest that runs{doubt}."
    if end["batch"] == 1:
        doubt = ""
        if end["interval"] and end["batch_high"] != 1:
            most = (
                f"batch {end['searched_to']}" if end["batch_high"] is None else f"batch {end['batch_high']}"
            )
            doubt = f" (it may pay up to {most})"
        return f"{name} pays at no batch{doubt}."
    where = f", where {_BINDS[end['bound']]} binds the {end['operator']} of the verify pass"
    rate = f"{end['rate_requests_per_s']:.3g} requests/s an engine"
    return f"{name} stops paying at batch {end['batch']}{_range(end)} ({rate}){where}."


def _range(end: Row) -> str:
    """The interval of the batch: `` (between 40 and 71)``, or beyond all that run."""
    if not end["interval"] or (end["batch_low"], end["batch_high"]) == (end["batch"], end["batch"]):
        return ""
    if end["batch_high"] is None:
        return f", {end['batch_low']} at the earliest"
    return f", between {end['batch_low']} and {end['batch_high']}"


def _cards(row: Row) -> str:
    """Cards with their interval: ``9 cards (8-11)``."""
    count, low, high = _count(row["cards"]), row["cards_low"], row["cards_high"]
    if low is None or low == high:
        return count
    return (
        f"{count} ({low:,}-{high:,})"
        if high is not None
        else f"{count} ({low:,} or more, if any number does)"
    )


def _count(cards: int) -> str:
    return f"{cards:,} card" if cards == 1 else f"{cards:,} cards"
