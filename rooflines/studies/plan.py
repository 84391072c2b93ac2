"""`plan`: should I speculate, with which draft length, at which batch, and when does it stop paying?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np

from rooflines.costs.routing import DEFAULT_ROUTING
from rooflines.models.spec import ModelSpec
from rooflines.rows import as_columns
from rooflines.serving.memory import DEFAULT_RESERVE
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.crossover import Crossover
from rooflines.speculation.drafters.base import Drafter
from rooflines.studies.plan_acceptance import GivenAcceptance, assign_acceptance
from rooflines.studies.plan_advice import reach_of, reasons, recommend
from rooflines.studies.plan_memory import misfit_words
from rooflines.studies.plan_price import LARGEST_SEARCHED, SCHEDULE_SLACK, price, schedule
from rooflines.studies.plan_question import LONGEST_CONTEXT, normal_fields, require_question
from rooflines.studies.plan_steps import timing_of
from rooflines.studies.plan_words import answer_text
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine

__all__ = ["LARGEST_SEARCHED", "LONGEST_CONTEXT", "Plan", "PlanQuestion", "make_plan"]

SCHEMA_VERSION: Final = 1
NOT_MODELED: Final = (
    "prefill and the queue before it: a plan is about decode steps of a full batch at a fixed context",
    "sequences of a batch that differ in context or acceptance",
    "kernels below the resolution of an operator class, clock throttling, and overlap of communication",
    "softmax and elementwise arithmetic, which run beside the matrix units",
)


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked, in the words of the command line.

    Where several may be given, one alone stands for a list of it, and a number for its text.

    Attributes:
        hardware: profile id, alias or file.
        target: preset, config.json or folder of the model that is sped up.
        drafters: `KIND[:MODEL][:key=value,...]` each.
        acceptance: constant alpha, or `definition:values`; several of the form `NAME=...` give each drafter
            its own, where NAME is a drafter as written or its kind.
        acceptance_sources: the file that each of them was read from, in words, or an empty text where it was
            given; none where all were given.
        draft_lengths: gammas to compare; of trees, their depths.
        batches: B to answer for.
        context: S cached positions per sequence.
        tensor_parallel: t.
        weight_dtype: format of the target's linear layers; None keeps the checkpoint's.
        kv_dtype: format of cached keys and values; None keeps the checkpoint's.
        overhead: host time per pass, with its unit.
        cycle_overhead: host time per cycle outside draft and verify, with its unit; or an engine, for what
            is known of its host.
        calibration: ``auto``, ``none`` or ``textbook``.
        steps: file with measured steps of the target, which then need no constants; None for constants.
        memory_reserve: share of the memory kept free.
        expert_parallel: e, a multiple of t.
        routing: which experts the tokens of a pass hit.
        encoder_positions: of an encoder-decoder, per sequence.
        verify_length: drafted tokens that are verified at most; None for all.
        adaptive_verify: also choose how many positions of a batch's drafts to verify.
        best_tree: also choose size and depth of the trees of drafters that propose them.
        explain: also say where verifying stops being free, what drafting costs, what rejection loses, and
            what each further drafted token adds.
    """

    hardware: str
    target: str
    drafters: tuple[str, ...]
    acceptance: str | tuple[str, ...]
    draft_lengths: tuple[int, ...]
    batches: tuple[int, ...]
    context: int
    tensor_parallel: int = 1
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    overhead: str = "0 s"
    cycle_overhead: str = "0 s"
    calibration: str = "auto"
    steps: str | None = None
    memory_reserve: float = DEFAULT_RESERVE
    expert_parallel: int = 1
    routing: str = DEFAULT_ROUTING
    encoder_positions: int | None = None
    verify_length: int | None = None
    adaptive_verify: bool = False
    best_tree: bool = False
    explain: bool = False
    acceptance_sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take one value for a list of it, and refuse what is no question."""
        for name, value in normal_fields(self).items():
            object.__setattr__(self, name, value)
        require_question(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer.

    Attributes:
        question: what was asked.
        text: the answer in words.
        recommendation: what to do at each batch.
        crossover_batch: smallest batch from which on no drafter pays; None where it still pays at the
            largest batch that fits.
        crossovers: the same by drafter, with what binds there.
        break_even_acceptance: constant acceptance from which the recommended draft of the smallest batch
            pays.
        rows: a row per drafter, batch and draft length.
        memory: a row per drafter and batch.
        acceptances: what was given for each drafter.
        schedule: drafter and draft length of every batch, within 10 % of the best, in few ranges.
        verify_budget: how much of a draft to verify, per drafter and batch, where asked for.
        best_trees: the best tree, per drafter that proposes trees and batch, where asked for: a row with
            its nodes by level beside it.
        realities: why, per drafter and batch, where asked for.
        marginal: what each further drafted token adds, per drafter, batch and position, where asked for.
        warnings: what is odd about the question.
        basis: what the times rest on.
    """

    question: PlanQuestion
    text: str
    recommendation: list[dict[str, Any]]
    crossover_batch: int | None
    crossovers: list[dict[str, Any]]
    break_even_acceptance: float | None
    rows: list[dict[str, Any]]
    memory: list[dict[str, Any]]
    acceptances: list[dict[str, str]]
    schedule: list[dict[str, Any]]
    verify_budget: list[dict[str, Any]]
    best_trees: list[dict[str, Any]]
    realities: list[dict[str, Any]]
    marginal: list[dict[str, Any]]
    warnings: list[str]
    basis: str
    not_modeled: tuple[str, ...] = field(default=NOT_MODELED)

    def document(self) -> dict[str, Any]:
        """The plan as JSON takes it (schema: docs/schemas/plan.schema.json)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "question": {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in asdict(self.question).items()
            },
            "answer": {
                "text": self.text,
                "recommendation": self.recommendation,
                "crossover_batch": self.crossover_batch,
                "crossovers": self.crossovers,
                "break_even_acceptance": self.break_even_acceptance,
                "schedule": self.schedule,
                "verify_budget": self.verify_budget,
                "best_trees": self.best_trees,
                "realities": self.realities,
                "marginal": self.marginal,
            },
            "basis": self.basis,
            "acceptances": self.acceptances,
            "rows": self.rows,
            "memory": self.memory,
            "warnings": self.warnings,
            "not_modeled": list(self.not_modeled),
        }

    def columns(self) -> dict[str, list[object]]:
        """The rows as columns."""
        return as_columns(self.rows)


def make_plan(question: PlanQuestion) -> Plan:
    """Answer a question.

    Raises:
        RooflinesError: unknown names, impossible numbers, incompatible vocabularies, degrees that do not
            divide.
    """
    return plan_for(question, served_target(question))


def served_target(
    question: PlanQuestion, model: ModelSpec | None = None, machine: Machine | None = None
) -> Deployment:
    """The target as a question has it served.

    Args:
        question: names model and device, and says how the model is served.
        model: the target where it was read already.
        machine: the device with its constants where it was made already.

    Raises:
        RooflinesError: unknown names, impossible numbers, degrees that do not divide.
    """
    return make_deployment(
        question.target if model is None else model,
        make_machine(question.hardware, question.calibration, question.overhead)
        if machine is None
        else machine,
        weight_dtype=question.weight_dtype,
        kv_dtype=question.kv_dtype,
        tensor=question.tensor_parallel,
        expert=question.expert_parallel,
        routing=question.routing,
        encoder_positions=question.encoder_positions,
    )


def plan_for(question: PlanQuestion, target: Deployment) -> Plan:
    """Answer a question whose target is at hand, as `served_target` gives it.

    Raises:
        RooflinesError: an unknown drafter or acceptance, impossible numbers, incompatible vocabularies, or
            measured steps that do not answer.
    """
    timing = timing_of(question, target)
    drafters = timing.drafters
    given = assign_acceptance(question.acceptance, question.drafters, question.acceptance_sources)
    priced = [
        price(question, target, drafter, one, timing, host=host.time)
        for drafter, one, host in zip(drafters, given, timing.hosts, strict=True)
    ]
    rows = [row for one in priced for row in one.rows]
    memory = [row for one in priced for row in one.memory]
    trees = [row for one in priced for row in one.best_trees]
    reach = {
        drafter.name: reach_of(drafter, question.draft_lengths, one.by_depth.measured_length)
        for drafter, one in zip(drafters, given, strict=True)
    }
    recommendation = [recommend(batch, [*rows, *trees], memory, reach) for batch in question.batches]
    scheduled = schedule(priced)
    ends = [one.crossover.batch for one in priced]
    end = None if None in ends else max(batch for batch in ends if batch is not None)
    return Plan(
        question=question,
        text=answer_text(
            target,
            recommendation,
            [(one.name, one.crossover) for one in priced],
            end,
            reasons(question.batches, [*rows, *trees], always=timing.is_measured),
            schedule=scheduled,
            slack=SCHEDULE_SLACK,
            misfit=_misfit(question, target, drafters, memory),
        ),
        recommendation=recommendation,
        crossover_batch=end,
        crossovers=[{"drafter": one.name, **asdict(one.crossover)} for one in priced],
        break_even_acceptance=recommendation[0]["break_even_acceptance"],
        rows=rows,
        memory=memory,
        acceptances=[
            {"drafter": drafter.name, "acceptance": one.text, "source": one.source}
            for drafter, one in zip(drafters, given, strict=True)
        ],
        schedule=scheduled,
        verify_budget=[row for one in priced for row in one.extras.verify_budget],
        best_trees=trees,
        realities=[row for one in priced for row in one.extras.realities],
        marginal=[row for one in priced for row in one.extras.marginal],
        warnings=[
            *timing.notes,
            *_beyond_positions(question, target),
            *_warnings(question, drafters, given, [one.is_tree for one in priced]),
        ],
        basis=timing.basis,
    )


def narrowed(plan: Plan, target: Deployment, batch: int) -> Plan:
    """What `plan_for` answers to one of the batches of a plan alone.

    Args:
        plan: of several batches.
        target: that it was made for.
        batch: one of them.
    """
    question = replace(plan.question, batches=(batch,))

    def here(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in rows if row["batch"] == batch]

    rows, trees, recommendation = here(plan.rows), here(plan.best_trees), here(plan.recommendation)
    ends = [
        (entry["drafter"], Crossover(**{name: entry[name] for name in entry if name != "drafter"}))
        for entry in plan.crossovers
    ]
    why = reasons((batch,), [*rows, *trees], always=question.steps is not None)
    return replace(
        plan,
        question=question,
        text=answer_text(target, recommendation, ends, plan.crossover_batch, why),
        recommendation=recommendation,
        break_even_acceptance=recommendation[0]["break_even_acceptance"],
        rows=rows,
        memory=here(plan.memory),
        verify_budget=here(plan.verify_budget),
        best_trees=trees,
        realities=here(plan.realities),
        marginal=here(plan.marginal),
    )


def _misfit(
    question: PlanQuestion, target: Deployment, drafters: Sequence[Drafter], memory: Sequence[dict[str, Any]]
) -> str | None:
    """Why nothing fits with the drafter that takes least, and what to change; None where something does."""
    if any(row["largest_batch"] for row in memory):
        return None
    least, text = min(zip(drafters, question.drafters, strict=True), key=lambda one: one[0].weight_bytes())
    return misfit_words(question, target, least, text)


def _beyond_positions(question: PlanQuestion, target: Deployment) -> list[str]:
    """Where the context, with the longest draft behind it, leaves what the target's config states."""
    most, asked = target.model.max_positions, question.context + max(question.draft_lengths) + 1
    if most is None or asked <= most:
        return []
    note = (
        f"context {question.context:,} with a draft behind it goes beyond the {most:,} positions that the "
        f"config of {target.model.name} states: times hold, and what the model writes there may not"
    )
    return [note]


