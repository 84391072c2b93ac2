"""Medusa: head k guesses the k-th next token from the target's last hidden state (arXiv 2401.10774).

All heads run once, on one position of each sequence, inside the target's pass. Each is residual blocks and a
head over the whole vocabulary. Their guesses make a tree whose depth is the number of heads used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.setting import Shape
from rooflines.models.matrix import Matrix
from rooflines.speculation.drafters.base import Draft, Drafter, Repeated, Uncached, grown, require_length
from rooflines.speculation.drafters.eagle import TREE_PARAMETERS, read_tree
from rooflines.speculation.drafters.head import HeadDrafter, make_head
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class MedusaDrafter(Uncached, HeadDrafter):
    """Heads side by side on one position, which attend to nothing."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price one head, as often as heads are used; the head of plain decoding is the target's own.

        Raises:
            InputError: more tokens than heads.
        """
        require_length(self.name, draft_length, self.longest)
        shape = Shape(batch, 1.0, context, 1.0)
        one = [
            self.head.linear(each.name, each, batch, shape)
            for each in (Matrix(m.name, m.inputs, m.outputs, m.bias) for m in self.head.spec.heads)
        ]
        heads = np.asarray(draft_length, dtype=float)
        used = Repeated(heads, self.head.inside([*one, *self.head.choice(batch, shape)]))
        return grown((used,), heads, self.tree)


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    head = make_head(model, "medusa", target)
    return MedusaDrafter(
        name=label("medusa", model, parameters),
        head=head,
        longest=head.spec.draft_length,
        only=whole(parameters, "depth"),
        tree=read_tree("medusa", parameters),
    )


KINDS: Final = {
    "medusa": DrafterKind(
        _make,
        {
            **TREE_PARAMETERS,
            "depth": "heads used, in place of the draft lengths of the plan",
            "topk": "guesses of each head (default: 1, a chain)",
        },
        "heads on the target's last hidden state, all in one pass",
        "config of the heads (default: five heads of one residual block)",
    )
}
