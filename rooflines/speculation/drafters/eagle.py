"""EAGLE drafts level by level from the target's features (arXiv 2401.15077, 2406.16858, 2503.01840).

A draft of depth gamma takes gamma passes of the head. The first runs over the tokens that the last cycle
emitted, whose features the target just computed: gamma + 1 positions, as engines that capture graphs pad
them. Each of the others runs over one level of the tree (one token of a chain) on the head's own features.
EAGLE-1 and -2 fuse feature and embedding in every pass and use the target's head; EAGLE-3 fuses features of
three layers of the target in the first pass alone and has a head over its draft vocabulary. P-EAGLE fills the
positions beyond the first with a learned feature, and drafts them in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.setting import Shape
from rooflines.errors import InputError
from rooflines.models.drafters import Method
from rooflines.speculation.drafters.base import Draft, Drafter, Repeated, drafting, grown
from rooflines.speculation.drafters.head import HeadDrafter, make_head
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.timing.deployment import Deployment

# EAGLE-2's settings for 7B targets (EAGLE-3, arXiv 2503.01840, appendix A): 60 tokens, the root among them,
# and top-10.
_EAGLE2_TOP_K: Final = 10
_EAGLE2_NODES: Final = 59


@dataclass(frozen=True, slots=True)
class EagleDrafter(HeadDrafter):
    """One pass over what was emitted, then one a level."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price the passes; the cache grows by one level a pass, so the mean of it is priced."""
        gamma = np.asarray(draft_length, dtype=float)
        emitted = Shape(batch, gamma + 1.0, context, 1.0)
        first = self.head.timed(emitted, before=self.head.entry(emitted))
        width = float(self.tree.top_k) if self.tree else 1.0
        level = Shape(batch, width, context + gamma / 2.0, width)
        fused = self.head.entry(level) if self.head.spec.method == "eagle" else []
        further = Repeated(np.maximum(gamma - 1.0, 0.0), self.head.timed(level, before=fused))
        return grown((Repeated(drafting(gamma), first), further), gamma, self.tree)


@dataclass(frozen=True, slots=True)
class ParallelEagleDrafter(HeadDrafter):
    """One pass over what was emitted and a placeholder for each further token."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price the pass: gamma + 1 emitted positions and gamma - 1 placeholders."""
        gamma = np.asarray(draft_length, dtype=float)
        shape = Shape(batch, np.maximum(2.0 * gamma, 1.0), context, np.maximum(gamma, 1.0))
        once = Repeated(drafting(gamma), self.head.timed(shape, before=self.head.entry(shape)))
        return grown((once,), gamma, None)


def read_tree(
    kind: str, parameters: Mapping[str, str], top_k: int | None = None, nodes: int | None = None
) -> TreeGrowth | None:
    """The tree of ``topk`` and ``nodes``, or the usual one; None for a chain.

    Raises:
        InputError: one of the two is missing.
    """
    width, budget = whole(parameters, "topk") or top_k, whole(parameters, "nodes") or nodes
    if width is None and budget is None:
        return None
    if width == 1:
        if "nodes" in parameters:
            raise InputError(f"{kind} with topk=1 drafts a chain, which has no nodes=...: leave it out")
        return None
    if width is None or budget is None:
        raise InputError(f"a tree of {kind} needs both topk=... and nodes=...: give the other one too")
    return TreeGrowth(width, budget)


def _make(
    model: str | None,
    parameters: Mapping[str, str],
    target: Deployment,
    *,
    kind: str,
    method: Method,
    usual: tuple[int, int] | None = None,
) -> Drafter:
    return EagleDrafter(
        name=label(kind, model, parameters),
        head=make_head(model, method, target),
        only=whole(parameters, "depth"),
        tree=read_tree(kind, parameters, *(usual or ())),
    )


def _parallel(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    return ParallelEagleDrafter(
        name=label("p-eagle", model, parameters),
        head=make_head(model, "p-eagle", target),
        only=whole(parameters, "depth"),
    )


TREE_PARAMETERS: Final = {
    "depth": "levels, in place of the draft lengths of the plan",
    "topk": "nodes expanded a level and children of each (default: 1, a chain)",
    "nodes": "drafted nodes that are verified (EAGLE's and SGLang's settings count one more)",
}
_HEAD: Final = "config of the head (default: the usual shape, derived from the target)"


def _kind(make: Callable[..., Drafter], parameters: dict[str, str], meaning: str) -> DrafterKind:
    return DrafterKind(make, parameters, meaning, _HEAD)


KINDS: Final = {
    "eagle": _kind(
        partial(_make, kind="eagle", method="eagle"),
        TREE_PARAMETERS,
        "a layer on the target's features, one pass a level, the target's head",
    ),
    "eagle2": _kind(
        partial(_make, kind="eagle2", method="eagle", usual=(_EAGLE2_TOP_K, _EAGLE2_NODES)),
        {
            **TREE_PARAMETERS,
            "topk": f"as for eagle (default: {_EAGLE2_TOP_K})",
            "nodes": f"as for eagle (default: {_EAGLE2_NODES})",
        },
        "EAGLE with a tree that follows the draft's confidence",
    ),
    "eagle3": _kind(
        partial(_make, kind="eagle3", method="eagle3"),
        TREE_PARAMETERS,
        "a layer on features of three layers, one pass a level, a head over a draft vocabulary",
    ),
    "p-eagle": DrafterKind(
        _parallel,
        {"depth": TREE_PARAMETERS["depth"]},
        "EAGLE-3 with several layers that drafts all tokens in one pass",
        "config of the head",
    ),
}
