"""What the explorer shows of one device: a plan, and the curves, points and maps around it.

The plan is the one that `rooflines plan` answers at the same batch. Intervals come from the residuals that
the constants state; acceptance is taken as exact in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from rooflines.costs.cost import Cost
from rooflines.costs.storage import weight_bytes
from rooflines.errors import MissingPeakError, RooflinesError
from rooflines.models.catalogue import list_presets
from rooflines.models.drafter_catalogue import list_drafter_presets
from rooflines.models.feed_forward import MixtureOfExperts
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.closed_form import break_even_cost_ratio, constant_acceptance
from rooflines.speculation.drafters.registry import KINDS, make_drafter
from rooflines.studies.intensity import time_phase
from rooflines.studies.plan import LARGEST_SEARCHED, Plan, PlanQuestion, narrowed, plan_for, served_target
from rooflines.studies.roofline import EVERYTHING, Roof, roofs
from rooflines.studies.serve import make_machine
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import OperatorTime, PassTime

# Speedups whose lines the map shows; 1 is where speculation breaks even.
MAP_LEVELS: Final = (1.0, 1.5, 2.0, 3.0, 4.0)
# Formats of a copy that drafts for its own target, and families whose heads have shapes of their own:
# those of Medusa take theirs from any target.
_COPIES: Final = ("int4", "fp8")
_HEADED: Final = ("eagle", "eagle2", "eagle3", "p-eagle", "dflash", "dspark", "domino")
# DeepSeek-V3 decodes with its experts over 320 devices (arXiv 2412.19437, section 3.4.2).
_MOST_EXPERT_DEVICES: Final = 512
_MAP_ACCEPTANCE: Final = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True, slots=True)
class SpeedupLine:
    """Speedup of one drafter along an axis.

    Attributes:
        drafter: its name.
        x: draft lengths, or batches.
        draft_length: at each x.
        speedup: at each x.
        low: lower end of the 90 % interval; None where no error is known.
        high: upper end.
        crossover_batch: from which on it pays no more; None where it still pays, or along draft lengths.
    """

    drafter: str
    x: tuple[int, ...]
    draft_length: tuple[int, ...]
    speedup: tuple[float, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    crossover_batch: int | None = None


@dataclass(frozen=True, slots=True)
class OperatorPoint:
    """An operator that multiplies matrices, under the roofs of its device.

    Attributes:
        hardware: profile id.
        phase: decode, prefill or verify.
        operator: its name; the whole pass stands beside its operators.
        intensity_flop_per_byte: (FLOP/byte).
        attained_flop_per_s: on one device (FLOP/s).
        seconds: all instances of a pass (s).
        share: of the pass.
        bound: what binds it.
    """

    hardware: str
    phase: str
    operator: str
    intensity_flop_per_byte: float
    attained_flop_per_s: float
    seconds: float
    share: float
    bound: str


@dataclass(frozen=True, slots=True)
class BreakEvenMap:
    """Lines of equal speedup over acceptance and cost ratio, for one draft length and its verify pass.

    Attributes:
        hardware: profile id.
        drafter: whose verify pass it is.
        draft_length: gamma.
        acceptance: constant acceptance along every line.
        cost_ratios: speedup -> the cost ratio that gives it at each acceptance; below 0 none does.
        here: (acceptance, cost ratio) of the drafter itself; the acceptance is the constant one of the same
            tokens per cycle, NaN where a tree yields more than any chain.
        speedup: there.
    """

    hardware: str
    drafter: str
    draft_length: int
    acceptance: tuple[float, ...]
    cost_ratios: dict[float, tuple[float, ...]]
    here: tuple[float, float]
    speedup: float


@dataclass(frozen=True, slots=True)
class DeviceView:
    """All that is shown of one device.

    Attributes:
        plan: at the batch chosen.
        cycles: its rows at the draft length chosen, or the nearest that a drafter can draft.
        by_length: speedup against draft length at the batch chosen; empty where it does not fit.
        by_batch: speedup at the best draft length against every power of two that fits.
        operators: of a decode, a prefill and a verify pass.
        roofs: of the device.
        maps: one a drafter; empty where the batch does not fit.
    """

    plan: Plan
    cycles: list[dict[str, Any]]
    by_length: list[SpeedupLine]
    by_batch: list[SpeedupLine]
    operators: list[OperatorPoint]
    roofs: list[Roof]
    maps: list[BreakEvenMap]


def explore(question: PlanQuestion, draft_length: int, model: ModelSpec | None = None) -> DeviceView:
    """Everything around the plan of one batch.

    Args:
        question: with one batch; its draft lengths are those compared.
        draft_length: that cycles, the map and the verify pass are shown at.
        model: the target where it was read already; else the question names it.

    Raises:
        RooflinesError: whatever a plan refuses.
    """
    batch = question.batches[0]
    powers = [2**power for power in range(LARGEST_SEARCHED.bit_length())]
    # One plan of all batches prices what they share once, and serves the next question of another batch too.
    target, wide = _planned(replace(question, batches=tuple(sorted({batch, *powers}))), model)
    plan = narrowed(wide, target, batch)
    drafters = [entry["drafter"] for entry in plan.acceptances]
    cycles = [_nearest(plan, drafter, draft_length) for drafter in drafters]
    drawn = [row for row in cycles if row["speedup"] is not None]
    ends = {entry["drafter"]: entry["batch"] for entry in plan.crossovers}
    lines = [_line(name, _best_by_batch(wide, name, powers), "batch", ends) for name in drafters]
    return DeviceView(
        plan=plan,
        cycles=cycles,
        by_length=[
            _line(row["drafter"], _drafting(plan, row["drafter"]), "draft_length", {}) for row in drawn
        ],
        by_batch=[line for line in lines if line.x],
        operators=_operators(target, question, max(row["verify_width"] for row in cycles)),
        roofs=roofs(target, ("decode",)),
        maps=[_map(question.hardware, row) for row in drawn],
    )


def possible_drafters(question: PlanQuestion, model: ModelSpec | None = None) -> tuple[str, ...]:
    """Drafters that can draft for a target, as the command line writes them.

    Families that need no model, heads that ship for this target, and smaller models of the same tokenizer.

    Args:
        question: says how the target is served.
        model: the target where it was read already; else the question names it.

    Raises:
        RooflinesError: an unknown target or device, or a degree that does not divide.
    """
    target = _target(question, model)
    texts = [*KINDS, *(f"quantized:{name}" for name in _COPIES)]
    texts += [f"{kind}:{head}" for kind in KINDS if kind in _HEADED for head in list_drafter_presets()]
    texts += [f"independent:{name}" for name in list_presets() if name != target.model.name]
    return tuple(text for text in texts if _drafts(text, target))


def expert_degrees(target: str, tensor_parallel: int, model: ModelSpec | None = None) -> tuple[int, ...]:
    """Devices that the experts of a target can be spread over: 1, which cuts each, and multiples of t.

    Args:
        target: names the model.
        tensor_parallel: t.
        model: the target where it was read already.

    Returns:
        None where there are no experts.

    Raises:
        RooflinesError: an unknown target.
    """
    spec = model if model is not None else read_model(target)
    blocks = [block for layer in spec.layers for block in layer.feed_forwards]
    counts = {block.experts for block in blocks if isinstance(block, MixtureOfExperts)}
    wide = (tensor_parallel * 2**power for power in range(_MOST_EXPERT_DEVICES.bit_length()))
    spread = [
        degree
        for degree in wide
        if 1 < degree <= _MOST_EXPERT_DEVICES and all(count % degree == 0 for count in counts)
    ]
    return (1, *spread) if counts else ()


def _drafts(text: str, target: Deployment) -> bool:
    """Whether a drafter can be made for a target, and is lighter than it."""
    try:
        own = make_drafter(text, target).weight_bytes()
    except RooflinesError:
        return False
    return own < weight_bytes(target.model, target.precision, target.parallelism)


@lru_cache(maxsize=16)
def _planned(question: PlanQuestion, model: ModelSpec | None) -> tuple[Deployment, Plan]:
    """A page asks for the same plans again while other controls move; one device has some hundred rows."""
    target = _target(question, model)
    return target, plan_for(question, target)


def _target(question: PlanQuestion, model: ModelSpec | None) -> Deployment:
    machine = _machine(question.hardware, question.calibration, question.overhead)
    return served_target(question, model, machine)


@lru_cache(maxsize=64)
def _machine(hardware: str, calibration: str, overhead: str) -> Machine:
    """A page asks for the same few machines again and again; files are read once a run of the explorer."""
    return make_machine(hardware, calibration, overhead)


def _nearest(plan: Plan, drafter: str, draft_length: int) -> dict[str, Any]:
    rows = [row for row in plan.rows if row["drafter"] == drafter]
    return min(rows, key=lambda row: (abs(row["draft_length"] - draft_length), row["draft_length"]))


def _drafting(plan: Plan, drafter: str) -> list[dict[str, Any]]:
    return [
        row
        for row in plan.rows
        if row["drafter"] == drafter and row["draft_length"] > 0 and row["speedup"] is not None
    ]


def _best_by_batch(plan: Plan, drafter: str, batches: Sequence[int]) -> list[dict[str, Any]]:
    """The row of the best draft length at each batch that fits."""
    rows = _drafting(plan, drafter)
    found = [[row for row in rows if row["batch"] == batch] for batch in batches]
    return [max(here, key=lambda row: row["speedup"]) for here in found if here]


def _line(
    drafter: str, rows: Sequence[dict[str, Any]], axis: str, ends: Mapping[str, int | None]
) -> SpeedupLine:
    known = all(row["speedup_low"] is not None for row in rows)
    return SpeedupLine(
        drafter=drafter,
        x=tuple(row[axis] for row in rows),
        draft_length=tuple(row["draft_length"] for row in rows),
        speedup=tuple(row["speedup"] for row in rows),
        low=tuple(row["speedup_low"] for row in rows) if known else None,
        high=tuple(row["speedup_high"] for row in rows) if known else None,
        crossover_batch=ends.get(drafter),
    )


def _operators(target: Deployment, question: PlanQuestion, verify_width: float) -> list[OperatorPoint]:
    """Operators of the three passes; a prompt is as long as the context, and without one nothing prefills."""
    batch, context = float(question.batches[0]), float(question.context)
    passes: list[tuple[str, float | None]] = [("decode", None)]
    if context:
        passes.append(("prefill", None))
    passes.append(("verify", verify_width))
    return [point for phase, new in passes for point in _points(target, phase, batch, context, new)]


def _points(
    target: Deployment, phase: str, batch: float, context: float, new: float | None
) -> list[OperatorPoint]:
    """Operators of a pass that multiply matrices, and the pass as a whole."""
    try:
        timed = time_phase(target, phase, batch, context, new)
    except MissingPeakError:
        return []  # no peak, no roof: the plan has said so where it needed one
    parts: list[tuple[str, Cost, OperatorTime | PassTime]] = [
        (one.operator.name, one.operator.cost * one.operator.count, one) for one in timed.operators
    ]
    return [
        OperatorPoint(
            hardware=target.machine.profile.id,
            phase=phase,
            operator=name,
            intensity_flop_per_byte=float(cost.intensity_flop_per_byte),
            attained_flop_per_s=float(cost.matmul_flops / time.seconds),
            seconds=float(time.seconds),
            share=float(time.seconds / timed.seconds),
            bound=str(time.bound),
        )
        for name, cost, time in [*parts, (EVERYTHING, timed.cost, timed)]
        if float(cost.matmul_flops)
    ]


def _map(hardware: str, row: Mapping[str, Any]) -> BreakEvenMap:
    """The map around a row of a plan: what is not drafting stays as it is there."""
    length, cost_ratio = row["draft_length"], row["cost_ratio"]
    rest = row["cycle_cost"] - length * cost_ratio
    # Of a chain no more is accepted than is verified; a tree has more nodes than levels.
    verified = min(float(length), row["verify_width"] - 1.0)
    tau = np.asarray(Acceptance.constant(_MAP_ACCEPTANCE).tokens_per_cycle(verified))
    return BreakEvenMap(
        hardware=hardware,
        drafter=row["drafter"],
        draft_length=length,
        acceptance=tuple(_MAP_ACCEPTANCE.tolist()),
        cost_ratios={
            level: tuple(np.asarray(break_even_cost_ratio(tau / level, length, rest)).tolist())
            for level in MAP_LEVELS
        },
        here=(float(constant_acceptance(row["tokens_per_cycle"], verified)), cost_ratio),
        speedup=row["speedup"],
    )
