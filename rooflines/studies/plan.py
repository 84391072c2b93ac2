"""`plan`: should I speculate, with which draft length, at which batch, and when does it stop paying?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

import numpy as np

from rooflines.errors import InputError
from rooflines.serving.memory import DEFAULT_RESERVE, largest_batch, memory_fit
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_acceptance
from rooflines.speculation.crossover import Crossover, crossover
from rooflines.speculation.cycle import (
    Cycle,
    CycleTimes,
    cycle,
    cycle_break_even_acceptance,
    cycle_break_even_cost_ratio,
    cycle_times,
)
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.plan_words import answer_text
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.deployment import Deployment
from rooflines.units import parse_quantity

SCHEMA_VERSION: Final = 1
# The search for the crossover ends at the largest batch that fits, and here at the latest: engines cap
# concurrent sequences well below (vLLM's `max_num_seqs` defaults to 256 or 1024).
LARGEST_SEARCHED: Final = 2048
# Beyond any model's positions; a longer one is a slip of the keyboard.
LONGEST_CONTEXT: Final = 10**9
# Columns that hold even where the configuration does not fit.
_WITHOUT_TIME: Final = ("acceptance", "tokens_per_cycle", "extrapolated")
NOT_MODELED: Final = (
    "prefill and the queue before it: a plan is about decode steps of a full batch at a fixed context",
    "sequences of a batch that differ in context or acceptance",
    "kernels below the resolution of an operator class, clock throttling, and overlap of communication",
    "softmax and elementwise arithmetic, which run beside the matrix units",
)


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked, in the words of the command line.

    Attributes:
        hardware: profile id, alias or file.
        target: preset, config.json or folder of the model that is sped up.
        drafters: `KIND[:MODEL][:key=value,...]` each.
        acceptance: constant alpha, or `definition:values`.
        draft_lengths: gammas to compare.
        batches: B to answer for.
        context: S cached positions per sequence.
        tensor_parallel: t.
        weight_dtype: format of the target's linear layers; None keeps the checkpoint's.
        kv_dtype: format of cached keys and values; None keeps the checkpoint's.
        overhead: host time per pass, with its unit.
        cycle_overhead: host time per cycle outside draft and verify, with its unit.
        calibration: ``auto``, ``none`` or ``textbook``.
        memory_reserve: share of the memory kept free.
        expert_parallel: e, a multiple of t.
        routing: which experts the tokens of a pass hit.
        encoder_positions: of an encoder-decoder, per sequence.
    """

    hardware: str
    target: str
    drafters: tuple[str, ...]
    acceptance: str
    draft_lengths: tuple[int, ...]
    batches: tuple[int, ...]
    context: int
    tensor_parallel: int = 1
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    overhead: str = "0 s"
    cycle_overhead: str = "0 s"
    calibration: str = "auto"
    memory_reserve: float = DEFAULT_RESERVE
    expert_parallel: int = 1
    routing: str = "uniform"
    encoder_positions: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.memory_reserve < 1:
            raise InputError(f"memory reserve is {self.memory_reserve:g}: it is a share within 0..1")
        if not self.drafters:
            raise InputError("a plan needs a drafter, such as independent:llama-3.2-1b")
        if max(self.draft_lengths, default=0) < 1:
            raise InputError("a plan compares draft lengths with plain decoding: give one of 1 or more")
        if not 0 <= self.context <= LONGEST_CONTEXT:
            raise InputError(f"context is {self.context}: it must be within 0..{LONGEST_CONTEXT}")


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
            },
            "basis": self.basis,
            "rows": self.rows,
            "memory": self.memory,
            "warnings": self.warnings,
            "not_modeled": list(self.not_modeled),
        }

    def columns(self) -> dict[str, list[object]]:
        """The rows as columns."""
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}


@dataclass(frozen=True, slots=True)
class _Priced:
    """One drafter over the grid of batches (rows) and draft lengths (columns)."""

    name: str
    rows: list[dict[str, Any]]
    memory: list[dict[str, Any]]
    crossover: Crossover


