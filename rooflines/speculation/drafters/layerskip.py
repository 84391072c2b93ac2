"""Self-speculation by early exit: the target's first layers and its head draft (LayerSkip, arXiv 2404.16710).

The draft has no weights of its own, and its keys and values are the target's: what it writes for drafted
tokens, the verify pass writes again. The verify pass runs all layers, as Hugging Face's early exit does; the
paper's own implementation also keeps the exit layer's state and verifies from there, which is not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.models.spec import ModelSpec
from rooflines.speculation.drafters.base import Draft, Drafter, chain, possible_lengths
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class SelfDrafter:
    """A cheaper form of the target that shares its cache.

    Attributes:
        name: what the plan calls it.
        deployment: the cheaper form, as it is served.
        own_weight_bytes: weights that it needs beside the target's on each device (bytes).
        only: the one draft length that was asked of it.
    """

    name: str
    deployment: Deployment
    own_weight_bytes: float = 0.0
    only: int | None = None

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Any, or the one that was fixed."""
        return possible_lengths(asked, self.only)

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price gamma steps at their mean context; verifying fills the cache, so nothing is caught up."""
        gamma = np.asarray(draft_length, dtype=float)
        middle = context + np.maximum(gamma - 1.0, 0.0) / 2.0
        return chain(gamma * self.deployment.decode(batch, middle).seconds, gamma)

    def weight_bytes(self) -> float:
        """Beside the target's (bytes)."""
        return self.own_weight_bytes

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """None: it uses the target's."""
        return 0.0 * np.asarray(batch) * context

    def warnings(self) -> tuple[str, ...]:
        """None."""
        return ()


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    layers = whole(parameters, "layers")
    if model is not None or layers is None:
        raise InputError(
            "layerskip needs the layers that draft, and no model: write it as layerskip:layers=8"
        )
    most = len(target.model.layers) - 1
    if layers > most:
        raise InputError(
            f"layerskip:layers={layers} is no early exit: {target.model.name} has {most + 1} layers, so "
            f"write {most} or fewer"
        )
    # Built anew: a copy would keep what the whole model has cached of its layers.
    facts = {name: getattr(target.model, name) for name in ModelSpec.model_fields}
    facts["name"] = f"{target.model.name} (first {layers} layers)"
    first = ModelSpec(**{**facts, "layers": target.model.layers[:layers]})
    return SelfDrafter(
        name=label("layerskip", None, parameters),
        deployment=replace(target, model=first),
        only=whole(parameters, "depth"),
    )


KINDS: Final = {
    "layerskip": DrafterKind(
        _make,
        {
            "layers": "first layers of the target that draft",
            "depth": "tokens, in place of the draft lengths of the plan",
        },
        "the target's first layers and its head, on the target's cache",
    )
}
