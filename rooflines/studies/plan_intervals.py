"""Between which ends the times, the cost of a cycle and the speedup of a plan lie in 90 % of cases.

Errors are those that calibrations state. What the plain step, the draft and the verify pass share (the same
kernels, the same device) drops out of a speedup. Acceptance and host times are taken as given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.estimates import Estimate, total
from rooflines.speculation.cycle import Cycle, CycleTimes
from rooflines.speculation.drafters.base import Drafter, Stepping
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_estimate, priced_estimate

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion
    from rooflines.studies.plan_steps import Timing

# What has an interval, by the column that it belongs to.
NAMES: Final = ("target_step", "draft", "verify", "cycle_cost", "speedup")
COLUMNS: Final = tuple(
    f"{name}_{end}{unit}"
    for name, unit in zip(NAMES, ("_s", "_s", "_s", "", ""), strict=True)
    for end in ("low", "high")
)


def interval_columns(
    question: PlanQuestion,
    target: Deployment,
    timing: Timing,
    drafter: Drafter,
    *,
    times: CycleTimes,
    outcome: Cycle,
) -> dict[str, Number]:
    """Ends of the 90 % intervals, by column; NaN where times rest on nothing that states its errors.

    Args:
        question: what is asked.
        target: as it is served.
        timing: what times it, and the drafters.
        drafter: one of them.
        times: of its cycles, over batches (rows) and draft lengths (columns).
        outcome: the same with acceptance.
    """
    passes = (times.target, times.verify)
    if target.machine.calibration is None or not all(isinstance(one, PassTime) for one in passes):
        return dict.fromkeys(COLUMNS, np.nan)
    plain, verify = (
        pass_estimate(one, target.machine, name)
        for one, name in zip(passes, ("decode", "verify"), strict=True)
        if isinstance(one, PassTime)
    )
    draft = Estimate(outcome.draft_s, _draft_errors(question, target, timing, drafter, times))
    cost = total((draft, verify, Estimate(outcome.overhead_s))) / plain
    # Without a draft the cycle is the plain step itself.
    exact = np.asarray(outcome.draft_length) == 0
    speedup = cost.reciprocal() * outcome.tokens_per_cycle
    columns: dict[str, Number] = {}
    for name, one in zip(NAMES, (plain, draft, verify, cost, speedup), strict=True):
        unit = "_s" if name in NAMES[:3] else ""
        for end, value in zip(("low", "high"), one.interval(), strict=True):
            columns[f"{name}_{end}{unit}"] = value if unit else np.where(exact, one.value, value)
    # A verify pass moves what a plain step moves, so that no cycle is cheaper than one step.
    least = np.minimum(cost.value, np.maximum(columns["cycle_cost_low"], 1.0))
    columns["cycle_cost_low"] = least
    columns["speedup_high"] = np.where(exact, speedup.value, outcome.tokens_per_cycle / least)
    return columns


def _draft_errors(
    question: PlanQuestion, target: Deployment, timing: Timing, drafter: Drafter, times: CycleTimes
) -> Mapping[str, Number]:
    """Standard deviations of ln(draft time) by cause; none where its steps are measured."""
    if isinstance(drafter, Stepping) and drafter.steps is not None:
        return {}
    place = next(number for number, one in enumerate(timing.drafters) if one is drafter)
    batches = np.asarray(question.batches, dtype=float)[:, None]

    def price(machine: Machine) -> Number:
        again = make_drafter(question.drafters[place], replace(target, machine=machine))
        return again.draft(batches, float(question.context), times.draft_length).seconds

    return priced_estimate(price, target.machine, "draft").errors
