"""Engine settings that people paste, from a plan."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, Final

from rooflines.dtypes import number_format
from rooflines.engines.served import Served
from rooflines.engines.settings import Advice, Range, StepCost, settings_text
from rooflines.errors import InputError
from rooflines.models.catalogue import checkpoint
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec
from rooflines.studies.plan import Plan

# EAGLE-2 drafts a tree unless told otherwise (EAGLE-3, arXiv 2503.01840, appendix A).
_TOP_K: Final = {"eagle2": 10}
# Families whose model is no checkpoint: `quantized:int4` names a format.
_DERIVED: Final = frozenset({"quantized"})


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
    tree = _single_tree(plan, drafter)
    single = tree["draft_length"] if tree else _single_length(plan, drafter)
    spec = read_model(plan.question.target)
    loaded, notes = _loaded(plan.question.target, None if family in _DERIVED else model)
    return Advice(
        family=family,
        target=loaded[0] or plan.question.target,
        model=loaded[1],
        ranges=_ranges(plan),
        single=single,
        served=_served(plan, spec, drafter),
        top_k=top_k if is_tree else None,
        nodes=(tree["nodes"] if tree else _nodes(plan, drafter, single)) if is_tree else None,
        costs=tuple(
            StepCost(row["batch"], row["draft_length"], round(row["verify_width"]), _cycle_s(row))
            for row in plan.rows
            if row["drafter"] == drafter and row["speedup"] is not None and row["draft_length"] > 0
        ),
        missing="" if family != "mtp" or spec.mtp else f"{spec.name} ships no MTP module",
        notes=(*notes, *_apart(plan, drafter), *_other_trees(plan, tree), *_beyond_measured(plan)),
    )


def _ranges(plan: Plan) -> tuple[Range, ...]:
    """The schedule by draft length; an engine has one tree of it, whatever is best at each batch."""
    alike = [list(run) for _, run in groupby(plan.schedule, key=lambda entry: int(entry["draft_length"]))]
    return tuple(Range(run[0]["first_batch"], run[-1]["last_batch"], run[0]["draft_length"]) for run in alike)


def split_drafter(drafter: str) -> tuple[str, str | None, dict[str, str]]:
    """Family, model and parameters of a drafter as a plan names it: ``KIND[:MODEL][,KEY=VALUE..]``."""
    family, _, rest = drafter.partition(":")
    parts = [part for part in rest.split(",") if part]
    model = next((part for part in parts if "=" not in part), None)
    parameters = dict(part.split("=", 1) for part in parts if "=" in part)
    return family, model, parameters


def _loaded(*names: str | None) -> tuple[list[str | None], list[str]]:
    """What an engine loads for each model, None where only a config is known, and what to check of it."""
    found = [None if name is None else checkpoint(name) for name in names]
    notes = [
        f"{one.name} is written for {name}, with the config of {one.config_of}: check that it is the "
        "checkpoint that you mean."
        for name, one in zip(names, found, strict=True)
        if one is not None and one.config_of is not None
    ]
    return [None if one is None else one.name for one in found], notes


def _served(plan: Plan, spec: ModelSpec, drafter: str) -> Served:
    """How the target stands in memory, at the largest batch that was asked for and fits."""
    question = plan.question
    rows = [row for row in plan.memory if row["drafter"] == drafter]
    fitting = [row for row in rows if row["fits"]]
    memory = fitting[-1] if fitting else rows[0]
    stored = _stored_dtype(spec)
    last = plan.schedule[-1]["last_batch"]
    return Served(
        checkpoint_dtype=stored,
        weight_dtype=_dtype(question.weight_dtype) or stored,
        kv_dtype=_dtype(question.kv_dtype),
        memory_reserve=question.memory_reserve,
        cache_share=_cache_share(memory),
        positions=question.context + max(entry["draft_length"] for entry in plan.schedule) + 1,
        largest_batch=last,
        asked_batch=max((row["batch"] for row in fitting), default=last),
        tensor_parallel=question.tensor_parallel,
        expert_parallel=question.expert_parallel,
    )


def _dtype(given: str | None) -> str | None:
    return None if given is None else number_format(given).name


def _stored_dtype(spec: ModelSpec) -> str:
    """Format of the checkpoint's largest matrix of a layer."""
    matrices = [
        (one.elements, dict(layer.formats).get(one.name))
        for layer in spec.layers
        for one in layer.matrices(1)
    ]
    return max(matrices, key=lambda one: one[0])[1] or spec.dtype


