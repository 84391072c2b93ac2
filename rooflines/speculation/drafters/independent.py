"""An independent small model drafts gamma tokens in gamma sequential decode steps (Leviathan et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.storage import kv_cache_bytes, weight_bytes
from rooflines.errors import InputError
from rooflines.models.spec import ModelSpec
from rooflines.speculation.drafters.base import Draft, chain, possible_lengths
from rooflines.timing.deployment import Deployment

# Training frameworks pad a vocabulary to a multiple of 64..512 a device; a larger gap is another tokenizer.
_PADDING_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class IndependentDrafter:
    """A model with its own weights and KV cache on the target's devices.

    Attributes:
        deployment: the drafter as it is served.
        target: the model it drafts for.
    """

    deployment: Deployment
    target: ModelSpec

    def __post_init__(self) -> None:
        own, other = self.deployment.model.vocabulary, self.target.vocabulary
        if abs(own - other) > _PADDING_SHARE * max(own, other):
            raise InputError(
                f"{self.deployment.model.name} has a vocabulary of {own:,} and {self.target.name} one of "
                f"{other:,}: a drafter must share the target's tokenizer"
            )

    @property
    def name(self) -> str:
        """The drafter's model."""
        return f"independent:{self.deployment.model.name}"

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Any."""
        return possible_lengths(asked, None)

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price gamma steps; the context grows by one a step, so the mean of it is priced gamma times.

        The catch-up step has width 2 instead of 1.
        """
        gamma = np.asarray(draft_length, dtype=float)
        middle = context + np.maximum(gamma - 1.0, 0.0) / 2.0
        steps = gamma * self.deployment.decode(batch, middle).seconds
        wide = self.deployment.verify(batch, context, 2.0).seconds
        narrow = self.deployment.decode(batch, context).seconds
        return chain(steps, gamma, np.where(gamma > 0, wide - narrow, 0.0))

    def weight_bytes(self) -> float:
        """The drafter's weights on each device (bytes)."""
        own = self.deployment
        return weight_bytes(own.model, own.precision, own.parallelism)

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """The drafter's own KV cache on each device (bytes)."""
        own = self.deployment
        return kv_cache_bytes(own.model, batch, context, own.precision, own.parallelism)

    def warnings(self) -> tuple[str, ...]:
        """A drafter larger than its target, or vocabularies that differ by padding."""
        own = self.deployment.model
        found = []
        if own.parameters_total > self.target.parameters_total:
            found.append(
                f"the drafter {own.name} ({own.parameters_total / 1e9:.2f}B parameters) is larger than its "
                f"target {self.target.name} ({self.target.parameters_total / 1e9:.2f}B): are they swapped?"
            )
        if own.vocabulary != self.target.vocabulary:
            found.append(
                f"vocabularies differ by padding ({own.name} {own.vocabulary:,}, {self.target.name} "
                f"{self.target.vocabulary:,}): the engine must map or mask the difference"
            )
        return tuple(found)
