"""What verifying costs: the time of a pass of n positions a sequence over a plain step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rooflines.rows import Row
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_estimate

Floats = NDArray[np.float64]


def verify_rows(
    target: Deployment, batches: Sequence[int], context: int, positions: Sequence[int]
) -> list[Row]:
    """A row a batch and width: times (s), T(n) / T(1) and its 90 % interval.

    Memory is not looked at: a batch that does not fit has its times too.

    Args:
        target: what verifies, on what.
        batches: B.
        context: S, cached positions per sequence.
        positions: n, positions verified per sequence; of a chain, the draft length and one more.
    """
    rows: list[Row] = []
    widths = np.asarray(positions, dtype=float)
    for batch in batches:
        step = target.decode(float(batch), context)
        verify = target.verify(float(batch), context, widths)
        low, high = premium_interval(step, verify, target.machine)
        verify_s = np.broadcast_to(verify.seconds, widths.shape)
        rows += [
            {
                "hardware": target.machine.profile.id,
                "name": target.machine.profile.name,
                "batch": batch,
                "context": context,
                "positions": width,
                "step_s": float(step.seconds),
                "verify_s": float(verify_s[index]),
                "relative": float(verify_s[index] / step.seconds),
                "relative_low": float(low[index]),
                "relative_high": float(high[index]),
                "basis": target.machine.basis,
            }
            for index, width in enumerate(positions)
        ]
    return rows


def premium_interval(step: PassTime, verify: PassTime, machine: Machine) -> tuple[Floats, Floats]:
    """Ends of the 90 % interval of T(n) / T(1); a pass of one position is the step itself.

    Args:
        step: of plain decoding.
        verify: of widths along the last axis, shape (n,).
        machine: states the errors of its constants.
    """
    ratio = pass_estimate(verify, machine, "verify") / pass_estimate(step, machine, "decode")
    ends = [np.broadcast_to(end, np.shape(verify.seconds)) for end in ratio.interval()]
    same = np.isclose(np.asarray(ratio.value), 1.0, rtol=1e-12, atol=0.0)
    low, high = (np.where(same, 1.0, end) for end in ends)
    # A verify pass moves what the step moves, so that it is no cheaper.
    return np.minimum(np.maximum(low, 1.0), ratio.value), high
