"""Self-speculation by early exit: the target's first layers and its head draft (LayerSkip, arXiv 2404.16710).

The draft has no weights of its own, and its keys and values are the target's: what it writes for drafted
tokens, the verify pass writes again. The verify pass runs all layers, as Hugging Face's early exit does; the
paper's own implementation also keeps the exit layer's state and verifies from there, which is not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rooflines.errors import InputError
from rooflines.speculation.drafters.base import STEPS, Drafter
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.speculation.drafters.self_draft import SelfDrafter
from rooflines.timing.deployment import Deployment


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
    first = target.model.rebuilt(
        name=f"{target.model.name} (first {layers} layers)",
        layers=target.model.layers[:layers],
    )
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
            "steps": STEPS,
        },
        "the target's first layers and its head, on the target's cache",
    )
}
