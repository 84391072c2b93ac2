"""A capacity answer as people read it: the answer, what it rests on, the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.output.tables import Columns, Quantity, not_modeled_text, readable, render
from rooflines.rows import as_columns

if TYPE_CHECKING:
    from rooflines.studies.capacity import Capacity

_NAMED: Final = {"option": "option", "drafter": "drafter"}
_MEMORY: Final = {
    **_NAMED,
    "weights_bytes": "weights",
    "drafter_weights_bytes": "drafter weights",
    "sequence_bytes": "a sequence",
    "mean_context": "of positions",
    "reserve_bytes": "reserve",
    "capacity_bytes": "capacity",
    "sequences_that_fit": "sequences that fit",
    "sequences_at_once": "run at once",
}
# A column `A..B` is an interval: its ends by key.
_SATURATION: Final = {
    "saturation_requests_per_s": "saturates at requests/s",
    "saturation_low_requests_per_s..saturation_high_requests_per_s": "saturation 90 %",
}
_GAIN: Final = {
    "goodput_over_plain": "over plain",
    "goodput_over_plain_low..goodput_over_plain_high": "over plain 90 %",
}
_CARRIED: Final = {
    **_NAMED,
    **_SATURATION,
    "goodput_requests_per_s": "goodput requests/s",
    "goodput_low_requests_per_s..goodput_high_requests_per_s": "goodput 90 %",
    **_GAIN,
    "goodput_tokens_per_s_per_card": "goodput tokens/s/card",
}
# Without a promise the goodput is the saturation rate.
_SATURATED: Final = {
    **_NAMED,
    **_SATURATION,
    **_GAIN,
    "goodput_tokens_per_s_per_card": "tokens/s/card",
}
_NEEDED: Final = {
    **_NAMED,
    "engines": "engines",
    "prefill_engines": "of them prefill",
    "cards": "cards",
    "cards_low..cards_high": "cards 90 %",
    "tokens_per_s_per_card": "tokens/s/card",
    "price_per_hour": "price/hour",
    "price_per_million_tokens": "price/M tokens",
    "energy_upper_bound_j_per_token": "J/token at most (TDP)",
}
_TIMES: Final = {
    "batch": "batch",
    "draft_length": "draft",
    "utilisation": "utilisation",
    "tpot_s": "TPOT",
    "tpot_low_s..tpot_high_s": "TPOT 90 %",
    "ttft_s": "TTFT",
    "ttft_low_s..ttft_high_s": "TTFT 90 %",
}
_GAPS: Final = {"gap_p50_s": "step gap p50", "gap_p95_s": "step gap p95", "gap_p99_s": "step gap p99"}
_CLOSED: Final = {
    **_NAMED,
    "concurrency": "at once",
    "waiting": "waiting",
    "requests_per_s": "requests/s",
    "batch": "batch",
    "draft_length": "draft",
    "tpot_s": "TPOT",
    "tpot_low_s..tpot_high_s": "TPOT 90 %",
    "ttft_s": "TTFT",
    "ttft_low_s..ttft_high_s": "TTFT 90 %",
    "tokens_per_s_per_card": "tokens/s/card",
    "low_tokens_per_s_per_card..high_tokens_per_s_per_card": "tokens/s/card 90 %",
}
_EXCHANGE: Final = {
    "option": "option",
    "phase": "phase",
    "tokens_per_step": "tokens/step",
    "exchange_s": "exchange",
    "share_of_step": "share of step",
    "bound": "bound",
}


_INTERVALS: Final = (
    "Intervals (in brackets, and as columns) hold 90 % of the cases: what kernels, engines and waits for the "
    "first token were off by where they were measured"
)


def capacity_text(answer: Capacity, fmt: str) -> str:
    """An answer as people read it, in ``text`` or ``markdown``.

    Raises:
        InputError: an unknown format.
    """
    parts = [
        answer.text,
        basis_text(answer),
        *(render(columns, fmt, title) for title, columns in capacity_tables(answer).items()),
        not_modeled_text(answer.not_modeled),
    ]
    return "\n\n".join(parts)


def capacity_columns(answer: Capacity) -> Columns:
    """The rows of an answer by column, for machines."""
    return as_columns(answer.rows)


def capacity_tables(answer: Capacity) -> dict[str, Columns]:
    """The tables of an answer by title; times and sizes as `Quantity`."""
    percentile = f"p{100 * answer.question.share:g}"
    tails = {"tpot_quantile_s": f"TPOT {percentile}", "ttft_quantile_s": f"TTFT {percentile}", **_GAPS}
    carried = _CARRIED if answer.question.objective.promises else _SATURATED
    by_load = {**_NAMED, "rate_requests_per_s": "requests/s", "overloaded": "overloaded"}
    fed = {**by_load, "prefill_engines": "prefill engines"}
    speedup = {"speedup": "speedup", "speedup_low..speedup_high": "speedup 90 %"}
    loaded = answer.question.rate is not None or answer.trace is not None
    found = {
        "Memory of one card": _table(answer.memory, _MEMORY),
        "What one engine carries": _table(answer.rows, carried),
        "What the load needs" if loaded else "One engine at goodput": _table(answer.rows, _NEEDED),
        "One engine": _table(answer.rows, {**_NAMED, **_TIMES}),
        "One engine: percentiles": _table(answer.rows, {**_NAMED, **tails}),
        "One engine by load": _table(
            answer.loads, {**fed, **_TIMES, **speedup, "tokens_per_s_per_card": "tokens/s/card"}
        ),
        "One engine by load: percentiles": _table(answer.loads, {**by_load, **tails}),
        "One engine by requests at once, all sent at the start": _table(answer.closed, _CLOSED),
        "Expert exchange: decode and prefill": _table(answer.exchanges, _EXCHANGE),
    }
    return {title: columns for title, columns in found.items() if _says_something(columns)}


def _says_something(columns: Columns) -> bool:
    """Whether a table holds more than names."""
    return bool(set(columns) - {*_NAMED.values(), "requests/s", "overloaded"})


def basis_text(answer: Capacity) -> str:
    """What the numbers rest on, and what their intervals mean."""
    sure = all(row["saturation_low_requests_per_s"] is None for row in answer.rows)
    intervals = "No intervals: nothing states how wrong these times are" if sure else _INTERVALS
    return f"Basis: {'; '.join(answer.basis)}. {intervals}."


# What is 0 where engines do both, or where no drafter has weights of its own.
_WHERE_ANY: Final = ("prefill_engines", "drafter_weights_bytes")


def _table(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Columns:
    """The columns that hold anything; names that never change are left out."""
    columns: dict[str, Sequence[object]] = {}
    for key, heading in names.items():
        values = [_cell(row, key) for row in rows]
        empty = all(value is None for value in values)
        constant = key in ("option", "drafter", "overloaded") and len(rows) > 1 and len(set(values)) == 1
        if not empty and not constant:
            columns[heading] = values
    return columns


def _cell(row: Mapping[str, Any], key: str) -> object:
    """A value with its unit, or an interval: ``9.83 ms to 24.9 ms``."""
    if (key in _WHERE_ANY and not row[key]) or (key == "draft_length" and row["drafter"] == "none"):
        return None
    if key == "utilisation":
        return None if row[key] is None else f"{row[key]:.0%}"
    low, dots, high = key.partition("..")
    if not dots:
        return _quantity(key, row[key])
    if row[low] is None:
        return None
    if row[high] is None:
        return f"{readable(_quantity(low, row[low]))} {'to overload' if high.endswith('_s') else 'or more'}"
    return f"{readable(_quantity(low, row[low]))} to {readable(_quantity(high, row[high]))}"


def _quantity(key: str, value: object) -> object:
    if value is None or key.endswith("_per_s"):
        return value
    if key.endswith("_s"):
        return Quantity(float(str(value)), "s")
    return Quantity(float(str(value)), "byte") if key.endswith("_bytes") else value
