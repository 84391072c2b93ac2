"""DSpark and Domino: a block in one pass, then a light head token by token.

DSpark (arXiv 2607.05147): logits of each position get a correction of low rank from the token chosen before
it (two tables of rank r), and a number that predicts acceptance, by which the engine cuts what it verifies
(`verify_length`). All of its block's positions are drafts: a block of 7 drafts 7. Domino
(https://github.com/sgl-project/SpecForge) corrects with a small recurrent state instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from rooflines.costs.cost import Number, Operator
from rooflines.costs.setting import Shape
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.dflash import BlockDrafter, block_length
from rooflines.speculation.drafters.head import make_head
from rooflines.speculation.drafters.kind import DrafterKind, label
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class CorrectedBlockDrafter(BlockDrafter):
    """A block drafter whose heads run once more for each token, one position of each sequence at a time."""

    def sequential(self, shape: Shape, draft_length: Number) -> list[Operator]:
        """One multiplication by each matrix of the heads, and one choice, for each drafted token."""
        head = self.head
        steps = [head.linear(matrix.name, matrix, shape.batch, shape) for matrix in head.spec.heads]
        steps += head.choice(shape.batch, shape)
        return [replace(step, cost=step.cost * draft_length) for step in steps]


def _make(
    kind: Literal["dspark", "domino"], model: str | None, parameters: Mapping[str, str], target: Deployment
) -> Drafter:
    head = make_head(model, kind, target)
    known = (head.spec.block_size or 0) - (head.spec.draft_length or 0)
    return CorrectedBlockDrafter(
        name=label(kind, model, parameters),
        head=head,
        longest=head.spec.draft_length,
        only=block_length(parameters, known),
    )


_BLOCK: Final = {"block": "positions of the block, in place of the plan's draft lengths"}
KINDS: Final = {
    "dspark": DrafterKind(
        partial(_make, "dspark"),
        _BLOCK,
        "a block in one pass, then a low-rank head on the previous token, and predicted acceptance",
        "config of the head (default: five layers, block 7, rank 256)",
    ),
    "domino": DrafterKind(
        partial(_make, "domino"),
        _BLOCK,
        "a block in one pass, then a recurrent correction token by token",
        "config of the head",
    ),
}
