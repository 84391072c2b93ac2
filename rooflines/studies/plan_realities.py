"""Why a plan answers as it does: where verifying stops being free, what drafting costs, what rejection loses.

Three things stand between a drafter and its acceptance rate: the verify pass leaves the region where memory
binds, drafting takes its own time, and a token counts only where all before it were accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import Cycle, cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.speculation.marginal import drafted_tokens, marginal_value
from rooflines.studies.plan_acceptance import GivenAcceptance
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepTimer

# Positions per sequence up to which the end of the memory-bound region is searched: wider than any draft.
_WIDEST: Final = 512


def reality_rows(
    target: StepTimer,
    drafter: Drafter,
    given: GivenAcceptance,
    *,
    batches: Sequence[int],
    context: float,
    best: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row a batch, for the draft length that is best there.

    Args:
        target: the model that is sped up.
        drafter: who proposes.
        given: its acceptance.
        batches: B.
        context: S.
        best: the best row of the plan at each batch; those without time are left out.
    """
    edges: Sequence[int | None] = [None] * len(batches)
    if isinstance(target, Deployment):  # of a pass measured whole it is not known what binds
        edges = memory_bound_widths(target, batches, context)
    found = []
    for batch, edge, row in zip(batches, edges, best, strict=True):
        length = row["draft_length"]
        if row["speedup"] is None or length == 0:
            continue
        fates = drafted_tokens(given.by_depth, length)
        cycle_s = row["draft_s"] + row["verify_s"] + row["overhead_s"]
        # Rates by position do not say what becomes of a tree's tokens, or of those that are not always there.
        drawn = drafter.draft(1.0, context, float(length))
        untold = drawn.tree is not None or drawn.proposals is not None
        found.append(
            {
                "drafter": drafter.name,
                "batch": batch,
                "draft_length": length,
                "verify_width": row["verify_width"],
                "memory_bound_width": edge,
                "memory_bound_positions": None if edge is None else batch * edge,
                "verify_cost": row["verify_s"] / row["target_step_s"],
                "draft_cost": row["draft_s"] / row["target_step_s"],
                "draft_share": row["draft_s"] / cycle_s,
                "accepted": row["tokens_per_cycle"] - 1.0,
                "lost_to_prefix": None if untold else fates.lost_to_prefix,
                "wrong": None if untold else fates.wrong,
            }
        )
    return found


def memory_bound_widths(target: Deployment, batches: Sequence[int], context: float) -> list[int | None]:
    """The widest verify pass per sequence up to which memory binds, by batch; 0 where it binds none.

    Passes before the first that memory binds (launches bind small ones) do not end its reach. None where
    memory still binds at the widest pass searched.
    """
    rows = np.asarray(batches, dtype=float)[:, None]
    widths = np.arange(1.0, _WIDEST + 1.0)
    shape = (len(batches), widths.size)
    bound = np.broadcast_to(np.asarray(target.verify(rows, context, widths[None, :]).bound), shape)
    return [_reach_of_memory(row == "memory") for row in bound]


def _reach_of_memory(binds: NDArray[np.bool_]) -> int | None:
    if not binds.any():
        return 0
    first = int(np.argmax(binds))
    others = np.flatnonzero(~binds[first:])
    return first + int(others[0]) if others.size else None


def marginal_rows(
    target: StepTimer,
    drafter: Drafter,
    rates: Rates,
    *,
    batches: Sequence[int],
    context: float,
    longest: int,
    host: CycleHost = DEVICE_ALONE,
) -> list[dict[str, Any]]:
    """What each further drafted token (of a tree, level) adds at each batch, whatever was asked for."""
    lengths = np.arange(longest + 1, dtype=float)
    rows = np.asarray(batches, dtype=float)[:, None]
    times = cycle_times(target, drafter, rows, context, lengths[None, :], host=host)
    outcome: Cycle = cycle(times, rates)
    shape = (len(batches), longest + 1)
    tau = np.broadcast_to(np.asarray(outcome.tokens_per_cycle), shape)
    value = marginal_value(tau, np.broadcast_to(np.asarray(outcome.cycle_cost), shape))
    return [
        {
            "drafter": drafter.name,
            "batch": batch,
            "position": position + 1,
            "tokens": float(value.tokens[i, position]),
            "cost": float(value.cost[i, position]),
            "speedup": float(value.speedup[i, position]),
            "speedup_gain": float(value.speedup_gain[i, position]),
        }
        for i, batch in enumerate(batches)
        for position in range(longest)
    ]