def _warnings(
    question: PlanQuestion,
    drafters: Sequence[Drafter],
    given: Sequence[GivenAcceptance],
    trees: Sequence[bool],
) -> list[str]:
    """What is odd about the question; what is said of several drafters is said once, with their names."""
    names_of: dict[str, list[str]] = {}
    for drafter, one, tree in zip(drafters, given, trees, strict=True):
        for note in (*drafter.warnings(), *_doubts(question, drafter, one, tree=tree)):
            names_of.setdefault(note.removeprefix(f"{drafter.name}: "), []).append(drafter.name)
    return [f"{', '.join(names)}: {note}" for note, names in names_of.items()]


def _doubts(question: PlanQuestion, drafter: Drafter, given: GivenAcceptance, *, tree: bool) -> Iterator[str]:
    """What the acceptance of a drafter does not tell of its drafts."""
    if np.any(given.by_depth.is_extrapolated(max(drafter.draft_lengths(question.draft_lengths)))):
        yield (
            f"acceptance was measured up to draft length {given.by_depth.measured_length}; beyond it the "
            "last conditional rate is carried on, and those rows say extrapolated"
        )
    if tree and not isinstance(given.rates, BranchAcceptance):
        yield (
            f"acceptance {given.text} is taken as what the tree attains by depth, since it says nothing of "
            "second guesses (medusa:... and sequoia:... do)"
        )
        if question.best_tree:
            yield "no best tree without rates of second guesses"
    if tree and question.verify_length is not None:
        yield "a tree verifies its nodes, whatever the verify length"