def make_plan(question: PlanQuestion) -> Plan:
    """Answer a question.

    Raises:
        RooflinesError: unknown names, impossible numbers, incompatible vocabularies, degrees that do not
            divide.
    """
    machine = make_machine(question.hardware, question.calibration, question.overhead)
    target = make_deployment(
        question.target,
        machine,
        weight_dtype=question.weight_dtype,
        kv_dtype=question.kv_dtype,
        tensor=question.tensor_parallel,
        expert=question.expert_parallel,
        routing=question.routing,
        encoder_positions=question.encoder_positions,
    )
    acceptance = parse_acceptance(question.acceptance)
    drafters = [make_drafter(text, target) for text in question.drafters]
    priced = [_price(question, target, drafter, acceptance) for drafter in drafters]
    rows = [row for one in priced for row in one.rows]
    memory = [row for one in priced for row in one.memory]
    recommendation = [_recommend(batch, rows, memory) for batch in question.batches]
    ends = [one.crossover.batch for one in priced]
    end = None if None in ends else max(batch for batch in ends if batch is not None)
    notes = _warnings(question, acceptance, drafters)
    return Plan(
        question=question,
        text=answer_text(target, recommendation, [(one.name, one.crossover) for one in priced], end),
        recommendation=recommendation,
        crossover_batch=end,
        crossovers=[{"drafter": one.name, **asdict(one.crossover)} for one in priced],
        break_even_acceptance=recommendation[0]["break_even_acceptance"],
        rows=rows,
        memory=memory,
        warnings=notes,
        basis=machine.basis,
    )


def _price(question: PlanQuestion, target: Deployment, drafter: Drafter, acceptance: Acceptance) -> _Priced:
    """Price a drafter over the whole grid at once."""
    batches = np.asarray(question.batches, dtype=float)[:, None]
    lengths = np.asarray(question.draft_lengths, dtype=float)[None, :]
    overhead_s = parse_quantity(question.cycle_overhead, "s")
    times = cycle_times(target, drafter, batches, float(question.context), lengths, overhead_s=overhead_s)
    outcome = cycle(times, acceptance)
    longest = float(max(question.draft_lengths))
    room = largest_batch(target, drafter, question.context, longest, reserve=question.memory_reserve)
    memory = _memory_rows(question, target, drafter, room)
    fits = [row["fits"] for row in memory]
    grids = _grids(question, times, outcome, acceptance)
    rows = _rows(question, grids, fits, drafter=drafter.name, basis=target.machine.basis)
    end = crossover(
        target,
        drafter,
        acceptance,
        question.draft_lengths,
        float(question.context),
        largest_batch=min(room, LARGEST_SEARCHED),
        overhead_s=overhead_s,
    )
    return _Priced(drafter.name, rows, memory, end)


def _grids(
    question: PlanQuestion, times: CycleTimes, outcome: Cycle, acceptance: Acceptance
) -> dict[str, np.ndarray[tuple[int, ...], Any]]:
    """Every number of the table over batches (rows) and draft lengths (columns)."""
    shape = (len(question.batches), len(question.draft_lengths))
    batches = np.asarray(question.batches, dtype=float)[:, None]
    tau, length = np.asarray(outcome.tokens_per_cycle), np.asarray(outcome.draft_length)
    free_verify = tau / (length * outcome.cost_ratio + 1.0)
    grids = {
        "acceptance": (tau - 1.0) / np.maximum(length, 1.0),
        "tokens_per_cycle": tau,
        "target_step_s": outcome.target_step_s,
        "draft_s": outcome.draft_s,
        "verify_s": outcome.verify_s,
        "overhead_s": outcome.overhead_s,
        "cycle_cost": outcome.cycle_cost,
        "cost_ratio": outcome.cost_ratio,
        "speedup": outcome.speedup,
        "leviathan_speedup": free_verify if times.draft.ancestors is None else np.nan,
        "tokens_per_s_per_sequence": 1.0 / np.asarray(outcome.time_per_token_s),
        "tokens_per_s": batches / np.asarray(outcome.time_per_token_s),
        "break_even_acceptance": cycle_break_even_acceptance(times),
        "break_even_cost_ratio": cycle_break_even_cost_ratio(outcome),
        "verify_width": outcome.verify_width,
        "extrapolated": acceptance.is_extrapolated(length),
        "target_bound": times.target.bound,
        "verify_bound": times.verify.bound,
    }
    return {key: np.broadcast_to(np.asarray(value), shape) for key, value in grids.items()}


