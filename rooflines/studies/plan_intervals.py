"""Between which ends the times, the cost of a cycle and the speedup of a plan lie in 90 % of cases.

Errors are those that calibrations state. What the plain step, the draft and the verify pass share (the same
kernels, the same device) drops out of a speedup. Acceptance and host times are taken as given.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.estimates import Estimate, total
from rooflines.speculation.cycle import Cycle, CycleTimes
from rooflines.speculation.uncertain import draft_estimate
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_estimate

# What has an interval, by the column that it belongs to.
NAMES: Final = ("target_step", "draft", "verify", "cycle_cost", "speedup")
COLUMNS: Final = tuple(
    f"{name}_{end}{unit}"
    for name, unit in zip(NAMES, ("_s", "_s", "_s", "", ""), strict=True)
    for end in ("low", "high")
)


def interval_columns(machine: Machine, times: CycleTimes, outcome: Cycle) -> dict[str, Number]:
    """Ends of the 90 % intervals, by column; NaN where times rest on nothing that states its errors.

    Args:
        machine: that target and drafter run on.
        times: of cycles, over batches (rows) and draft lengths (columns).
        outcome: the same with acceptance.
    """
    passes = (times.target, times.verify)
    if machine.calibration is None or not all(isinstance(one, PassTime) for one in passes):
        return dict.fromkeys(COLUMNS, np.nan)
    plain, verify = (
        pass_estimate(one, machine, name)
        for one, name in zip(passes, ("decode", "verify"), strict=True)
        if isinstance(one, PassTime)
    )
    draft = Estimate(outcome.draft_s, draft_estimate(times.draft, machine).errors)
    cost = total((draft, verify, Estimate(outcome.overhead_s))) / plain
    # Without a draft the cycle is the plain step itself.
    exact = np.asarray(outcome.draft_length) == 0
    speedup = cost.reciprocal() * outcome.tokens_per_cycle
    columns: dict[str, Number] = {}
    for name, one in zip(NAMES, (plain, draft, verify, cost, speedup), strict=True):
        unit = "_s" if name in NAMES[:3] else ""
        for end, value in zip(("low", "high"), one.interval(), strict=True):
            columns[f"{name}_{end}{unit}"] = value if unit else np.where(exact, one.value, value)
    # A verify pass moves what a plain step moves, so that no cycle is cheaper than a step beside its draft.
    beside, _ = (total((draft, Estimate(outcome.overhead_s))) / plain).interval()
    least = np.minimum(cost.value, np.maximum(columns["cycle_cost_low"], np.where(exact, 1.0, 1.0 + beside)))
    columns["cycle_cost_low"] = least
    columns["speedup_high"] = np.where(exact, speedup.value, outcome.tokens_per_cycle / least)
    return columns
