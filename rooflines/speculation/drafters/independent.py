"""An independent small model drafts gamma tokens in gamma sequential decode steps (Leviathan et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.setting import Parallelism, Precision
from rooflines.costs.storage import kv_cache_bytes, weight_bytes
from rooflines.dtypes import number_format
from rooflines.errors import InputError
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec
from rooflines.speculation.drafters.base import (
    STEPS,
    Draft,
    Drafter,
    Repeated,
    chain,
    possible_lengths,
    require_same_tokenizer,
)
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.speculation.drafters.sparse_kv import WINDOW, windowed
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepTimer


@dataclass(frozen=True, slots=True)
class IndependentDrafter:
    """A model with its own weights and KV cache on the target's devices.

    Attributes:
        deployment: the drafter as it is served.
        target: the model it drafts for.
        parameters: what was set by name, for its own name.
        only: the one draft length that was asked of it.
        steps: what times its steps in place of the deployment.
    """

    deployment: Deployment
    target: ModelSpec
    parameters: tuple[tuple[str, str], ...] = ()
    only: int | None = None
    steps: StepTimer | None = None

    def __post_init__(self) -> None:
        own = self.deployment.model
        require_same_tokenizer(own.name, own.vocabulary, self.target)

    @property
    def name(self) -> str:
        """The drafter's model, and what was set of it."""
        return label("independent", self.deployment.model.name, dict(self.parameters))

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Any, or the one that was fixed."""
        return possible_lengths(asked, self.only)

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price gamma steps; the context grows by one a step, so the mean of it is priced gamma times.

        The catch-up step has width 2 instead of 1.
        """
        gamma = np.asarray(draft_length, dtype=float)
        middle = context + np.maximum(gamma - 1.0, 0.0) / 2.0
        timer = self.deployment if self.steps is None else self.steps
        wide = timer.verify(batch, context, 2.0).seconds
        narrow = timer.decode(batch, context).seconds
        steps = (Repeated(gamma, timer.decode(batch, middle)),)
        return chain(steps, gamma, np.where(gamma > 0, wide - narrow, 0.0))

    def timed_by(self, steps: StepTimer) -> Self:
        """The same drafter with measured steps."""
        return replace(self, steps=steps)

    def prefill(self, new_tokens: Number, context: Number) -> Number:
        """A pass of the whole model over the prompt."""
        return self.deployment.prefill(1.0, new_tokens, context).seconds

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


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    if model is None:
        raise InputError("an independent drafter needs its model: write it as independent:llama-3.2-1b")
    weights = parameters.get("weight-dtype")
    degree, window = whole(parameters, "tp"), whole(parameters, "window")
    own = read_model(model)
    served = Deployment(
        windowed(own, window) if window else own,
        target.machine,
        Precision(number_format(weights).name if weights else None, target.precision.kv),
        Parallelism(degree) if degree else target.parallelism,
    )
    return IndependentDrafter(served, target.model, tuple(parameters.items()), whole(parameters, "depth"))


KINDS: Final = {
    "independent": DrafterKind(
        _make,
        {
            "tp": "tensor-parallel degree of the drafter (default: the target's)",
            "weight-dtype": "format of its linear layers (default: its checkpoint's)",
            "window": f"{WINDOW} (default: all)",
            "depth": "tokens, in place of the draft lengths of the plan",
            "steps": STEPS,
        },
        "a small model with its own weights and KV cache, one step per drafted token",
        "the small model",
    )
}
