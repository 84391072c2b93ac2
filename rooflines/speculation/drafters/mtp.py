"""Multi-token prediction: the target's own extra module drafts (DeepSeek-V3, arXiv 2412.19437, section 2.2).

The module is a projection of hidden state and embedding and one layer like the target's (a mixture of experts
with experts of its own in DeepSeek-V3); embedding and head are the target's. Trained for one token, it is
reused for further ones, as engines do: the first pass runs over what the last cycle emitted (gamma + 1
positions, as graphs pad them), each further one over one token of each sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.setting import Shape
from rooflines.errors import InputError
from rooflines.speculation.drafters.base import Draft, Drafter, Repeated, chain, drafting
from rooflines.speculation.drafters.head import HeadDrafter, make_head
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class MtpDrafter(HeadDrafter):
    """One pass over what was emitted, then one for each further token."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price the passes; experts are read as often as a pass of so many tokens hits them."""
        gamma = np.asarray(draft_length, dtype=float)
        emitted = Shape(batch, gamma + 1.0, context, 1.0)
        one = Shape(batch, 1.0, context + gamma / 2.0, 1.0)
        first = self.head.timed(emitted, before=self.head.entry(emitted))
        again = self.head.timed(one, before=self.head.entry(one))
        further = Repeated(np.maximum(gamma - 1.0, 0.0), again)
        return chain((Repeated(drafting(gamma), first), further), gamma)


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    if model is not None:
        raise InputError(f"mtp takes no model, not {model!r}: its module is the target's own")
    return MtpDrafter(
        name=label("mtp", None, parameters),
        head=make_head(None, "mtp", target),
        only=whole(parameters, "depth"),
    )


KINDS: Final = {
    "mtp": DrafterKind(
        _make,
        {"depth": "tokens, in place of the draft lengths of the plan"},
        "the target's own prediction module, reused for each further token",
    )
}
