"""What self-speculation has in common: a cheaper form of the target drafts on the target's own cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rooflines.costs.cost import Number
from rooflines.speculation.drafters.base import Draft, Repeated, Uncached, chain, possible_lengths
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepTimer


@dataclass(frozen=True, slots=True)
class SelfDrafter(Uncached):
    """A cheaper form of the target that shares its cache.

    Attributes:
        name: what the plan calls it.
        deployment: the cheaper form, as it is served.
        own_weight_bytes: weights that it needs beside the target's on each device (bytes).
        only: the one draft length that was asked of it.
        steps: what times its steps in place of the deployment.
    """

    name: str
    deployment: Deployment
    own_weight_bytes: float = 0.0
    only: int | None = None
    steps: StepTimer | None = None

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Any, or the one that was fixed."""
        return possible_lengths(asked, self.only)

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price gamma steps at their mean context; verifying fills the cache, so nothing is caught up."""
        gamma = np.asarray(draft_length, dtype=float)
        middle = context + np.maximum(gamma - 1.0, 0.0) / 2.0
        timer = self.deployment if self.steps is None else self.steps
        return chain((Repeated(gamma, timer.decode(batch, middle)),), gamma)

    def timed_by(self, steps: StepTimer) -> Self:
        """The same drafter with measured steps."""
        return replace(self, steps=steps)

    def weight_bytes(self) -> float:
        """Beside the target's (bytes)."""
        return self.own_weight_bytes

    def warnings(self) -> tuple[str, ...]:
        """None."""
        return ()
