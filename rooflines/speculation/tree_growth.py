"""How a drafter grows the tree that it proposes, and what that tree yields at each depth.

An EAGLE-2 or -3 drafter takes one step a level: it expands the `top_k` best nodes of the level above into
`top_k` children each, and of all candidates the best `nodes` are verified (https://arxiv.org/abs/2406.16858).
Medusa's sparse tree (https://arxiv.org/abs/2401.10774) is the same choice made once, from accuracies of its
heads. Both keep the nodes of largest path product, so one rule serves both. What follows each context anew
(EAGLE-2's confidence) yields more than the average rates used here can show.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.speculation.acceptance import whole_number
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.tree_search import candidate_tree, rerank
from rooflines.speculation.trees import DraftTree

# Beyond it a tree is a slip of the keyboard: published ones have at most a few hundred nodes.
LARGEST_TREE = 4096
WIDEST = 64


@dataclass(frozen=True, slots=True)
class TreeGrowth:
    """The rule of a tree; its depth is the draft length.

    Attributes:
        top_k: nodes that each level expands, and children that each of them gets; 1 grows a chain.
        nodes: drafted nodes that are verified at most (verify width - 1).
    """

    top_k: int
    nodes: int

    def __post_init__(self) -> None:
        for name, value, most in (("topk", self.top_k, WIDEST), ("nodes", self.nodes, LARGEST_TREE)):
            if not 1 <= value <= most:
                raise InputError(f"{name} of a draft tree is {value}: it must be within 1..{most}")

    def verified_nodes(self, depth: Number) -> NDArray[np.float64]:
        """Drafted nodes that are verified: all candidates, at most `nodes`; by broadcasting.

        Candidates are top_k on the first level and top_k^2 on each further one.
        """
        levels = whole_number(depth, "tree depth")
        candidates = self.top_k + np.maximum(levels - 1.0, 0.0) * self.top_k**2
        return np.where(levels > 0, np.minimum(candidates, float(self.nodes)), 0.0)

    def tree(self, branches: BranchAcceptance, depth: int) -> DraftTree:
        """The tree that is verified, under average rates; a guess without a rate is no node of it."""
        if depth == 0 or not branches.row(1):
            return DraftTree.chain(0)
        candidates = candidate_tree(branches, depth, self.top_k)
        return rerank(candidates, candidates.conditional_rates(branches), self.nodes)

    def tokens_per_cycle(self, branches: BranchAcceptance, depth: Number) -> NDArray[np.float64]:
        """Tokens per cycle by depth, the target's own token included; shape of `depth`."""
        levels = whole_number(depth, "tree depth")
        distinct, where = np.unique(levels, return_inverse=True)
        found = np.array([_tokens(self, branches, int(level)) for level in distinct])
        return found[where].reshape(levels.shape)


@lru_cache(maxsize=1024)
def _tokens(growth: TreeGrowth, branches: BranchAcceptance, depth: int) -> float:
    return growth.tree(branches, depth).tokens_per_cycle(branches)
