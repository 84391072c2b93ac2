"""Which tree is best at each batch of a plan: size and depth against what verifying and drafting take here.

Sequoia (arXiv 2402.12374) maximises G(n, d) / (t(n) + d c) with t(n) a measured verify time; here t(n) and
the draft's time by depth come from the same timing as the plan. Of the candidates that a drafter expands at
one depth, the best trees of all sizes are nested: adding nodes by falling path product gives each of them
(`tree_growth`), so G(n, d) is a running sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.head import HeadDrafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.timing.step_times import StepTimer

# Drafted nodes searched. Sequoia's trees have up to 768 on hardware that verifies them for nothing; every
# engine's have fewer than this.
LARGEST_SEARCHED_TREE: Final = 256


def nested_yields(growth: TreeGrowth, branches: BranchAcceptance, depth: int) -> NDArray[np.float64]:
    """G(n, d): tokens per cycle of the best tree with 0, 1, .. `growth.nodes` nodes in `depth` levels.

    Beyond the nodes that have a rate it stays what it is; shape (nodes + 1,).
    """
    tree = growth.tree(branches, depth)
    gains = np.zeros(growth.nodes)
    gains[: tree.nodes] = np.sort(tree.path_products(tree.conditional_rates(branches)))[::-1]
    return np.concatenate([[1.0], 1.0 + np.cumsum(gains)])


@dataclass(frozen=True, slots=True)
class BestTree:
    """The best tree at one batch.

    Attributes:
        batch: B.
        depth: levels that are drafted.
        growth: how it is grown, with its own number of nodes.
        widths: nodes of each level.
    """

    batch: int
    depth: int
    growth: TreeGrowth
    widths: tuple[int, ...]


def best_trees(
    target: StepTimer,
    drafter: Drafter,
    top_k: int,
    branches: BranchAcceptance,
    *,
    batches: Sequence[int],
    context: float,
    depths: Sequence[int],
    host: CycleHost = DEVICE_ALONE,
) -> list[BestTree]:
    """The best size and depth at each batch, with the drafter's own width of a level.

    Args:
        target: the model that verifies.
        drafter: one that proposes trees; its own number of nodes plays no part.
        top_k: nodes that it expands a level.
        branches: acceptance of every guess.
        batches: B.
        context: S.
        depths: levels to compare; 0 is left out.
        host: what it adds to passes and cycles.
    """
    levels = [depth for depth in depths if depth > 0]
    if not levels or not batches:
        return []
    widths = np.arange(2.0, LARGEST_SEARCHED_TREE + 2.0)  # nodes and root
    rows = np.asarray(batches, dtype=float)[:, None]
    verify_s = np.broadcast_to(
        host.launched(target.verify(rows, context, widths[None, :], widths[None, :] ** 2)).seconds,
        (rows.size, widths.size),
    )
    draft_s = np.broadcast_to(
        host.drawn(drafter.draft(rows, context, np.asarray(levels, dtype=float)[None, :])).seconds,
        (rows.size, len(levels)),
    )
    outside_s = np.broadcast_to(host.outside_s(rows, 1.0), (rows.size, 1))
    whole = TreeGrowth(top_k, LARGEST_SEARCHED_TREE)
    tokens = np.stack([nested_yields(whole, branches, depth)[1:] for depth in levels])
    cycles_s = draft_s[:, :, None] + verify_s[:, None, :] + outside_s[:, :, None]
    tokens_per_s = tokens[None] / cycles_s
    found = []
    for i, batch in enumerate(batches):
        level, size = np.unravel_index(int(np.argmax(tokens_per_s[i])), tokens_per_s[i].shape)
        growth = TreeGrowth(top_k, int(size) + 1)
        tree = growth.tree(branches, levels[int(level)])
        found.append(BestTree(batch, levels[int(level)], growth, tuple(tree.widths)))
    return found


def grown_by(drafter: Drafter, growth: TreeGrowth) -> Drafter:
    """The same drafter with trees of another size.

    Raises:
        InputError: it proposes no trees.
    """
    if not isinstance(drafter, HeadDrafter):
        raise InputError(f"{drafter.name} proposes no trees: leave --best-tree out")
    return replace(drafter, tree=growth)
