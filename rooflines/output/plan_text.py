"""A plan as people read it: the answer, what it rests on, the numbers, what would change it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from rooflines.errors import InputError
from rooflines.output.tables import Columns, quantities, render
from rooflines.studies.plan import Plan
from rooflines.studies.plan_price import SCHEDULE_SLACK

# Columns of the tables, with their titles.
_SHOWN: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
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
    "depth": "depth",
    "nodes": "nodes",
    "widths": "nodes by level",
    "tokens_per_cycle": "tokens/cycle",
    "cycle_cost": "cycle cost",
    "speedup": "speedup",
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
        return json.dumps(answer.document(), indent=2, ensure_ascii=False, allow_nan=False)
    if fmt == "csv":
        return render(answer.columns(), fmt)
    if fmt not in ("text", "markdown"):
        raise InputError(f"unknown format {fmt!r}; known: text, markdown, csv, json")
    (_, cycles), *others = plan_tables(answer).items()
    parts = [
        answer.text,
        basis_text(answer),
        render(cycles, fmt),
        *(render(columns, fmt, title) for title, columns in others),
        not_modeled_text(answer),
    ]
    return "\n\n".join(parts)


def plan_tables(answer: Plan) -> dict[str, Columns]:
    """The tables of a plan by title, cycles first; times and sizes as `Quantity`."""
    return {
        "Cycles": _cycles(answer),
        "Memory of one device": _memory(answer),
        "What would change the answer": _break_even(answer),
        **({SCHEDULE_TITLE: _schedule(answer)} if answer.schedule else {}),
        **_asked_for(answer),
    }


def basis_text(answer: Plan) -> str:
    """What the numbers rest on."""
    return f"Basis: {answer.basis}. Acceptance: {_acceptance(answer)}, as given."


def not_modeled_text(answer: Plan) -> str:
    """What the numbers leave out."""
    return "Not modelled: " + "; ".join(answer.not_modeled) + "."


def _acceptance(answer: Plan) -> str:
    texts = {entry["acceptance"] for entry in answer.acceptances}
    if len(texts) == 1:
        return texts.pop()
    return ", ".join(f"{entry['drafter']} {entry['acceptance']}" for entry in answer.acceptances)


def _schedule(answer: Plan) -> Columns:
    several = len(answer.question.drafters) > 1
    return {
        "batch": [
            f"{entry['first_batch']}..{entry['last_batch']}"
            if entry["last_batch"] > entry["first_batch"]
            else entry["first_batch"]
            for entry in answer.schedule
        ],
        **({"drafter": [entry["drafter"] or "none" for entry in answer.schedule]} if several else {}),
        "draft": [entry["draft_length"] for entry in answer.schedule],
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


def _cycles(answer: Plan) -> Columns:
    columns = answer.columns()
    if len(set(columns["drafter"])) == 1:
        columns.pop("drafter")
    return {
        title: quantities(columns[name], "s")
        if name.endswith("_s") and name != "tokens_per_s"
        else columns[name]
        for name, title in _SHOWN.items()
        if name in columns
    }


def _memory(answer: Plan) -> Columns:
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
    if len({row["drafter"] for row in answer.memory}) > 1:
        shown["for"] = [row["drafter"] for row in answer.memory]
    for key, title in names.items():
        values = [row[key] for row in answer.memory]
        shown[title] = quantities(values, "byte") if key.endswith("_bytes") else values
    return shown


def _break_even(answer: Plan) -> Columns:
    return {
        "batch": [entry["batch"] for entry in answer.recommendation],
        "draft": [entry["draft_length"] for entry in answer.recommendation],
        "speedup": [entry["speedup"] for entry in answer.recommendation],
        "from": [entry["speedup_low"] for entry in answer.recommendation],
        "to": [entry["speedup_high"] for entry in answer.recommendation],
        "break-even acceptance": [entry["break_even_acceptance"] for entry in answer.recommendation],
        "break-even cost ratio": [entry["break_even_cost_ratio"] for entry in answer.recommendation],
    }
