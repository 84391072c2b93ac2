"""How wrong the time of a draft may be, by cause, from the passes that it is made of."""

from __future__ import annotations

from dataclasses import replace

from rooflines.estimates import Estimate, total
from rooflines.speculation.drafters.base import Draft
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_estimate


def draft_estimate(draft: Draft, machine: Machine, name: str = "draft") -> Estimate:
    """The passes of a draft (s) with their errors by cause.

    The draft shares with passes of other names what all kernels of a class share, and no more: its matrices
    are others than the target's. Passes that were measured as a whole, and time that is not made of passes,
    are taken as exact.

    Args:
        draft: of one cycle; without what it catches up.
        machine: that its passes run on, which states the residuals of its constants.
        name: of the passes, which are wrong alike in every part.
    """
    return total(
        pass_estimate(_of(one.time, name), machine, name) * one.count
        if isinstance(one.time, PassTime)
        else Estimate(one.time.seconds * one.count)
        for one in draft.passes
    )


def _of(time: PassTime, name: str) -> PassTime:
    """The same pass with operators of their own names."""
    own = tuple(
        replace(one, operator=replace(one.operator, name=f"{one.operator.name} of {name}"))
        for one in time.operators
    )
    return replace(time, operators=own)
