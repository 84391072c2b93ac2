"""What a plan answers beyond its table, where asked for: how much to verify, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import CycleHost
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.studies.plan_acceptance import GivenAcceptance
from rooflines.studies.plan_advice import best_row
from rooflines.studies.plan_realities import marginal_rows, reality_rows
from rooflines.studies.plan_verify import BatchCycle, verify_budget_row
from rooflines.timing.step_times import StepTimer

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion


@dataclass(frozen=True, slots=True)
class Extras:
    """Rows of one drafter; empty where not asked for.

    Attributes:
        verify_budget: how much of a draft to verify, one a batch.
        realities: why, one a batch.
        marginal: what each further token adds, one a batch and position.
    """

    verify_budget: list[dict[str, Any]]
    realities: list[dict[str, Any]]
    marginal: list[dict[str, Any]]


def asked_for(
    question: PlanQuestion,
    target: StepTimer,
    drafter: Drafter,
    given: GivenAcceptance,
    *,
    tree: TreeGrowth | None,
    host: CycleHost,
    rows: Sequence[dict[str, Any]],
) -> Extras:
    """Answer what was asked for, at the batches that fit.

    Args:
        question: what is asked.
        target: times the model that is sped up.
        drafter: who proposes.
        given: its acceptance.
        tree: how it grows trees; None for chains.
        host: what it adds to passes and cycles.
        rows: of the plan, of this drafter, best trees included.
    """
    batches = tuple(dict.fromkeys(row["batch"] for row in rows if row["speedup"] is not None))
    lengths = drafter.draft_lengths(question.draft_lengths)
    context = float(question.context)
    adapted = batches if question.adaptive_verify and tree is None else ()
    cycles = [BatchCycle(target, drafter, batch, context, max(lengths), host) for batch in adapted]
    realities: list[dict[str, Any]] = []
    marginal: list[dict[str, Any]] = []
    if question.explain and batches:
        best = [row for row in (best_row(batch, rows) for batch in batches) if row is not None]
        realities = reality_rows(target, drafter, given, batches=batches, context=context, best=best)
        marginal = marginal_rows(
            target,
            drafter,
            given.rates,
            batches=batches,
            context=context,
            longest=max(lengths),
            host=host,
        )
    return Extras([verify_budget_row(each, given.by_depth) for each in cycles], realities, marginal)
