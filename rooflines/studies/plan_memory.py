"""What to change where no batch of a plan fits in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rooflines.costs.setting import Parallelism
from rooflines.serving.memory import largest_batch, memory_fit
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.memory_words import degree_that_fits, does_not_fit
from rooflines.timing.deployment import Deployment

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion


def misfit_words(question: PlanQuestion, target: Deployment, drafter: Drafter, text: str) -> str:
    """Why not even one sequence fits, and what would hold it.

    Args:
        question: what is asked.
        target: as it is served.
        drafter: who drafts for it.
        text: the drafter as typed, to be made again for more devices.
    """
    context = float(question.context)
    held = _held(question, drafter)
    fit = memory_fit(target, drafter, 1.0, context, held, reserve=question.memory_reserve)

    def fits(wider: Parallelism) -> bool:
        spread = replace(target, parallelism=wider)
        again = make_drafter(text, spread)
        return largest_batch(spread, again, context, held, reserve=question.memory_reserve) >= 1

    sequence = f"one sequence of {question.context:,} positions"
    return does_not_fit(fit, sequence, degree_that_fits(target.parallelism, fits))


def _held(question: PlanQuestion, drafter: Drafter) -> float:
    """Positions of the longest draft or largest tree, which are cached until they are judged."""
    lengths = np.asarray(drafter.draft_lengths(question.draft_lengths), dtype=float)
    return float(np.max(drafter.draft(1.0, 0.0, lengths).verify_width)) - 1.0
