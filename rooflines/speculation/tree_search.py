"""Draft trees that yield most: greedily, by Sequoia's dynamic programme, or as EAGLE-2 reranks a draft.

All maximise F, the sum over nodes of the product of acceptances along the path, under a budget of nodes. A
node's product never exceeds its parent's, so the best nodes of all, taken one by one, form a tree: greedy is
exact. Sequoia's programme is exact too where children must come in order and later ones may be better.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import whole_number
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.trees import ROOT, DraftTree

_IMPOSSIBLE: Final = -np.inf


def greedy_tree(branches: BranchAcceptance, nodes: int, depth: int | None = None) -> DraftTree:
    """Medusa's sparse tree: add the node with the largest path product until the budget is spent.

    Medusa, https://arxiv.org/abs/2401.10774. Of equal nodes the shallower comes first, then
    the better rank. Nodes of zero acceptance are not added, so the tree may stay smaller than the budget.

    Args:
        branches: acceptance of every guess.
        nodes: budget of drafted nodes (verify width - 1).
        depth: most levels below the root; None for as deep as pays and `branches` knows.
    """
    budget = int(whole_number(nodes, "tree nodes"))
    deepest = np.inf if depth is None else whole_number(depth, "tree depth")
    order = count()
    paths: list[tuple[int, ...]] = []
    # Entries: negated product, depth, rank, insertion order, path. Ranks enter one after another.
    heap: list[tuple[float, int, int, int, tuple[int, ...]]] = []
    products: dict[tuple[int, ...], float] = {(): 1.0}

    def propose(parent: tuple[int, ...]) -> None:
        level = len(parent) + 1
        for rank, rate in enumerate(branches.row(level) if level <= deepest else ()):
            product = products[parent] * rate
            if product > 0:
                heapq.heappush(heap, (-product, level, rank, next(order), (*parent, rank)))

    propose(())
    while heap and len(paths) < budget:
        negated, _, _, _, path = heapq.heappop(heap)
        products[path] = -negated
        paths.append(path)
        propose(path)
    return DraftTree.from_paths(paths)


def candidate_tree(branches: BranchAcceptance, depth: int, top_k: int) -> DraftTree:
    """EAGLE-2's expansion: at each level the `top_k` nodes of largest product get `top_k` children each.

    EAGLE-2, https://arxiv.org/abs/2406.16858 (expansion), with acceptance in the place of the draft's
    confidence. It has top_k + (depth - 1) top_k^2 nodes where every guess has a rate.

    Args:
        branches: acceptance of every guess; guesses beyond those listed are not drafted.
        depth: levels below the root, each one step of the drafter.
        top_k: width.
    """
    whole_number(depth, "tree depth", least=1)
    whole_number(top_k, "tree width", least=1)
    paths: list[tuple[int, ...]] = []
    frontier: list[tuple[float, tuple[int, ...]]] = [(1.0, ())]
    for level in range(1, depth + 1):
        row = branches.row(level)[:top_k]
        children = [
            (product * rate, (*path, rank)) for product, path in frontier for rank, rate in enumerate(row)
        ]
        paths.extend(path for _, path in children)
        frontier = sorted(children, key=lambda child: (-child[0], child[1]))[:top_k]
    return DraftTree.from_paths(paths)


def rerank(tree: DraftTree, rates: NDArray[np.float64], nodes: int) -> DraftTree:
    """EAGLE-2's second step: keep the `nodes` nodes of largest path product, which again form a tree.

    EAGLE-2, https://arxiv.org/abs/2406.16858 (reranking). EAGLE's code and SGLang count the root among their
    "total tokens", so that setting is `nodes` + 1.

    Args:
        tree: the candidates.
        rates: acceptance (or confidence) of each candidate given its parent's; shape (nodes,).
        nodes: drafted nodes to keep.
    """
    keep = int(whole_number(nodes, "tree nodes"))
    products = tree.path_products(rates)
    # A parent comes before its children and is at least as good, so a stable order keeps trees closed.
    best = np.sort(np.argsort(-products, kind="stable")[:keep])
    index = {int(node): new for new, node in enumerate(best)} | {ROOT: ROOT}
    return DraftTree(
        tuple(index[tree.parents[node]] for node in best), tuple(tree.ranks[node] for node in best)
    )


@dataclass(frozen=True, slots=True)
class SequoiaTable:
    """Sequoia's dynamic programme over sizes, depths and numbers of children of the root.

    T(n, b, d) is the most tokens per cycle of a tree with n nodes, the root among them, b children of the
    root and at most d levels below it:

        T(n, b, d) = max over m of T(n - m, b - 1, d) + P[b] max over j of T(m, j, d - 1)

    Sequoia, https://arxiv.org/abs/2402.12374, with the bound on depth; T(1, 0, d) = 1.

    Attributes:
        vector: P, acceptance of the i-th child.
        tokens: T; shape (verify widths 0..n, depths 0..d, children 0..b), -inf where there is no such tree.
        splits: the m that attains T.
    """

    vector: tuple[float, ...]
    tokens: NDArray[np.float64]
    splits: NDArray[np.int64]

    def best_tokens(self) -> NDArray[np.float64]:
        """G(n, d), most tokens per cycle; shape (verify widths 0..n, depths 0..d)."""
        return np.asarray(np.max(self.tokens, axis=2))

    def tree(self, verify_width: int, depth: int) -> DraftTree:
        """The tree that attains G(n, d).

        Args:
            verify_width: n, the root among them.
            depth: most levels below the root.

        Raises:
            InputError: no tree of that size fits in that depth, or the table is smaller.
        """
        widths, depths, _ = self.tokens.shape
        if not (1 <= verify_width < widths and 0 <= depth < depths):
            raise InputError(
                f"the table has verify widths to {widths - 1} and depths to {depths - 1}, not "
                f"{verify_width}, {depth}"
            )
        if not np.isfinite(np.max(self.tokens[verify_width, depth])):
            raise InputError(f"no tree of verify width {verify_width} fits in depth {depth}")
        return DraftTree.from_paths(self._paths(verify_width, depth, ()))

    def _paths(self, width: int, depth: int, above: tuple[int, ...]) -> list[tuple[int, ...]]:
        paths: list[tuple[int, ...]] = []
        for child in range(int(np.argmax(self.tokens[width, depth])), 0, -1):
            below = int(self.splits[width, depth, child])
            path = (*above, child - 1)
            paths.append(path)
            paths.extend(self._paths(below, depth - 1, path))
            width -= below
        return paths


def sequoia_table(vector: tuple[float, ...], verify_width: int, depth: int) -> SequoiaTable:
    """Fill Sequoia's programme.

    Args:
        vector: P, acceptance of the i-th child of any node.
        verify_width: largest n, the root among them.
        depth: largest d, levels below the root (steps of the drafter).
    """
    BranchAcceptance.positional(vector)
    widest = int(whole_number(verify_width, "verify width", least=1))
    deepest = int(whole_number(depth, "tree depth"))
    shape = (widest + 1, deepest + 1, len(vector) + 1)
    tokens = np.full(shape, _IMPOSSIBLE)
    splits = np.zeros(shape, dtype=np.int64)
    tokens[1, :, 0] = 1.0
    size = np.arange(widest + 1)
    rest = size[:, None] - size[None, :]  # n - m
    possible = (rest >= 1) & (size[None, :] >= 1)
    for level in range(1, deepest + 1):
        subtree = np.max(tokens[:, level - 1, :], axis=1)
        for child, rate in enumerate(vector, start=1):
            siblings = np.where(possible, tokens[np.maximum(rest, 0), level, child - 1], _IMPOSSIBLE)
            gained = np.where(np.isfinite(subtree), rate * subtree, _IMPOSSIBLE)
            total = siblings + gained[None, :]
            splits[:, level, child] = np.argmax(total, axis=1)
            tokens[:, level, child] = np.max(total, axis=1)
    return SequoiaTable(tuple(vector), tokens, splits)


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """A tree and what it is worth.

    Attributes:
        tree: its shape.
        tokens_per_cycle: tau, G(n, d).
        cycle_cost: t(n) + d c, in plain decode steps.
        speedup: tau / cycle cost.
    """

    tree: DraftTree
    tokens_per_cycle: float
    cycle_cost: float
    speedup: float


def best_sequoia_tree(
    vector: tuple[float, ...], verify_cost: NDArray[np.float64], cost_ratio: float, depth: int
) -> TreeChoice:
    """The size and depth with the largest speedup G(n, d) / (t(n) + d c): Sequoia's hardware-aware choice.

    Sequoia, https://arxiv.org/abs/2402.12374. Plain decoding (n = 1) is among the choices.

    Args:
        vector: P, acceptance of the i-th child of any node.
        verify_cost: t(1), t(2), ...: the verify pass in plain decode steps, by verify width; shape (n,).
            A width that cannot be run (no graph captured for it) is infinite.
        cost_ratio: c, one step of the drafter in plain decode steps.
        depth: largest d.
    """
    cost = np.asarray(verify_cost, dtype=float)
    if cost.ndim != 1 or cost.size == 0 or not np.all(cost > 0):
        raise InputError("verify cost is one number above 0 for each verify width 1, 2, ...")
    if not (np.isfinite(cost_ratio) and cost_ratio >= 0):
        raise InputError(f"cost ratio is {cost_ratio}: give 0 or more plain decode steps")
    table = sequoia_table(vector, cost.size, depth)
    tokens = table.best_tokens()[1:]
    cycle = cost[:, None] + np.arange(depth + 1) * cost_ratio
    exists = np.isfinite(tokens) & np.isfinite(cycle)
    speedups = np.divide(tokens, cycle, out=np.full(cycle.shape, _IMPOSSIBLE), where=exists)
    n, d = (int(axis) for axis in np.unravel_index(np.argmax(speedups), speedups.shape))
    return TreeChoice(table.tree(n + 1, d), float(tokens[n, d]), float(cycle[n, d]), float(speedups[n, d]))
