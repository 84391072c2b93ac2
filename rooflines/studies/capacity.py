"""`capacity`: how many cards for a load, at which batch, with speculation or without."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rooflines.errors import InputError
from rooflines.serving.engine import DEFAULT_BATCHED_TOKENS, DEFAULT_SEQUENCES, Engine
from rooflines.serving.fleet import Fleet, make_fleet
from rooflines.serving.goodput import Objective
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.memory import DEFAULT_RESERVE
from rooflines.serving.schedule import PLAIN, Schedule, parse_schedule
from rooflines.serving.trace import Trace, read_trace
from rooflines.serving.workload import Workload
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.capacity_closed import closed_rows
from rooflines.studies.capacity_rows import (
    exchange_rows,
    load_rows,
    option_row,
    pareto_rows,
    stops_paying,
)
from rooflines.studies.capacity_words import capacity_text
from rooflines.studies.plan_acceptance import assign_acceptance
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.units import parse_quantity

SCHEMA_VERSION: Final = 1
NOT_MODELED: Final = (
    "bursts beyond Poisson arrivals, and routing of requests that is uneven over engines",
    "preemption and recomputing when caches outgrow the memory: the mean context of a sequence counts",
    "sequences that differ in acceptance, and the last cycle of a request that emits more than is asked for",
    "host work of tokenising, scheduling and streaming beyond the overhead given",
)


@dataclass(frozen=True, slots=True)
class ServedOption:
    """One way to serve the target.

    Attributes:
        hardware: profile id, alias or file.
        tensor_parallel: t.
        expert_parallel: e, a multiple of t.
        weight_dtype: format of linear layers; None keeps the checkpoint's.
        kv_dtype: format of cached keys and values; None keeps the checkpoint's.
        drafters: compared with plain decoding.
        price_per_hour: of one card, in any currency; None where no price was given.
    """

    hardware: str
    tensor_parallel: int = 1
    expert_parallel: int = 1
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    drafters: tuple[str, ...] = ()
    price_per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.price_per_hour is not None and not 0 < self.price_per_hour < math.inf:
            raise InputError(
                f"price of a card is {self.price_per_hour:g} an hour: it must be above 0 and finite"
            )

    @property
    def name(self) -> str:
        """How tables call it."""
        degrees = [f"{max(self.tensor_parallel, self.expert_parallel)} x {self.hardware}"]
        if self.expert_parallel > 1:
            degrees.append(f"tp {self.tensor_parallel} ep {self.expert_parallel}")
        return ", ".join(
            [*degrees, *filter(None, (self.weight_dtype, self.kv_dtype and f"{self.kv_dtype} KV"))]
        )


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """What is asked, in the words of the command line.

    Attributes:
        options: ways to serve, compared with each other.
        target: preset, config.json or folder of the model.
        prompt_tokens: a constant or a distribution; None with a trace.
        output_tokens: likewise.
        trace: CSV of arrivals and lengths.
        rate: load of all engines together (requests/s); None asks for what one engine carries, or takes
            the trace's.
        concurrency: requests that a benchmark client keeps running on one engine; a table of its own.
        acceptance: of the drafters: one for all, or ``NAME=...`` for each.
        draft_length: a schedule.
        slo_tpot: promised time per output token, with its unit.
        slo_ttft: promised time to first token, with its unit.
        share: share of tokens and requests that must be within.
        prefix_hit: share of prompt tokens that a cache holds.
        max_sequences: most sequences an engine runs at once.
        batched_tokens: most positions in a step.
        kv_transfer: bandwidth between prefill and decode engines, with its unit; None serves them together.
        overhead: host time per pass, with its unit.
        cycle_overhead: host time per cycle, with its unit.
        calibration: name, file, ``auto``, ``none`` or ``textbook``.
        memory_reserve: share of the memory kept free.
        routing: which experts the tokens of a pass hit.
        encoder_positions: of an encoder-decoder, per sequence.
    """

    options: tuple[ServedOption, ...]
    target: str
    prompt_tokens: str | None = None
    output_tokens: str | None = None
    trace: str | None = None
    rate: float | None = None
    concurrency: tuple[int, ...] = ()
    acceptance: tuple[str, ...] = ()
    draft_length: str = "0..8"
    slo_tpot: str | None = None
    slo_ttft: str | None = None
    share: float = 0.95
    prefix_hit: float = 0.0
    max_sequences: int = DEFAULT_SEQUENCES
    batched_tokens: int = DEFAULT_BATCHED_TOKENS
    kv_transfer: str | None = None
    overhead: str = "0 s"
    cycle_overhead: str = "0 s"
    calibration: str = "auto"
    memory_reserve: float = DEFAULT_RESERVE
    routing: str = "uniform"
    encoder_positions: int | None = None

    def __post_init__(self) -> None:
        if not self.options:
            raise InputError("capacity needs a device, such as h100-sxm5-80gb")
        if (self.trace is None) == (self.prompt_tokens is None or self.output_tokens is None):
            raise InputError("say what requests ask for: prompt and output tokens, or a trace, but not both")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise InputError(f"rate is {self.rate:g} requests/s: it must be above 0 and finite")
        if self.concurrency and self.kv_transfer is not None:
            raise InputError(
                "a number of requests at once is modelled for engines that do both prefill and decode: leave "
                "the link between them out"
            )
        drafting = any(option.drafters for option in self.options)
        if drafting and not self.acceptance:
            raise InputError("a drafter needs its acceptance, such as 0.8 or conditional:0.8,0.75")
        if self.acceptance and not drafting:
            raise InputError(
                f"acceptance {self.acceptance[0]} is given, but no drafter: add one, such as eagle3"
            )
        if len(set(self.options)) < len(self.options):
            raise InputError("an option is given twice: write what differs, such as tp=8 or hardware=NAME")
        if not 0 <= self.memory_reserve < 1:
            raise InputError(f"memory reserve is {self.memory_reserve:g}: it is a share within 0..1, below 1")

    @property
    def objective(self) -> Objective:
        """What was promised."""
        tpot, ttft = (
            None if text is None else parse_quantity(text, "s") for text in (self.slo_tpot, self.slo_ttft)
        )
        return Objective(tpot, ttft, self.share)


@dataclass(frozen=True, slots=True)
class Capacity:
    """The answer.

    Attributes:
        question: what was asked.
        text: the answer in words.
        rows: a row per option and drafter, plain decoding first.
        loads: a row per option, drafter and load of one engine.
        crossovers: where speculation stops paying, by option and drafter.
        pareto: tokens per second and card against per user, by option, drafter and batch.
        closed: one an option, drafter and number of requests at once, as a benchmark client measures it.
        exchanges: the two regimes of expert parallelism, where experts are spread.
        trace: what was read from a trace.
        warnings: what is odd about the question.
        basis: what the times rest on, by option.
    """

    question: CapacityQuestion
    text: str
    rows: list[dict[str, Any]]
    loads: list[dict[str, Any]]
    crossovers: list[dict[str, Any]]
    pareto: list[dict[str, Any]]
    closed: list[dict[str, Any]]
    exchanges: list[dict[str, Any]]
    trace: dict[str, Any] | None
    warnings: list[str]
    basis: list[str]
    not_modeled: tuple[str, ...] = field(default=NOT_MODELED)

    def document(self) -> dict[str, Any]:
        """The answer as JSON takes it (schema: docs/schemas/capacity.schema.json)."""
        question = asdict(self.question)
        question["acceptance"] = list(self.question.acceptance)
        question["options"] = [
            {**option, "drafters": list(option["drafters"])} for option in question["options"]
        ]
        return {
            "schema_version": SCHEMA_VERSION,
            "question": question,
            "answer": {"text": self.text, "crossovers": self.crossovers},
            "basis": self.basis,
            "trace": self.trace,
            "rows": self.rows,
            "loads": self.loads,
            "pareto": self.pareto,
            "closed": self.closed,
            "exchanges": self.exchanges,
            "warnings": self.warnings,
            "not_modeled": list(self.not_modeled),
        }


@dataclass(frozen=True, slots=True)
class _Served:
    """An option, priced with one drafter or none."""

    option: ServedOption
    drafter: str
    fleet: Fleet


def make_capacity(question: CapacityQuestion) -> Capacity:
    """Answer a question.

    Raises:
        RooflinesError: unknown names, impossible numbers, a trace that cannot be read, an option that does
            not fit in memory.
    """
    workload, trace = _workload(question)
    rate = _rate(question, trace)
    objective = question.objective
    schedule = parse_schedule(question.draft_length)
    served, basis, warnings = _served(question, workload, schedule)
    rows = [
        option_row(
            one.option.name,
            one.drafter,
            one.fleet,
            workload,
            objective=objective,
            rate=rate,
            price_per_hour=one.option.price_per_hour,
        )
        for one in served
    ]
    loads: list[dict[str, Any]] = []
    crossovers: list[dict[str, Any]] = []
    plain = {one.option.name: one.fleet for one in served if one.drafter == "none"}
    for one in served:
        base = plain[one.option.name]
        loads += load_rows(one.option.name, one.drafter, one.fleet, base, workload, objective=objective)
        if one.drafter != "none":
            crossovers.append(stops_paying(one.option.name, one.drafter, one.fleet, base, workload))
    return Capacity(
        question=question,
        text=capacity_text(question.target, workload, rows, crossovers, rate=rate, objective=objective),
        rows=rows,
        loads=loads,
        crossovers=crossovers,
        pareto=[row for one in served for row in pareto_rows(one.option.name, one.drafter, one.fleet)],
        closed=[
            row
            for one in served
            for row in closed_rows(one.option.name, one.drafter, one.fleet, workload, question.concurrency)
        ],
        exchanges=[
            row
            for name, fleet in plain.items()
            for row in exchange_rows(name, fleet, workload, question.batched_tokens)
        ],
        trace=None if trace is None else _trace_document(trace),
        warnings=[*warnings, *_trace_warnings(trace, rows, rate)],
        basis=basis,
    )


def _rate(question: CapacityQuestion, trace: Trace | None) -> float | None:
    if question.rate is not None:
        return question.rate
    return None if trace is None else trace.rate_per_s


def _workload(question: CapacityQuestion) -> tuple[Workload, Trace | None]:
    if question.trace is not None:
        trace = read_trace(Path(question.trace), question.prefix_hit)
        return trace.workload, trace
    lengths = [
        parse_lengths(str(text), what)
        for text, what in (
            (question.prompt_tokens, "prompt tokens"),
            (question.output_tokens, "output tokens"),
        )
    ]
    return Workload.independent(lengths[0], lengths[1], question.prefix_hit), None


def _served(
    question: CapacityQuestion, workload: Workload, schedule: Schedule
) -> tuple[list[_Served], list[str], list[str]]:
    """Every option, plainly and with each of its drafters."""
    transfer = None if question.kv_transfer is None else parse_quantity(question.kv_transfer, "byte/s")
    served: list[_Served] = []
    basis: list[str] = []
    warnings: list[str] = []
    for option in question.options:
        machine = make_machine(option.hardware, question.calibration, question.overhead)
        target = make_deployment(
            question.target,
            machine,
            weight_dtype=option.weight_dtype,
            kv_dtype=option.kv_dtype,
            tensor=option.tensor_parallel,
            expert=option.expert_parallel,
            routing=question.routing,
            encoder_positions=question.encoder_positions,
        )
        engine = Engine(
            target,
            cycle_overhead_s=parse_quantity(question.cycle_overhead, "s"),
            max_sequences=question.max_sequences,
            batched_tokens=question.batched_tokens,
            reserve=question.memory_reserve,
            schedule=PLAIN,
        )
        basis.append(f"{option.name}: {machine.basis}")
        served.append(_Served(option, "none", make_fleet(engine, workload, transfer)))
        given = assign_acceptance(question.acceptance, option.drafters) if option.drafters else ()
        for text, one in zip(option.drafters, given, strict=True):
            drafter = make_drafter(text, target)
            warnings += drafter.warnings()
            able = schedule.limited_to(drafter.draft_lengths(schedule.lengths))
            speculative = replace(engine, drafter=drafter, acceptance=one.rates, schedule=able)
            served.append(_Served(option, drafter.name, make_fleet(speculative, workload, transfer)))
    return served, basis, warnings


def _trace_document(trace: Trace) -> dict[str, Any]:
    return {
        "requests": trace.requests,
        "duration_s": trace.duration_s,
        "rate_per_s": trace.rate_per_s,
        "peak_rate_per_s": trace.peak_rate_per_s,
        "gap_variation": trace.gap_variation,
        "mean_prompt_tokens": trace.workload.mean_prompt,
        "mean_output_tokens": trace.workload.mean_output,
    }


# Gaps between arrivals twice as variable as Poisson's make queues that the steady state does not see.
_BURSTY: Final = 2.0


def _trace_warnings(trace: Trace | None, rows: list[dict[str, Any]], rate: float | None) -> list[str]:
    if trace is None or rate is None:
        return []
    notes = []
    if trace.gap_variation > _BURSTY:
        notes.append(
            f"gaps between arrivals vary {trace.gap_variation:.1f} times as much as Poisson arrivals do: "
            "waits before the first token are longer than stated"
        )
    peak = rate * trace.peak_rate_per_s / trace.rate_per_s
    notes += [
        f"the busiest minute brings {peak:.3g} requests/s, more than the {row['engines']} engines of "
        f"{row['option']} ({row['drafter']}) carry: size for the peak with --rate"
        for row in rows
        if row["engines"] and peak > row["saturation_requests_per_s"] * row["engines"]
    ]
    return notes
