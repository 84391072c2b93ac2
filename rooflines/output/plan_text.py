"""A plan as people read it: the answer, what it rests on, the numbers, what would change it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from rooflines.errors import InputError
from rooflines.output.tables import Columns, document_text, not_modeled_text, quantities, render
from rooflines.rows import as_columns
from rooflines.studies.plan import Plan
from rooflines.studies.plan_price import SCHEDULE_SLACK

# Columns of the tables, with their titles.
_SHOWN: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
    "extrapolated": "extrapolated",
    "verify_width": "verify",
    "tokens_per_cycle": "tokens/cycle",
    "target_step_s": "target step",
    "draft_s": "draft time",
    "verify_s": "verify time",
    "cycle_cost": "cycle cost",
    "cost_ratio": "cost ratio",
    "speedup": "speedup",
    "speedup_low": "from",
    "speedup_high": "to",
    "leviathan_speedup": "Leviathan",
    "tokens_per_s": "tokens/s",
    "verify_bound": "verify bound",
}
_LONG_NUMBER: Final = re.compile(r"\d+\.\d{4,}")
_CYCLES: Final = "Cycles"
# Rows of a table that are read as a whole, and columns that a line holds.
_MANY_ROWS: Final = 64
_MANY_FITS: Final = 24
_MOST_BATCHES: Final = 12
_BUDGET: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
    "verify_length": "verified",
    "verify_positions": "positions",
    "tokens_per_cycle": "tokens/cycle",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_all_verified": "tokens/s, all verified",
    "speedup": "speedup",
}
_TREES: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "depth",
    "nodes": "nodes",
    "widths": "nodes by level",
    "tokens_per_cycle": "tokens/cycle",
    "cycle_cost": "cycle cost",
    "speedup": "speedup",
    "speedup_low": "from",
    "speedup_high": "to",
}
_REALITIES: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
    "memory_bound_width": "memory binds to width",
    "memory_bound_positions": "positions",
    "verify_cost": "verify cost",
    "draft_cost": "draft cost",
    "draft_share": "draft share",
    "accepted": "accepted",
    "lost_to_prefix": "lost to prefix",
    "wrong": "wrong",
}
_MARGINAL: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "position": "token",
    "tokens": "tokens it adds",
    "cost": "steps it costs",
    "speedup": "speedup with it",
    "speedup_gain": "gain",
}


SCHEDULE_TITLE: Final = f"Draft by batch (within {SCHEDULE_SLACK:.0%} of the best)"


def plan_text(answer: Plan, fmt: str) -> str:
    """A plan in any of the formats.

    Raises:
        InputError: an unknown format.
    """
    if fmt == "json":
        return document_text(answer.document())
    if fmt == "csv":
        return render(answer.columns(), fmt)
    if fmt not in ("text", "markdown"):
        raise InputError(f"unknown format {fmt!r}; known: text, markdown, csv, json")
    tables = plan_tables(answer)
    parts = [
        answer.text,
        basis_text(answer),
        *(
            render(columns, fmt, None if title == next(iter(tables)) == _CYCLES else title)
            for title, columns in tables.items()
        ),
        not_modeled_text(answer.not_modeled),
    ]
    return "\n\n".join(parts)


def plan_tables(answer: Plan) -> dict[str, Columns]:
    """The tables of a plan by title, those of speed first; times and sizes as `Quantity`."""
    cycles, memory = _shown_rows(answer), _shown_memory(answer)
    whole = len(cycles) == len(answer.rows)
    best = (
        f"{_CYCLES} of the best draft length of each drafter (--format csv has all {len(answer.rows)} rows)"
    )
    kept = len({row["batch"] for row in memory}) < len(answer.question.batches)
    at = f" at batch {memory[0]['batch']}" if kept else ""
    held = {f"Memory of one device{at}": _memory(memory)}
    if not any(entry["fits"] for entry in answer.recommendation):
        return held
    return {
        **_compared(answer),
        _CYCLES if whole else best: _cycles(answer, cycles),
        **held,
        "What would change the answer": _break_even(answer),
        **({SCHEDULE_TITLE: _schedule(answer)} if answer.schedule else {}),
        **_asked_for(answer),
    }


def basis_text(answer: Plan) -> str:
    """What the numbers rest on."""
    return f"Basis: {answer.basis}. Acceptance: {_acceptance(answer)}."


def _acceptance(answer: Plan) -> str:
    told = [(entry["drafter"], *_rates(entry)) for entry in answer.acceptances]
    if len({(text, source) for _, text, source in told}) == 1:
        _, text, source = told[0]
        return f"{text}, {source}"
    if len({source for *_, source in told}) == 1:
        return f"{', '.join(f'{name} {text}' for name, text, _ in told)}, {told[0][2]}"
    return "; ".join(f"{name} {text}, {source}" for name, text, source in told)


def _rates(entry: dict[str, str]) -> tuple[str, str]:
    """An acceptance and where it comes from; of one that was counted, no more digits than are known."""
    if not entry["source"]:
        return entry["acceptance"], "as given"
    shown = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.4g}", entry["acceptance"])
    return shown, f"from {entry['source']}"


def _schedule(answer: Plan) -> Columns:
    several = len(answer.question.drafters) > 1
    nodes = [round(entry["verify_width"] - 1.0) for entry in answer.schedule]
    return {
        "batch": [
            f"{entry['first_batch']}..{entry['last_batch']}"
            if entry["last_batch"] > entry["first_batch"]
            else entry["first_batch"]
            for entry in answer.schedule
        ],
        **({"drafter": [entry["drafter"] or "none" for entry in answer.schedule]} if several else {}),
        "draft": [entry["draft_length"] for entry in answer.schedule],
        **({"nodes": nodes} if answer.best_trees else {}),
        "speedup at least": [entry["speedup"] for entry in answer.schedule],
    }


def _asked_for(answer: Plan) -> dict[str, Columns]:
    tables = (
        (answer.verify_budget, _BUDGET, "How much of a draft to verify"),
        (_spaced(answer.best_trees), _TREES, "Best tree"),
        (answer.realities, _REALITIES, "Where a cycle goes (in plain decode steps, and in drafted tokens)"),
        (answer.marginal, _MARGINAL, "What each further token adds"),
    )
    return {
        heading: {title: [row[name] for row in rows] for name, title in titles.items()}
        for rows, titles, heading in tables
        if rows
    }


def _spaced(trees: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "widths": " ".join(map(str, row["widths"]))} for row in trees]


def _shown_rows(answer: Plan) -> list[dict[str, Any]]:
    """All rows, or where these are many and of several drafters, the best draft length of each."""
    if len(answer.question.drafters) == 1 or len(answer.rows) <= _MANY_ROWS:
        return answer.rows
    return list(_best_of_each(answer).values())


def _best_of_each(answer: Plan) -> dict[tuple[str, int], dict[str, Any]]:
    """The row of largest speedup of each drafter at each batch, the shortest draft of equals."""
    best: dict[tuple[str, int], dict[str, Any]] = {}
    for row in (*answer.rows, *answer.best_trees):
        known = best.setdefault((row["drafter"], row["batch"]), row)
        if row["speedup"] is not None and row["speedup"] > known["speedup"]:
            best[row["drafter"], row["batch"]] = row
    return best


def _compared(answer: Plan) -> dict[str, Columns]:
    """Drafters side by side, where there are several and several batches, but not more than a line holds."""
    question = answer.question
    if len(question.drafters) == 1 or not 1 < len(question.batches) <= _MOST_BATCHES:
        return {}
    best = _best_of_each(answer)
    names = list(dict.fromkeys(row["drafter"] for row in answer.rows))
    cells = {f"batch {batch}": [_gain(best[name, batch]) for name in names] for batch in question.batches}
    return {"Speedup of each drafter, and its draft length": {"drafter": names, **cells}}


def _gain(row: dict[str, Any]) -> str:
    return "does not fit" if row["speedup"] is None else f"{row['speedup']:.2f} ({row['draft_length']})"


def _shown_memory(answer: Plan) -> list[dict[str, Any]]:
    """All rows, or where these are many, those of the largest batch: only the cache grows with it."""
    if len(answer.memory) <= _MANY_FITS:
        return answer.memory
    return [row for row in answer.memory if row["batch"] == max(answer.question.batches)]


def _cycles(answer: Plan, rows: list[dict[str, Any]]) -> Columns:
    columns = as_columns(rows)
    if len(answer.question.drafters) == 1:
        columns.pop("drafter")
    if not any(columns["extrapolated"]):
        columns.pop("extrapolated")
    return {
        title: quantities(columns[name], "s")
        if name.endswith("_s") and name != "tokens_per_s"
        else columns[name]
        for name, title in _SHOWN.items()
        if name in columns
    }


def _memory(rows: list[dict[str, Any]]) -> Columns:
    names = {
        "batch": "batch",
        "weights_bytes": "weights",
        "drafter_weights_bytes": "drafter",
        "kv_bytes": "KV",
        "drafter_kv_bytes": "drafter KV",
        "reserve_bytes": "reserve",
        "capacity_bytes": "capacity",
        "fits": "fits",
        "largest_batch": "largest batch",
    }
    shown: dict[str, Sequence[object]] = {}
    if len({row["drafter"] for row in rows}) > 1:
        shown["for"] = [row["drafter"] for row in rows]
    for key, title in names.items():
        values = [row[key] for row in rows]
        shown[title] = quantities(values, "byte") if key.endswith("_bytes") else values
    return shown


def _break_even(answer: Plan) -> Columns:
    several = len(answer.question.drafters) > 1
    return {
        "batch": [entry["batch"] for entry in answer.recommendation],
        **({"drafter": [entry["drafter"] for entry in answer.recommendation]} if several else {}),
        "draft": [entry["draft_length"] for entry in answer.recommendation],
        "speedup": [entry["speedup"] for entry in answer.recommendation],
        "from": [entry["speedup_low"] for entry in answer.recommendation],
        "to": [entry["speedup_high"] for entry in answer.recommendation],
        "break-even acceptance": [entry["break_even_acceptance"] for entry in answer.recommendation],
        "break-even cost ratio": [entry["break_even_cost_ratio"] for entry in answer.recommendation],
    }
