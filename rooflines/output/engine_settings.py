"""Engine settings that people paste, from a plan."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from rooflines.engines.settings import Advice, Range, StepCost, settings_text
from rooflines.errors import InputError, UnknownNameError
from rooflines.models.catalogue import load_preset
from rooflines.studies.plan import Plan

# EAGLE-2 drafts a tree unless told otherwise (EAGLE-3, arXiv 2503.01840, appendix A).
_TOP_K: Final = {"eagle2": 10}
# Families whose model is no checkpoint: `quantized:int4` names a format.
_DERIVED: Final = frozenset({"quantized"})
_REPOSITORY: Final = re.compile(r"https://huggingface\.co/([^/]+/[^/]+)/")


def engine_settings(plan: Plan, engine: str) -> str:
    """What to tell an engine so that it does what a plan recommends.

    Raises:
        UnknownNameError: no such engine.
        InputError: the plan answers for no batch, recommends several drafters (an engine runs one), or one
            that the engine cannot run.
    """
    return settings_text(advice_of(plan), engine)


def advice_of(plan: Plan) -> Advice:
    """The schedule of a plan as advice to an engine.

    Raises:
        InputError: the plan answers for no batch, or recommends several drafters.
    """
    if not plan.schedule:
        raise InputError("nothing of this plan fits in memory, so there is nothing to set")
    drafters = dict.fromkeys(entry["drafter"] for entry in plan.schedule if entry["draft_length"] > 0)
    if len(drafters) > 1:
        raise InputError(
            f"an engine runs one drafter, and this plan recommends {', '.join(drafters)} at different "
            "batches: ask for the settings of one --drafter"
        )
    drafter = next(iter(drafters), plan.question.drafters[0])
    if plan.question.verify_length is not None:
        raise InputError("engines verify all that they draft: plan without a verify length to have settings")
    family, model, parameters = split_drafter(drafter)
    top_k = int(parameters.get("topk", _TOP_K.get(family, 1)))
    is_tree = top_k > 1 and bool(drafters)
    single = _single_length(plan, drafter)
    return Advice(
        family=family,
        target=_checkpoint(plan.question.target) or plan.question.target,
        model=None if family in _DERIVED or model is None else _checkpoint(model),
        ranges=tuple(
            Range(entry["first_batch"], entry["last_batch"], entry["draft_length"]) for entry in plan.schedule
        ),
        single=single,
        top_k=top_k if is_tree else None,
        nodes=_nodes(plan, drafter, single) if is_tree else None,
        costs=tuple(
            StepCost(row["batch"], row["draft_length"], round(row["verify_width"]), _cycle_s(row))
            for row in plan.rows
            if row["drafter"] == drafter and row["speedup"] is not None and row["draft_length"] > 0
        ),
        tensor_parallel=plan.question.tensor_parallel,
    )


def split_drafter(drafter: str) -> tuple[str, str | None, dict[str, str]]:
    """Family, model and parameters of a drafter as a plan names it: ``KIND[:MODEL][,KEY=VALUE..]``."""
    family, _, rest = drafter.partition(":")
    parts = [part for part in rest.split(",") if part]
    model = next((part for part in parts if "=" not in part), None)
    parameters = dict(part.split("=", 1) for part in parts if "=" in part)
    return family, model, parameters


def _checkpoint(name: str) -> str | None:
    """What an engine loads for a model: a path or repository as typed, or the repository behind a preset.

    None where only a config is known, as of most drafter heads.
    """
    if "/" in name or Path(name).expanduser().exists():
        return name
    try:
        found = _REPOSITORY.match(str(load_preset(name).get("_source", "")))
    except UnknownNameError:
        return None
    return None if found is None else found[1]


def _single_length(plan: Plan, drafter: str) -> int:
    """The draft length that gains most over the batches asked for; 0 where none gains.

    Gains multiply, so that batches of 1 and of 64 count alike. Where no batch that was asked for fits, it is
    the one that the schedule begins with.
    """
    rows = [row for row in plan.rows if row["drafter"] == drafter and row["speedup"] is not None]
    if not rows:
        return int(plan.schedule[0]["draft_length"])
    gains: dict[int, float] = dict.fromkeys([0, *(row["draft_length"] for row in rows)], 0.0)
    for row in rows:
        gains[row["draft_length"]] += math.log(row["speedup"])
    return int(max(gains, key=lambda length: gains[length]))


def _nodes(plan: Plan, drafter: str, depth: int) -> int:
    """Drafted nodes that are verified at a depth: the verify width without the root."""
    widths: list[float] = [
        row["verify_width"] for row in plan.rows if row["drafter"] == drafter and row["draft_length"] == depth
    ]
    return round(max(widths, default=1.0)) - 1


def _cycle_s(row: dict[str, float]) -> float:
    return row["draft_s"] + row["verify_s"] + row["overhead_s"]
