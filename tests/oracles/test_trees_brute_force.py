"""Tree search against all trees, tree tokens against simulated cycles, verify lengths against all choices."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.tree_search import (
    best_sequoia_tree,
    candidate_tree,
    greedy_tree,
    rerank,
    sequoia_table,
)
from rooflines.speculation.trees import DraftTree
from rooflines.speculation.verify_length import StepTable, choose_verify_lengths

HEADS = BranchAcceptance.heads([(0.55, 0.2, 0.1), (0.5, 0.15), (0.45, 0.2, 0.1)])
VECTORS = [(0.6, 0.2, 0.1), (0.4, 0.35), (0.3, 0.1, 0.5), (0.05, 0.6)]


def closed_sets(branches, nodes, depth):
    """Every set of `nodes` paths in which each path's parent is present."""

    @cache
    def children(path):
        return (
            tuple((*path, rank) for rank in range(len(branches.row(len(path) + 1))))
            if len(path) < depth
            else ()
        )

    found = {frozenset()}
    for _ in range(nodes):
        found = {
            chosen | {child}
            for chosen in found
            for parent in ((), *chosen)
            for child in children(parent)
            if child not in chosen
        }
    return found


@cache
def ordered_trees(width, depth):
    """Every ordered tree of `width` nodes, the root included: a tuple of subtrees."""
    if width == 1:
        return ((),)
    if depth == 0:
        return ()
    found = []
    for first in range(1, width):
        for subtree, rest in product(ordered_trees(first, depth - 1), ordered_trees(width - first, depth)):
            found.append((subtree, *rest))
    return tuple(found)


def value_of(tree, vector):
    """F of an ordered tree whose i-th child has rate vector[i]; more children than rates are worth nothing."""
    if len(tree) > len(vector):
        return -np.inf
    return 1.0 + sum(rate * value_of(child, vector) for rate, child in zip(vector, tree, strict=False))


@pytest.mark.parametrize("nodes", range(7))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_greedy_is_the_best_of_all_trees(nodes, depth):
    every = closed_sets(HEADS, nodes, depth)
    greedy = greedy_tree(HEADS, nodes, depth)
    if every:
        best = max(DraftTree.from_paths(paths).tokens_per_cycle(HEADS) for paths in every)
        assert greedy.nodes == nodes
        assert greedy.tokens_per_cycle(HEADS) == pytest.approx(best)
    else:
        assert greedy.nodes < nodes


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_sequoias_programme_is_the_best_of_all_ordered_trees(vector, depth):
    table = sequoia_table(vector, verify_width=8, depth=depth)
    for width in range(1, 9):
        best = max((value_of(tree, vector) for tree in ordered_trees(width, depth)), default=-np.inf)
        found = table.best_tokens()[width, depth]
        if best == -np.inf:
            assert found == -np.inf
        else:
            assert found == pytest.approx(best)
            rebuilt = table.tree(width, depth)
            assert rebuilt.nodes == width - 1
            assert rebuilt.depth <= depth
            assert rebuilt.tokens_per_cycle(BranchAcceptance.positional(vector)) == pytest.approx(best)


def test_sequoia_beats_greedy_where_a_later_child_is_better():
    # Children come in order, so the second (0.6) costs the first (0.05): greedy by rank knows no such order.
    table = sequoia_table((0.05, 0.6), verify_width=3, depth=2)
    assert table.best_tokens()[3, 2] == pytest.approx(1 + 0.05 + 0.6)


@pytest.mark.parametrize("cost_ratio", [0.0, 0.05, 0.3])
def test_the_best_sequoia_tree_is_the_best_of_all_trees_and_depths(cost_ratio):
    vector, verify_cost = (0.6, 0.2, 0.1), np.array([1.0, 1.0, 1.05, 1.05, 1.2, 1.2, 1.2, 1.5])
    every = [
        value_of(tree, vector) / (verify_cost[width - 1] + depth * cost_ratio)
        for width in range(1, 9)
        for depth in range(5)
        for tree in ordered_trees(width, depth)
    ]
    choice = best_sequoia_tree(vector, verify_cost, cost_ratio, depth=4)
    assert choice.speedup == pytest.approx(max(every))


@pytest.mark.parametrize("nodes", range(1, 8))
def test_reranking_finds_the_best_subtree_of_the_candidates(nodes):
    candidates = candidate_tree(HEADS, depth=3, top_k=2)
    rates = candidates.conditional_rates(HEADS)
    allowed = set(candidates.paths)
    every = [paths for paths in closed_sets(HEADS, nodes, 3) if paths <= allowed]
    best = max(DraftTree.from_paths(paths).tokens_per_cycle(HEADS) for paths in every)
    assert rerank(candidates, rates, nodes).tokens_per_cycle(HEADS) == pytest.approx(best)


def test_candidates_expand_the_best_of_each_level_only():
    # EAGLE-2 with top-2: 2 nodes, then 4 children of both, then 4 children of the best 2 of those.
    candidates = candidate_tree(HEADS, depth=3, top_k=2)
    assert candidates.widths == (2, 4, 4)
    products = dict(
        zip(candidates.paths, candidates.path_products(candidates.conditional_rates(HEADS)), strict=True)
    )
    expanded = {path[:2] for path in candidates.paths if len(path) == 3}
    level = sorted((path for path in products if len(path) == 2), key=products.get, reverse=True)
    assert expanded == set(level[:2])


def test_tree_tokens_against_simulated_cycles():
    # At each node the target's token is one of the guesses, each with its rate, or none of them.
    cycles, rng = 100_000, np.random.default_rng(11)
    tree = greedy_tree(HEADS, 20)
    index = {path: node for node, path in enumerate(tree.paths)}
    emitted = np.ones(cycles)
    for cycle in range(cycles):
        path = ()
        while True:
            row = HEADS.row(len(path) + 1)
            rank = int(np.searchsorted(np.cumsum(row), rng.random(), side="right"))
            path = (*path, rank)
            if path not in index:
                break
            emitted[cycle] += 1
    error = 5 * emitted.std() / np.sqrt(cycles)
    assert tree.tokens_per_cycle(HEADS) == pytest.approx(emitted.mean(), abs=error)


@pytest.mark.parametrize("seed", range(20))
def test_a_global_search_of_verify_lengths_is_the_best_of_all_choices(seed):
    rng = np.random.default_rng(seed)
    requests, drafted = rng.integers(1, 4), rng.integers(1, 4)
    survival = np.cumprod(rng.random((requests, drafted)), axis=1)
    largest = int(requests * (drafted + 1))
    # A jagged cost: steps per second fall, in random steps.
    table = StepTable(tuple(range(1, largest + 1)), tuple(np.sort(rng.random(largest) + 0.1)[::-1]))
    every = []
    for lengths in product(range(drafted + 1), repeat=int(requests)):
        tokens = requests + sum(survival[row, :length].sum() for row, length in enumerate(lengths))
        every.append(tokens * table(np.array(requests + sum(lengths))))
    best = choose_verify_lengths(survival, table, stop_early=False)
    early = choose_verify_lengths(survival, table, stop_early=True)
    assert best.tokens_per_s == pytest.approx(max(every))
    assert early.tokens_per_s <= best.tokens_per_s + 1e-12
