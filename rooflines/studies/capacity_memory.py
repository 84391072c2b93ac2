"""What stands in the memory of a card, and what to change where it does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from rooflines.costs.setting import Parallelism
from rooflines.errors import RooflinesError
from rooflines.serving.engine import Engine, positions_held
from rooflines.serving.memory import MemoryFit, largest_batch, memory_fit
from rooflines.serving.workload import Workload
from rooflines.studies.capacity_intervals import Served
from rooflines.units import format_quantity

# Degrees tried in search of one that fits: a node, and two of them.
_DEGREES: Final = (2, 4, 8, 16)


def memory_row(one: Served, workload: Workload) -> dict[str, Any]:
    """What stands in the memory of one card, and how many sequences of the mean context fit beside it."""
    engine = one.fleet.engine
    fit = _one_sequence(engine, workload.mean_context)
    return {
        "option": one.option,
        "drafter": one.drafter,
        "capacity_bytes": fit.capacity_bytes,
        "reserve_bytes": fit.reserve_bytes,
        "weights_bytes": fit.weights_bytes,
        "drafter_weights_bytes": fit.drafter_weights_bytes,
        "sequence_bytes": _sequence_bytes(fit),
        "mean_context": workload.mean_context,
        "sequences_that_fit": _room(engine, workload.mean_context),
        "sequences_at_once": one.fleet.curve.max_sequences,
    }


def why_not(way: str, engine: Engine, workload: Workload) -> str:
    """In words, why not even one sequence fits, and which tensor parallelism would hold it."""
    fit = _one_sequence(engine, workload.longest)
    held = [f"{format_quantity(fit.weights_bytes, 'byte')} of weights"]
    if fit.drafter_weights_bytes:
        held.append(f"{format_quantity(fit.drafter_weights_bytes, 'byte')} of the drafter's")
    sequence = format_quantity(_sequence_bytes(fit), "byte")
    held.append(f"{sequence} for one sequence of {workload.longest:,.0f} positions")
    room = format_quantity(fit.capacity_bytes - fit.reserve_bytes, "byte")
    degree = _degree_that_fits(engine, workload)
    cure = "use more devices" if degree is None else f"tensor parallelism {degree} holds it"
    return (
        f"{way} does not fit: a card would hold {', '.join(held)}, and has {room} besides the reserve; "
        f"{cure}, or a smaller weight or KV format, or shorter requests"
    )


def sequences_within_budget(engine: Engine) -> int:
    """Sequences whose drafts leave a step room for a prompt, where all of them must draft one length."""
    lengths = set(engine.schedule.lengths)
    if engine.drafter is None or len(lengths) > 1 or not max(lengths):
        return engine.max_sequences
    width = float(np.asarray(engine.drafter.draft(1.0, 1.0, float(max(lengths))).sent_width()))
    return min(engine.max_sequences, max(int((engine.batched_tokens - 1) // width), 1))


def _degree_that_fits(engine: Engine, workload: Workload) -> int | None:
    """The smallest tensor parallelism tried that holds the longest request; None where something drafts."""
    parallelism = engine.target.parallelism
    if engine.drafter is not None:
        return None
    for degree in _DEGREES:
        expert = max(parallelism.expert, degree) if parallelism.expert > 1 else 1
        wider = Parallelism(degree, expert)
        try:
            spread = replace(engine, target=replace(engine.target, parallelism=wider))
            if degree > parallelism.tensor and _room(spread, workload.longest) >= 1:
                return degree
        except RooflinesError:  # heads that the degree does not divide
            continue
    return None


def _one_sequence(engine: Engine, context: float) -> MemoryFit:
    return memory_fit(
        engine.target, engine.drafter, 1.0, context, positions_held(engine), reserve=engine.reserve
    )


def _sequence_bytes(fit: MemoryFit) -> float:
    return float(fit.used_bytes) - fit.weights_bytes - fit.drafter_weights_bytes


def _room(engine: Engine, context: float) -> int:
    held = positions_held(engine)
    return largest_batch(engine.target, engine.drafter, context, held, reserve=engine.reserve)