def _rows(
    question: PlanQuestion,
    grids: dict[str, np.ndarray[tuple[int, ...], Any]],
    fits: list[bool],
    *,
    drafter: str,
    basis: str,
) -> list[dict[str, Any]]:
    """The grid as rows; what does not fit gets no speed."""
    rows = []
    for i, batch in enumerate(question.batches):
        for j, draft_length in enumerate(question.draft_lengths):
            row = {
                "drafter": drafter,
                "batch": batch,
                "context": question.context,
                "draft_length": draft_length,
                "verify_width": _cell(grids["verify_width"][i, j]),
            }
            for key, grid in grids.items():
                if key not in row:
                    row[key] = _cell(grid[i, j]) if fits[i] or key in _WITHOUT_TIME else None
            rows.append({**row, "basis": basis})
    return rows


def _cell(value: np.generic) -> Any:  # noqa: ANN401 - whatever a table cell holds
    plain = value.item()
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def _memory_rows(
    question: PlanQuestion, target: Deployment, drafter: Drafter, room: int
) -> list[dict[str, Any]]:
    """Memory of one device at each batch, for the longest draft."""
    fit = memory_fit(
        target,
        drafter,
        np.asarray(question.batches, dtype=float),
        float(question.context),
        float(max(question.draft_lengths)),
        reserve=question.memory_reserve,
    )
    names = [field.name for field in fields(fit)]
    columns = {name: np.broadcast_to(getattr(fit, name), len(question.batches)) for name in (*names, "fits")}
    return [
        {
            "drafter": drafter.name,
            "batch": batch,
            **{name: values[i].item() for name, values in columns.items()},
            "largest_batch": room,
        }
        for i, batch in enumerate(question.batches)
    ]


def _recommend(batch: int, rows: list[dict[str, Any]], memory: list[dict[str, Any]]) -> dict[str, Any]:
    """The best of all drafters and draft lengths at one batch; plain decoding where none wins."""
    here = [row for row in rows if row["batch"] == batch and row["speedup"] is not None]
    room = max(row["largest_batch"] for row in memory if row["batch"] == batch)
    if not here:
        return {
            "batch": batch,
            "fits": False,
            "largest_batch": room,
            "speculate": False,
            "drafter": None,
            "draft_length": None,
            "speedup": None,
            "break_even_acceptance": None,
            "break_even_cost_ratio": None,
        }
    best = max(here, key=lambda row: (row["speedup"], -row["draft_length"]))
    wins = best["speedup"] > 1.0 and best["draft_length"] > 0
    return {
        "batch": batch,
        "fits": True,
        "largest_batch": room,
        "speculate": wins,
        "drafter": best["drafter"],
        "draft_length": best["draft_length"] if wins else 0,
        "speedup": best["speedup"],
        "break_even_acceptance": best["break_even_acceptance"],
        "break_even_cost_ratio": best["break_even_cost_ratio"],
    }


def _warnings(question: PlanQuestion, acceptance: Acceptance, drafters: list[Drafter]) -> list[str]:
    notes = [note for drafter in drafters for note in drafter.warnings()]
    longest = max(question.draft_lengths)
    if np.any(acceptance.is_extrapolated(longest)):
        notes.append(
            f"acceptance was measured up to draft length {acceptance.measured_length}; beyond it the last "
            "conditional rate is carried on, and those rows are marked extrapolated"
        )
    return notes
