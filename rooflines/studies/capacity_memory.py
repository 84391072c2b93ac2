"""What stands in the memory of a card, and what to change where it does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rooflines.serving.engine import Engine, positions_held
from rooflines.serving.memory import MemoryFit, largest_batch, memory_fit
from rooflines.serving.workload import Workload
from rooflines.studies.capacity_intervals import Served
from rooflines.studies.memory_words import degree_that_fits, does_not_fit, sequence_bytes


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
        "sequence_bytes": sequence_bytes(fit),
        "mean_context": workload.mean_context,
        "sequences_that_fit": _room(engine, workload.mean_context),
        "sequences_at_once": one.fleet.curve.max_sequences,
    }


def why_not(way: str, engine: Engine, workload: Workload) -> str:
    """In words, why not even one sequence fits, and which tensor parallelism would hold it."""
    fit = _one_sequence(engine, workload.longest)
    sequence = f"one sequence of {workload.longest:,.0f} positions"
    why = does_not_fit(fit, sequence, _degree_that_fits(engine, workload))
    return f"{way} does not fit: {why}, or shorter requests"


def sequences_within_budget(engine: Engine) -> int:
    """Sequences whose drafts leave a step room for a prompt, where all of them must draft one length."""
    lengths = set(engine.schedule.lengths)
    if engine.drafter is None or len(lengths) > 1 or not max(lengths):
        return engine.max_sequences
    width = float(np.asarray(engine.drafter.draft(1.0, 1.0, float(max(lengths))).sent_width()))
    return min(engine.max_sequences, max(int((engine.batched_tokens - 1) // width), 1))


def _degree_that_fits(engine: Engine, workload: Workload) -> int | None:
    """The smallest tensor parallelism tried that holds the longest request; None where something drafts."""
    if engine.drafter is not None:
        return None
    return degree_that_fits(
        engine.target.parallelism,
        lambda wider: (
            _room(replace(engine, target=replace(engine.target, parallelism=wider)), workload.longest) >= 1
        ),
    )


def _one_sequence(engine: Engine, context: float) -> MemoryFit:
    return memory_fit(
        engine.target, engine.drafter, 1.0, context, positions_held(engine), reserve=engine.reserve
    )


def _room(engine: Engine, context: float) -> int:
    held = positions_held(engine)
    return largest_batch(engine.target, engine.drafter, context, held, reserve=engine.reserve)
