"""How much of a draft to verify at each batch of a plan: DSpark's algorithm 1 on our own timing.

DSpark, arXiv 2607.05147: positions of all drafts of a batch are admitted by falling survival while tokens per
second grow. Requests of a plan are alike, so survival is the mean one; an engine that knows the confidence of
each draft gains more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.speculation.verify_length import choose_verify_lengths
from rooflines.timing.step_times import StepTimer


@dataclass(frozen=True, slots=True)
class BatchCycle:
    """A batch whose drafts are made, and of which any number of positions can be verified.

    Attributes:
        target: the model that verifies.
        drafter: who proposes chains.
        batch: B.
        context: S.
        draft_length: G, tokens drafted for each sequence.
        host: what it adds to passes and cycles.
    """

    target: StepTimer
    drafter: Drafter
    batch: int
    context: float
    draft_length: int
    host: CycleHost = DEVICE_ALONE

    def steps_per_s(self, acceptance: Acceptance, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """SPS, cycles per second with so many verified positions of the whole batch (1/s).

        The catch-up of a drafter is charged as after a full verify.
        """
        batch, context = float(self.batch), self.context
        draft = self.host.drawn(self.drafter.draft(batch, context, float(self.draft_length)))
        caught_up = draft.catch_up_s * acceptance.survival(self.draft_length)
        verify = self.host.launched(self.target.verify(batch, context, positions / batch)).seconds
        outside_s = self.host.outside_s(batch, float(self.draft_length))
        return np.asarray(1.0 / (draft.seconds + caught_up + outside_s + verify), dtype=float)


def verify_budget_row(cycle: BatchCycle, acceptance: Acceptance) -> dict[str, Any]:
    """The best number of positions to verify, and what it gains over verifying every draft whole.

    Raises:
        InputError: a drafter that does not propose in every cycle.
    """
    batch, gamma = cycle.batch, cycle.draft_length
    if cycle.drafter.draft(float(batch), cycle.context, float(gamma)).proposals is not None:
        raise InputError(
            f"{cycle.drafter.name} does not always propose, and how much to verify is chosen for drafts that "
            "are there: leave hit= and ends= out, or --adaptive-verify"
        )
    survival = np.tile(acceptance.survival_profile(gamma), (batch, 1))
    choice = choose_verify_lengths(
        survival, lambda positions: cycle.steps_per_s(acceptance, positions), stop_early=False
    )
    whole = cycle.steps_per_s(acceptance, np.asarray(batch * (gamma + 1.0)))
    plain_s = float(cycle.host.plain(cycle.target.decode(float(batch), cycle.context)).seconds)
    return {
        "drafter": cycle.drafter.name,
        "batch": batch,
        "draft_length": gamma,
        "verify_positions": choice.batch_tokens,
        "verify_length": choice.batch_tokens / batch - 1.0,
        "tokens_per_cycle": choice.tokens_per_step / batch,
        "tokens_per_s": choice.tokens_per_s,
        "tokens_per_s_all_verified": batch * float(acceptance.tokens_per_cycle(gamma)) * float(whole),
        "speedup": choice.tokens_per_s / batch * plain_s,
    }
