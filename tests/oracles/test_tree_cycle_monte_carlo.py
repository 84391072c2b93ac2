"""Tokens per cycle of a tree against playing the accept-or-stop game on it."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.tree_growth import TreeGrowth

BRANCHES = {
    "positional": BranchAcceptance.positional((0.6, 0.2, 0.08)),
    "heads": BranchAcceptance.heads([(0.7, 0.1, 0.05), (0.5, 0.2), (0.4, 0.15, 0.1, 0.05)]),
}
CYCLES = 40_000


def played(tree, branches, generator):
    """Mean tokens of cycles: at each node at most one of its children is right."""
    children = {}
    for node, (parent, rank) in enumerate(zip(tree.parents, tree.ranks, strict=True)):
        children.setdefault(parent, {})[rank] = node
    tokens = np.zeros(CYCLES)
    for cycle in range(CYCLES):
        node, depth = -1, 0
        while node in children:
            depth += 1
            edges = np.cumsum(branches.row(depth))
            right = int(np.searchsorted(edges, generator.random(), side="right"))
            node = children[node].get(right, -2)
            if node == -2:
                depth -= 1
        tokens[cycle] = 1 + depth
    return tokens.mean(), tokens.std() / np.sqrt(CYCLES)


@pytest.mark.parametrize("known", BRANCHES)
@pytest.mark.parametrize(("top_k", "nodes", "depth"), [(1, 8, 4), (2, 5, 3), (3, 12, 3), (4, 60, 6)])
def test_tokens_per_cycle_of_a_grown_tree(known, top_k, nodes, depth):
    branches, growth = BRANCHES[known], TreeGrowth(top_k, nodes)
    mean, error = played(growth.tree(branches, depth), branches, np.random.default_rng(7))
    assert growth.tokens_per_cycle(branches, depth) == pytest.approx(mean, abs=4 * error)
