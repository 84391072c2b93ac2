"""Drafting on a sparse cache: attention of the draft sees a window of the newest positions.

MagicDec (arXiv 2408.11049) lets a small model, or the target itself, draft on StreamingLLM's window, so that
the draft's cost stops growing with the context. Where a long context makes the target's cache the larger part
of what a step reads, speculation gains with the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rooflines.errors import InputError
from rooflines.models.spec import Attention, LatentAttention, Layer, ModelSpec
from rooflines.speculation.drafters.base import STEPS, Drafter
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.speculation.drafters.self_draft import SelfDrafter
from rooflines.timing.deployment import Deployment

WINDOW: Final = "newest positions that its attention sees"


def windowed(model: ModelSpec, window: int) -> ModelSpec:
    """The model with all full attention cut to the newest `window` positions; narrower windows stay.

    Raises:
        InputError: it has no attention that would be cut.
    """

    def cut(layer: Layer) -> Layer:
        mixer = layer.mixer
        if not isinstance(mixer, Attention | LatentAttention) or (mixer.window or window) < window:
            return layer
        if isinstance(mixer, Attention) and mixer.chunk:
            return layer
        return layer.model_copy(update={"mixer": mixer.model_copy(update={"window": window})})

    distinct = {id(layer): cut(layer) for layer in model.layers}
    layers = tuple(distinct[id(layer)] for layer in model.layers)
    if layers == model.layers:
        raise InputError(f"{model.name} has no attention that sees more than {window} positions")
    return model.rebuilt(layers=layers)


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    window = whole(parameters, "window")
    if model is not None or window is None:
        raise InputError("sparse-kv needs a window, and no model: write it as sparse-kv:window=256")
    return SelfDrafter(
        name=label("sparse-kv", None, parameters),
        deployment=replace(target, model=windowed(target.model, window)),
        only=whole(parameters, "depth"),
    )


KINDS: Final = {
    "sparse-kv": DrafterKind(
        _make,
        {"window": WINDOW, "depth": "tokens, in place of the draft lengths of the plan", "steps": STEPS},
        "the target itself on a window of its cache",
    )
}