def _cache_share(memory: dict[str, Any]) -> float:
    """What the plan leaves to caches of the memory beside the weights, as a share."""
    weights = memory["weights_bytes"] + memory["drafter_weights_bytes"]
    beside = memory["capacity_bytes"] - weights
    return float((beside - memory["reserve_bytes"]) / beside)


def _apart(plan: Plan, drafter: str) -> list[str]:
    """Where the schedule has another draft than is best, what that loses, and why."""
    found = {
        (row["batch"], row["draft_length"]): row["speedup"] for row in plan.rows if row["drafter"] == drafter
    }
    there = []
    for entry in plan.recommendation:
        batch, best = entry["batch"], entry["draft_length"]
        length = _scheduled(plan, batch)
        if entry["fits"] and length is not None and length != best:
            speedups = [found.get((batch, one), 1.0) for one in (length, best)]
            there.append(f"at batch {batch} {length} ({speedups[0]:.3g} x; best {best}, {speedups[1]:.3g} x)")
    if not there:
        return []
    why = "another range must gain 1 % over a doubling of the batch, and one that drafts more 5 %"
    return [f"By batch it is near the best in few ranges, {', '.join(there)}: {why}."]


def _scheduled(plan: Plan, batch: int) -> int | None:
    """The draft length of the schedule at a batch; None beyond its end."""
    inside = (one for one in plan.schedule if one["first_batch"] <= batch <= one["last_batch"])
    return next((one["draft_length"] for one in inside), None)


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


def _single_tree(plan: Plan, drafter: str) -> dict[str, Any] | None:
    """The best tree of the largest batch asked for at which it pays: a larger tree may lose there."""
    paying = [row for row in plan.best_trees if row["drafter"] == drafter and row["speedup"] > 1.0]
    return max(paying, key=lambda row: int(row["batch"]), default=None)


def _other_trees(plan: Plan, tree: dict[str, Any] | None) -> list[str]:
    """Which trees are best at other batches than that of the one that an engine runs."""
    if tree is None:
        return []
    others = [
        f"at batch {row['batch']} {row['draft_length']} deep, {row['nodes']} nodes"
        for row in plan.best_trees
        if row["drafter"] == tree["drafter"]
        and (row["draft_length"], row["nodes"]) != (tree["draft_length"], tree["nodes"])
    ]
    return [f"The tree is the best at batch {tree['batch']}; {', '.join(others)} is."] if others else []


def _beyond_measured(plan: Plan) -> list[str]:
    """That drafts are recommended which are longer than acceptance was measured for."""
    ends = {entry["measured_length"] for entry in plan.recommendation} - {None}
    return [
        f"Acceptance was given for {end} drafted position{'s' if end > 1 else ''}: longer drafts rest on its "
        "last rate, carried on."
        for end in sorted(ends)
    ]


def _nodes(plan: Plan, drafter: str, depth: int) -> int:
    """Drafted nodes that are verified at a depth: the verify width without the root."""
    widths: list[float] = [
        row["verify_width"] for row in plan.rows if row["drafter"] == drafter and row["draft_length"] == depth
    ]
    return round(max(widths, default=1.0)) - 1


def _cycle_s(row: dict[str, float]) -> float:
    return row["draft_s"] + row["verify_s"] + row["overhead_s"]
