from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.tree_search import (
    best_sequoia_tree,
    candidate_tree,
    greedy_tree,
    rerank,
    sequoia_table,
)
from rooflines.speculation.trees import ROOT, DraftTree

BRANCHES = BranchAcceptance.heads([(0.6, 0.2), (0.5, 0.1)])


def test_shape_of_a_small_tree():
    tree = DraftTree.from_paths([(1,), (0,), (0, 1), (0, 0)])
    assert tree.parents == (ROOT, ROOT, 0, 0)
    assert tree.ranks == (0, 1, 0, 1)
    assert tree.depths == (1, 1, 2, 2)
    assert (tree.nodes, tree.verify_width, tree.depth, tree.widths) == (4, 5, 2, (2, 2))
    assert tree.ancestors == 1 + 2 + 2 + 3 + 3
    assert tree.paths == ((0,), (1,), (0, 0), (0, 1))


def test_an_empty_tree_is_plain_decoding():
    tree = DraftTree.chain(0)
    assert (tree.nodes, tree.verify_width, tree.depth, tree.ancestors, tree.widths) == (0, 1, 0, 1, ())
    assert tree.tokens_per_cycle(BRANCHES) == 1.0


def test_rates_may_be_arrays_over_the_leading_axes():
    tree = DraftTree.chain(2)
    products = tree.path_products(np.array([[0.5, 0.5], [1.0, 0.2]]))
    assert products.tolist() == [[0.5, 0.25], [1.0, 0.2]]


def test_branch_views():
    assert BRANCHES.chain() == Acceptance((0.6, 0.5), measured_length=2)
    assert BRANCHES.row(3) == ()
    positional = BranchAcceptance.positional([0.6, 0.2])
    assert positional.row(9) == (0.6, 0.2)
    assert positional.chain() == Acceptance.constant(0.6)
    assert BranchAcceptance.from_top_k_accuracies([[0.5, 0.75]]).rates == ((0.5, 0.25),)


def test_nodes_that_can_never_be_accepted_are_not_added():
    branches = BranchAcceptance.heads([(1.0, 0.0)])
    assert greedy_tree(branches, 5).paths == ((0,),)


def test_ties_prefer_the_shallower_node_then_the_better_rank():
    branches = BranchAcceptance.heads([(0.5, 0.25, 0.25), (0.5,)])
    assert greedy_tree(branches, 2).paths == ((0,), (1,))


def test_a_table_gives_every_size_it_holds():
    table = sequoia_table((0.6, 0.2), 6, 3)
    assert table.tree(1, 0).nodes == 0
    assert table.tree(2, 3).paths == ((0,),)
    assert table.tree(4, 3).paths == ((0,), (0, 0), (0, 0, 0))
    assert table.tree(4, 2).paths == ((0,), (1,), (0, 0))
    for width, depth in ((7, 3), (6, 4), (0, 1)):
        with pytest.raises(InputError, match="the table has"):
            table.tree(width, depth)
    with pytest.raises(InputError, match="no tree of verify width 4 fits in depth 1"):
        table.tree(4, 1)


def test_plain_decoding_is_chosen_where_nothing_pays():
    choice = best_sequoia_tree((0.1,), np.array([1.0, 1.5, 2.0]), 0.5, 2)
    assert choice.tree.nodes == 0
    assert choice.speedup == 1.0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: DraftTree((0,), (0,)), "a parent comes earlier"),
        (lambda: DraftTree((-2,), (0,)), "a parent comes earlier"),
        (lambda: DraftTree((ROOT, ROOT), (0, 0)), "same rank"),
        (lambda: DraftTree((ROOT,), (-1,)), "ranks count from 0"),
        (lambda: DraftTree((ROOT,), ()), "one of each"),
        (lambda: DraftTree.from_paths([(0,), (1, 0)]), r"lacks its parent [1]"),
        (lambda: DraftTree.from_paths([(0,), (0,)]), "twice"),
        (lambda: DraftTree.from_paths([()]), "empty"),
        (lambda: DraftTree.chain(-1), "draft length"),
        (lambda: DraftTree.cartesian((2, 0)), "tree width"),
        (lambda: DraftTree.chain(3).tokens_per_cycle(BRANCHES), "no acceptance is known"),
        (lambda: DraftTree.chain(2).path_products(np.array([0.5])), "2 nodes need 2 rates"),
        (lambda: DraftTree.chain(1).path_products(np.array([1.5])), "outside 0..1"),
        (lambda: DraftTree.cartesian((2,)).path_products(np.array([0.7, 0.7])), "more than 1"),
        (lambda: BranchAcceptance(()), "empty"),
        (lambda: BranchAcceptance.heads([(0.5,), ()]), "empty"),
        (lambda: BranchAcceptance.heads([(0.5, 1.5)]), "guess 2 at depth 1"),
        (lambda: BranchAcceptance.heads([(0.7, 0.7)]), "sum to 1.4"),
        (lambda: BranchAcceptance.from_top_k_accuracies([[0.5, 0.4]]), "fall with k"),
        (lambda: greedy_tree(BRANCHES, -1), "tree nodes"),
        (lambda: candidate_tree(BRANCHES, 0, 2), "tree depth"),
        (lambda: candidate_tree(BRANCHES, 2, 0), "tree width"),
        (lambda: rerank(DraftTree.chain(2), np.array([0.5, 0.5]), -1), "tree nodes"),
        (lambda: sequoia_table((0.7, 0.7), 4, 2), "sum to 1.4"),
        (lambda: sequoia_table((0.7,), 0, 2), "verify width"),
        (lambda: best_sequoia_tree((0.7,), np.array([]), 0.1, 2), "verify cost"),
        (lambda: best_sequoia_tree((0.7,), np.array([1.0, 0.0]), 0.1, 2), "verify cost"),
        (lambda: best_sequoia_tree((0.7,), np.ones(3), -0.1, 2), "cost ratio"),
    ],
)
def test_malformed_trees_and_rates_are_refused(call, says):
    with pytest.raises(InputError) as refused:
        call()
    assert says in str(refused.value)
