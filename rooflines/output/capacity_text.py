"""A capacity answer as people read it: the answer, what it rests on, the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError
from rooflines.output.tables import Columns, quantities, render

if TYPE_CHECKING:
    from rooflines.studies.capacity import Capacity

_FLEET: Final = {
    "option": "option",
    "drafter": "drafter",
    "largest_batch": "largest batch",
    "saturation_requests_per_s": "saturates at requests/s",
    "goodput_requests_per_s": "goodput requests/s",
    "goodput_tokens_per_s_per_card": "goodput tokens/s/card",
    "engines": "engines",
    "cards": "cards",
    "tokens_per_s_per_card": "tokens/s/card",
    "price_per_hour": "price/hour",
    "price_per_million_tokens": "price/M tokens",
    "energy_upper_bound_j_per_token": "energy J/token (upper bound, TDP)",
}
_TIMES: Final = {
    "batch": "batch",
    "draft_length": "draft",
    "utilisation": "utilisation",
    "tpot_s": "TPOT",
    "tpot_quantile_s": "TPOT at share",
    "ttft_s": "TTFT",
    "ttft_quantile_s": "TTFT at share",
    "gap_p50_s": "step gap p50",
    "gap_p95_s": "p95",
    "gap_p99_s": "p99",
}
_CLOSED: Final = {
    "option": "option",
    "drafter": "drafter",
    "concurrency": "at once",
    "requests_per_s": "requests/s",
    "batch": "batch",
    "draft_length": "draft",
    "tpot_s": "TPOT",
    "ttft_s": "TTFT",
    "tokens_per_s_per_card": "tokens/s/card",
}
_EXCHANGE: Final = {
    "option": "option",
    "phase": "phase",
    "tokens_per_step": "tokens/step",
    "exchange_s": "exchange",
    "share_of_step": "share of step",
    "bound": "bound",
}


def capacity_text(answer: Capacity, fmt: str) -> str:
    """An answer in any of the formats.

    Raises:
        InputError: an unknown format.
    """
    if fmt == "json":
        return json.dumps(answer.document(), indent=2, ensure_ascii=False, allow_nan=False)
    if fmt == "csv":
        return render({name: [row[name] for row in answer.rows] for name in answer.rows[0]}, fmt)
    if fmt not in ("text", "markdown"):
        raise InputError(f"unknown format {fmt!r}; known: text, markdown, csv, json")
    parts = [
        answer.text,
        basis_text(answer),
        *(render(columns, fmt, title) for title, columns in capacity_tables(answer).items()),
        not_modeled_text(answer),
    ]
    return "\n\n".join(parts)


def capacity_tables(answer: Capacity) -> dict[str, Columns]:
    """The tables of an answer by title; times as `Quantity`."""
    named = {"option": "option", "drafter": "drafter"}
    loads = {
        **named,
        "rate_requests_per_s": "requests/s",
        "overloaded": "overloaded",
        **_TIMES,
        "tokens_per_s_per_card": "tokens/s/card",
    }
    tables = {
        "What each option carries and needs": _table(answer.rows, _FLEET),
        f"One engine (share: {answer.question.share:.0%})": _table(answer.rows, {**named, **_TIMES}),
        "One engine by load": _table(answer.loads, loads),
    }
    if answer.closed:
        tables["One engine by requests at once, all sent at the start"] = _table(answer.closed, _CLOSED)
    if answer.exchanges:
        tables["Expert exchange: decode and prefill"] = _table(answer.exchanges, _EXCHANGE)
    return tables


def basis_text(answer: Capacity) -> str:
    """What the numbers rest on."""
    return f"Basis: {'; '.join(answer.basis)}."


def not_modeled_text(answer: Capacity) -> str:
    """What the numbers leave out."""
    return "Not modelled: " + "; ".join(answer.not_modeled) + "."


def _table(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Columns:
    """The columns that hold anything; names that never change are left out."""
    columns: dict[str, Sequence[object]] = {}
    for key, heading in names.items():
        values = [row[key] for row in rows]
        empty = all(value is None for value in values)
        constant = key in ("option", "drafter", "overloaded") and len(rows) > 1 and len(set(values)) == 1
        if not empty and not constant:
            is_time = key.endswith("_s") and not key.endswith("_per_s")
            columns[heading] = quantities(values, "s") if is_time else values
    return columns
