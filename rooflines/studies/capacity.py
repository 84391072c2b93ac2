"""`capacity`: how many cards for a load, at which batch, with speculation or without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rooflines.engines.host import PROMPTS_FIRST
from rooflines.errors import DoesNotFitError, InputError
from rooflines.serving.engine import Engine
from rooflines.serving.fleet import make_fleet
from rooflines.serving.host import Host
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.schedule import PLAIN, Schedule, parse_schedule
from rooflines.serving.trace import Trace, read_trace
from rooflines.serving.uncertain import engine_errors
from rooflines.serving.workload import Workload
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.capacity_intervals import Served
from rooflines.studies.capacity_memory import memory_row, sequences_within_budget, why_not
from rooflines.studies.capacity_notes import (
    beyond_positions,
    bursts,
    limited,
    long_waits,
    uncompared_cost,
    waiting,
)
from rooflines.studies.capacity_question import CapacityQuestion, ServedOption, drafters_of
from rooflines.studies.capacity_rows import (
    closed_rows,
    exchange_rows,
    load_rows,
    option_row,
    pareto_rows,
    stops_paying,
)
from rooflines.studies.capacity_words import capacity_text, who
from rooflines.studies.plan_acceptance import GivenAcceptance, assign_acceptance
from rooflines.studies.plan_host import GivenHost, host_of, host_words
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.machine import Machine

__all__ = ["Capacity", "CapacityQuestion", "ServedOption", "make_capacity", "make_pareto"]

SCHEMA_VERSION: Final = 1
NOT_MODELED: Final = (
    "bursts beyond Poisson arrivals, and routing of requests that is uneven over engines",
    "preemption and recomputing when caches outgrow the memory: the mean context of a sequence counts",
    "sequences that differ in acceptance, and the last cycle of a request that emits more than is asked for",
    "host work of tokenising, scheduling and streaming beyond the overheads given",
)


@dataclass(frozen=True, slots=True)
class Capacity:
    """The answer.

    Attributes:
        question: what was asked.
        text: the answer in words.
        rows: a row per option and drafter, plain decoding first.
        memory: what stands in the memory of one card, by option and drafter.
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
    memory: list[dict[str, Any]]
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
        question["acceptance_sources"] = list(self.question.acceptance_sources)
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
            "memory": self.memory,
            "loads": self.loads,
            "pareto": self.pareto,
            "closed": self.closed,
            "exchanges": self.exchanges,
            "warnings": self.warnings,
            "not_modeled": list(self.not_modeled),
        }


@dataclass(frozen=True, slots=True)
class _Priced:
    """What is served, with what it costs."""

    option: ServedOption
    served: Served


def make_capacity(question: CapacityQuestion) -> Capacity:
    """Answer a question.

    Raises:
        RooflinesError: unknown names, impossible numbers, a trace that cannot be read, an option that does
            not fit in memory.
    """
    workload, trace = _workload(question)
    rate = _rate(question, trace)
    objective = question.objective
    priced, basis, warnings = _priced(question, workload)
    served = [one.served for one in priced]
    plain = {one.option: one for one in served if one.drafter == "none"}
    rows = [
        option_row(
            one.served,
            plain[one.served.option],
            workload,
            objective=objective,
            rate=rate,
            price_per_hour=one.option.price_per_hour,
        )
        for one in priced
    ]
    loads = [row for one in served for row in load_rows(one, plain[one.option], workload, objective)]
    crossovers = [stops_paying(one, plain[one.option], workload) for one in served if one.drafter != "none"]
    closed = [row for one in served for row in closed_rows(one, workload, question.concurrency)]
    memory = [memory_row(one, workload) for one in served]
    return Capacity(
        question=question,
        text=capacity_text(
            question.target, workload, rows, loads, crossovers, rate=rate, objective=objective
        ),
        rows=rows,
        memory=memory,
        loads=loads,
        crossovers=crossovers,
        pareto=[row for one in served for row in pareto_rows(one)],
        closed=closed,
        exchanges=[
            row for one in plain.values() for row in exchange_rows(one, workload, question.batched_tokens)
        ],
        trace=None if trace is None else _trace_document(trace),
        warnings=[
            *warnings,
            *beyond_positions(served[0].fleet.engine.target.model, workload),
            *uncompared_cost((one.option for one in priced), loaded=rate is not None or objective.promises),
            *long_waits(rows, objective),
            *limited(rows, memory, question.max_sequences),
            *waiting(closed),
            *(() if trace is None or rate is None else bursts(trace, rows, rate)),
        ],
        basis=basis,
    )


def make_pareto(question: CapacityQuestion) -> list[dict[str, Any]]:
    """Tokens per second and card against per user alone, as `Capacity.pareto`.

    Raises:
        RooflinesError: as `make_capacity`.
    """
    workload, _ = _workload(question)
    priced, _, _ = _priced(question, workload)
    return [row for one in priced for row in pareto_rows(one.served)]


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


