"""DFlash drafts a whole block in one bidirectional pass (arXiv 2602.06036).

Its layers attend to the block and to keys and values made from features of the target ("KV injection"), which
are made for each token that the last cycle emitted and then cached: gamma + 1 positions, as graphs pad them.
The embedding and the head are the target's. A block of 16 positions holds the known token and 15 drafts; a
drafter trained for it runs shorter blocks too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.costs.cost import Number, Operator
from rooflines.costs.linear import layer_linear
from rooflines.costs.setting import Precision, Shape
from rooflines.costs.sharding import on_device
from rooflines.errors import InputError
from rooflines.models.spec import Attention
from rooflines.speculation.drafters.base import Draft, Drafter, Repeated, chain, drafting, require_length
from rooflines.speculation.drafters.head import Head, HeadDrafter, head_model, make_head
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class BlockDrafter(HeadDrafter):
    """One pass over a block, and what its family does token by token after it."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price the pass over the block, with the head on its drafts.

        Raises:
            InputError: more tokens than the block holds.
        """
        require_length(self.name, draft_length, self.longest)
        gamma = np.asarray(draft_length, dtype=float)
        spec = self.head.spec
        known = (spec.block_size or 0) - (spec.draft_length or 0)  # 1 where the first position is no draft
        shape = Shape(batch, np.maximum(gamma + known, 1.0), context, np.maximum(gamma, 1.0))
        emitted = Shape(batch, gamma + 1.0, context)
        once = self.head.timed(shape, self._injected(emitted), self.sequential(shape, gamma))
        return chain((Repeated(drafting(gamma), once),), gamma)

    def prefill(self, new_tokens: Number, context: Number) -> Number:
        """Keys and values of the prompt, out of the target's features; nothing attends to them yet."""
        return self.head.inside(self._injected(Shape(1.0, new_tokens, context))).seconds

    def sequential(self, shape: Shape, draft_length: Number) -> list[Operator]:  # noqa: ARG002 - families with steps override it
        """Operators of the steps after the pass: none."""
        return []

    def _injected(self, emitted: Shape) -> list[Operator]:
        """Keys and values of emitted tokens, out of the target's features."""
        head = self.head
        setting = head.setting(emitted)
        found = head.entry(emitted)
        for layer, count in head.spec.layer_groups:
            own = on_device(layer, head.spec.hidden, Precision(), head.target.parallelism)
            if not isinstance(own.mixer, Attention):
                continue
            made = [m for m in own.mixer.matrices(head.spec.hidden) if m.name in ("key", "value")]
            one = layer_linear("context kv projection", own, made, emitted.tokens, setting)
            found.append(replace(one, count=count))
        return found


def block_length(parameters: Mapping[str, str], known: int) -> int | None:
    """Tokens drafted with ``block=...`` positions, of which `known` are no drafts."""
    size = whole(parameters, "block", 1 + known)
    return None if size is None else size - known


def usual_layers(head: Head, model: str | None, parameters: Mapping[str, str]) -> Head:
    """A head of the usual shape with ``layers=...`` layers.

    Raises:
        InputError: the config states how many, or they are more than the target's.
    """
    count, served = whole(parameters, "layers"), head.target
    if count is None:
        return head
    if model is not None:
        raise InputError(
            f"layers={count} beside {model}, whose config states its layers: leave one of them out"
        )
    most = len(served.model.layers)
    if count > most:
        raise InputError(
            f"layers={count} is more than the {most} of {served.model.name}, which it drafts for: write fewer"
        )
    spec = head.spec.model_copy(update={"layers": head.spec.layers[:1] * count})
    return Head(spec, served, head_model(spec, served.model))


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    head = usual_layers(make_head(model, "dflash", target), model, parameters)
    return BlockDrafter(
        name=label("dflash", model, parameters),
        head=head,
        longest=head.spec.draft_length,
        only=block_length(parameters, 1),
    )


KINDS: Final = {
    "dflash": DrafterKind(
        _make,
        {
            "block": "positions of the block, one more than it drafts, in place of the plan's draft lengths",
            "layers": "layers of a head of the usual shape, which has five",
        },
        "a whole block in one bidirectional pass on features of the target",
        "config of the head (default: five layers, block 16)",
    )
}
