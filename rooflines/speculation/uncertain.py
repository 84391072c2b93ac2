"""How wrong the time of a draft may be, by cause, from the passes that it is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooflines.costs.cost import Number
from rooflines.estimates import Estimate
from rooflines.speculation.drafters.base import Draft, total_s
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_errors_s


def draft_estimate(draft: Draft, machine: Machine) -> Estimate:
    """The passes of a draft (s) with their errors by cause.

    The draft shares with other passes what all kernels of a class share, and no more: its matrices are others
    than the target's. Its own passes are wrong alike in every part. Those that were measured as a whole, and
    time that is not made of passes, are taken as exact.

    Args:
        draft: of one cycle; without what it catches up.
        machine: that its passes run on, which states the residuals of its constants.
    """
    seconds = np.asarray(total_s(draft.passes))
    positive = seconds > 0
    errors = {
        cause: np.where(positive, part_s, 0.0) / np.where(positive, seconds, 1.0)
        for cause, part_s in draft_errors_s(draft, machine).items()
    }
    return Estimate(seconds, errors, machine.basis)


def draft_errors_s(draft: Draft, machine: Machine) -> dict[str, Number]:
    """What `draft_estimate` says, as standard deviations of the time (s) by cause."""
    absolute_s: dict[str, Number] = {}
    for one in draft.passes:
        if isinstance(one.time, PassTime):
            for cause, part_s in pass_errors_s(_of_draft(one.time), machine, "draft").items():
                absolute_s[cause] = absolute_s.get(cause, 0.0) + one.count * part_s
    return absolute_s


def _of_draft(time: PassTime) -> PassTime:
    """The same pass with operators of their own names."""
    own = tuple(
        replace(one, operator=replace(one.operator, name=f"{one.operator.name} of draft"))
        for one in time.operators
    )
    return replace(time, operators=own)