def _priced(question: CapacityQuestion, workload: Workload) -> tuple[list[_Priced], list[str], list[str]]:
    """Every option, plainly and with each of its drafters; what it rests on, and what is odd about it."""
    schedule = parse_schedule(question.draft_length)
    priced: list[_Priced] = []
    basis: list[str] = []
    notes: list[str] = []
    left_out: list[str] = []
    hosts: list[GivenHost] = []
    for asked in question.options:
        machine = make_machine(asked.hardware, question.calibration, question.overhead)
        option = _named(asked, machine, [one.option for one in priced])
        served = []
        for name, engine, host in _engines(question, option, machine, schedule, notes):
            try:
                served.append(_Priced(option, _served(question, option, name, engine, workload)))
                if name != "none" or host.time.plain_s or host.time.layer_s:
                    hosts.append(host)
            except DoesNotFitError:
                left_out.append(why_not(who({"option": option.name, "drafter": name}), engine, workload))
                if name == "none":  # nor does it with a drafter beside it
                    break
        if served:
            priced += served
            basis.append(f"{option.name}: {served[0].served.fleet.engine.target.basis}")
        if "unified" in machine.profile.memory_type.lower():
            notes.append(
                f"{option.hardware} shares its memory with the host: what the system and other programs "
                "take of it is not counted"
            )
    if not priced:
        raise DoesNotFitError("; ".join(left_out))
    basis += [*host_words(hosts), *_order_words(question, priced), *_printed_words(question)]
    return priced, basis, [*dict.fromkeys(notes), *left_out]


def _named(option: ServedOption, machine: Machine, others: Sequence[ServedOption]) -> ServedOption:
    """The option with its device by the name that the catalogue has for it; a file keeps its own.

    Raises:
        InputError: one that is among the others under another name of the device.
    """
    if option.hardware.endswith(".toml"):
        return option
    named = replace(option, hardware=machine.profile.id)
    if named in others:
        raise InputError(f"{named.name} is given twice, under two names of its device")
    return named


def _order_words(question: CapacityQuestion, priced: list[_Priced]) -> list[str]:
    """That a named engine takes prompts first, where a client's requests at once show it."""
    if not question.concurrency or not any(one.served.fleet.engine.host.prompts_first for one in priced):
        return []
    engine = question.cycle_overhead.strip().lower()
    order = f"{engine} takes prompts before it decodes, in steps of their own, unless told to mix them"
    return [f"requests at once: {order}"]


def _acceptances(question: CapacityQuestion) -> dict[str, GivenAcceptance]:
    """What was given for the drafters of all options, by drafter."""
    drafters = drafters_of(question.options)
    given = assign_acceptance(question.acceptance, drafters, question.acceptance_sources)
    return dict(zip(drafters, given, strict=True))


def _printed_words(question: CapacityQuestion) -> list[str]:
    """Where acceptance comes from that an engine printed."""
    given = _acceptances(question).items()
    return [f"acceptance of {drafter} from {one.source}" for drafter, one in given if one.source]


def _engines(
    question: CapacityQuestion, option: ServedOption, machine: Machine, schedule: Schedule, notes: list[str]
) -> Iterator[tuple[str, Engine, GivenHost]]:
    """An engine that decodes plainly, and one with each drafter; what is odd about them goes to `notes`."""
    plain = _plain_engine(question, option, machine)
    host = host_of(question.cycle_overhead, "none", plain.target)
    yield "none", replace(plain, cycle_host=host.time, host=_server(question, host)), host
    given = _acceptances(question)
    for text in option.drafters:
        drafter = make_drafter(text, plain.target)
        notes += drafter.warnings()
        able = schedule.limited_to(drafter.draft_lengths(schedule.lengths))
        host = host_of(question.cycle_overhead, text, plain.target)
        engine = replace(
            plain,
            drafter=drafter,
            acceptance=given[text].rates,
            schedule=able,
            cycle_host=host.time,
            host=_server(question, host),
        )
        within = sequences_within_budget(engine)
        if within < engine.max_sequences:
            notes.append(
                f"drafts of {drafter.name} fill the {engine.batched_tokens:,} positions of a step from "
                f"{within + 1:,} sequences on, so that {within:,} run at once: see --batched-tokens"
            )
        yield drafter.name, replace(engine, max_sequences=within), host


def _server(question: CapacityQuestion, given: GivenHost) -> Host:
    """What the server adds to a request: the time given, and prompts first where a named engine does so."""
    first = given.stated is not None and given.stated.engine in PROMPTS_FIRST
    return Host(request_s=question.request_s, prompts_first=first)


def _plain_engine(question: CapacityQuestion, option: ServedOption, machine: Machine) -> Engine:
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
    return Engine(
        target,
        max_sequences=question.max_sequences,
        batched_tokens=question.batched_tokens,
        reserve=question.memory_reserve,
        schedule=PLAIN,
    )


def _served(
    question: CapacityQuestion, option: ServedOption, drafter: str, engine: Engine, workload: Workload
) -> Served:
    fleet = make_fleet(engine, workload, question.transfer_bytes_per_s)
    errors = engine_errors(fleet.engine, workload, fleet.curve.max_sequences)
    return Served(option.name, drafter, fleet, errors)


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
