"""Laws of draft trees and of how much of a draft to verify."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.marginal import marginal_value
from rooflines.speculation.schedule import Steadiness, schedule_draft_length, steady_by_batch
from rooflines.speculation.tree_search import candidate_tree, greedy_tree, rerank, sequoia_table
from rooflines.speculation.trees import DraftTree
from rooflines.speculation.verify_length import (
    choose_verify_lengths,
)


@st.composite
def trees(draw, most=14):
    parents = [draw(st.integers(-1, node - 1)) for node in range(draw(st.integers(0, most)))]
    ranks, seen = [], {}
    for parent in parents:
        ranks.append(seen.setdefault(parent, 0))
        seen[parent] += 1
    return DraftTree(tuple(parents), tuple(ranks))


@st.composite
def vectors(draw, most=4):
    raw = draw(st.lists(st.floats(0.02, 1.0), min_size=1, max_size=most))
    scale = draw(st.floats(0.1, 1.0)) / sum(raw)
    return tuple(sorted((share * scale for share in raw), reverse=True))


@st.composite
def survivals(draw):
    requests, drafted = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rates = draw(
        st.lists(
            st.lists(st.floats(0, 1), min_size=drafted, max_size=drafted),
            min_size=requests,
            max_size=requests,
        )
    )
    return np.cumprod(np.asarray(rates), axis=1)


@given(trees())
def test_shape_invariants(tree):
    assert DraftTree.from_paths(tree.paths).paths == tuple(
        sorted(tree.paths, key=lambda path: (len(path), path))
    )
    assert sum(tree.widths) == tree.nodes == tree.verify_width - 1
    assert len(tree.widths) == tree.depth
    assert tree.verify_width <= tree.ancestors <= tree.verify_width * (tree.verify_width + 1) / 2


@given(st.integers(0, 30))
def test_a_chain_attends_to_the_causal_triangle(gamma):
    chain = DraftTree.chain(gamma)
    assert chain.ancestors == (gamma + 1) * (gamma + 2) / 2
    assert chain.depth == gamma


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_a_chain_as_a_tree_yields_the_same_tokens(rates):
    acceptance = Acceptance.conditional_rates(rates)
    branches = BranchAcceptance.from_chain(acceptance, len(rates))
    tokens = DraftTree.chain(len(rates)).tokens_per_cycle(branches)
    assert tokens == pytest.approx(acceptance.tokens_per_cycle(len(rates)))
    assert branches.chain().conditional_profile(len(rates)) == pytest.approx(rates)


@given(trees(), st.randoms(use_true_random=False))
def test_tokens_of_a_tree_lie_within_1_and_depth_plus_1(tree, random):
    rates = np.array([random.random() for _ in range(tree.nodes)])
    families = {
        parent: sum(r for r, p in zip(rates, tree.parents, strict=True) if p == parent)
        for parent in tree.parents
    }
    rates = np.array([rate / max(1.0, families[p]) for rate, p in zip(rates, tree.parents, strict=True)])
    tokens = 1 + tree.path_products(rates).sum()
    assert 1 <= tokens <= tree.depth + 1 + 1e-9


@given(vectors(), st.integers(0, 20), st.integers(1, 6))
def test_more_nodes_never_yield_less_and_each_adds_no_more_than_the_last(vector, nodes, depth):
    branches = BranchAcceptance.positional(vector)
    tokens = [greedy_tree(branches, budget, depth).tokens_per_cycle(branches) for budget in range(nodes + 1)]
    gains = np.diff(tokens)
    assert np.all(gains >= -1e-12)
    assert np.all(np.diff(gains) <= 1e-12)


@given(vectors(), st.integers(1, 24), st.integers(1, 5))
def test_greedy_and_sequoia_agree_where_rates_fall(vector, width, depth):
    # Greedy may stop early where depth leaves no node; then no tree of that size exists for Sequoia either.
    branches = BranchAcceptance.positional(vector)
    greedy = greedy_tree(branches, width - 1, depth)
    table = sequoia_table(vector, width, depth)
    best = table.best_tokens()[width, depth]
    if greedy.verify_width == width:
        assert greedy.tokens_per_cycle(branches) == pytest.approx(best)
        rebuilt = table.tree(width, depth)
        assert rebuilt.nodes == width - 1
        assert rebuilt.depth <= depth
        assert rebuilt.tokens_per_cycle(branches) == pytest.approx(best)
    else:
        assert best == -np.inf


@given(vectors(), st.integers(1, 5), st.integers(1, 4), st.integers(0, 30))
def test_reranking_keeps_the_best_of_the_candidates(vector, depth, top_k, nodes):
    branches = BranchAcceptance.positional(vector)
    candidates = candidate_tree(branches, depth, top_k)
    kept = rerank(candidates, candidates.conditional_rates(branches), nodes)
    products = np.sort(candidates.path_products(candidates.conditional_rates(branches)))[::-1]
    assert kept.nodes == min(nodes, candidates.nodes)
    assert kept.tokens_per_cycle(branches) == pytest.approx(1 + products[:nodes].sum())
    assert (
        kept.tokens_per_cycle(branches)
        <= greedy_tree(branches, nodes, depth).tokens_per_cycle(branches) + 1e-12
    )


@given(survivals(), st.floats(0.0, 0.5))
def test_verify_lengths_are_consistent(survival, slope):
    def steps_per_s(positions):
        return 1.0 / (1.0 + slope * positions)

    early = choose_verify_lengths(survival, steps_per_s, stop_early=True)
    best = choose_verify_lengths(survival, steps_per_s, stop_early=False)
    for choice in (early, best):
        requests, drafted = survival.shape
        assert choice.lengths.shape == (requests,)
        assert np.all((choice.lengths >= 0) & (choice.lengths <= drafted))
        assert choice.batch_tokens == requests + choice.lengths.sum()
        tokens = requests + sum(
            row[:length].sum() for row, length in zip(survival, choice.lengths, strict=True)
        )
        assert choice.tokens_per_step == pytest.approx(tokens)
        assert choice.tokens_per_s == pytest.approx(tokens * steps_per_s(choice.batch_tokens))
    # tau is concave and the step time affine in B, so Theta has one maximum and stopping early finds it.
    assert early.tokens_per_s == pytest.approx(best.tokens_per_s)


@given(st.floats(0, 1), st.floats(0.0, 0.5), st.floats(0.0, 0.3), st.integers(1, 12))
def test_a_further_token_pays_where_its_tokens_per_cost_exceed_the_speedup_before(
    alpha, c, verify_slope, gamma
):
    kappa = 1.0 + (c + verify_slope) * np.arange(gamma + 1) + 0.1 * (np.arange(gamma + 1) > 0)
    tau = Acceptance.constant(alpha).tokens_per_cycle(np.arange(gamma + 1))
    value = marginal_value(tau, kappa)
    before = np.concatenate([[1.0], value.speedup[:-1]])
    worth = value.tokens - before * value.cost
    clear = np.abs(worth) > 1e-9
    assert np.array_equal(value.pays[clear], worth[clear] > 0)
    assert value.speedup_gain.sum() == pytest.approx(value.speedup[-1] - 1.0)


def given_away(path, lost, doublings, lengths, steadiness):
    """What a schedule loses to the best of each batch, and what its changes are asked to gain."""
    changes = [
        steadiness.longer if lengths[after] > lengths[before] else steadiness.shorter
        for before, after in pairwise(path)
        if after != before
    ]
    return sum(lost[row, column] * doublings[row] for row, column in enumerate(path)) + sum(changes)


@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.builds(Steadiness, st.floats(0.0, 0.3), st.floats(0.0, 0.2), st.floats(0.0, 0.2)),
)
def test_no_schedule_gives_less_away_than_a_steady_one(batches, choices, seed, steadiness):
    """Against every way to go through the batches."""
    rng = np.random.default_rng(seed)
    speedups, lengths = rng.uniform(0.7, 1.3, (batches, choices)), rng.integers(0, 4, choices)
    entries = steady_by_batch(range(1, batches + 1), speedups, lengths, steadiness)
    assert [entry.first_batch for entry in entries] == [1, *(e.last_batch + 1 for e in entries[:-1])]
    assert entries[-1].last_batch == batches
    best = speedups.max(axis=1, keepdims=True)
    lost = np.where(speedups >= (1.0 - steadiness.slack) * best, np.log(best / speedups), np.inf)
    rows = np.arange(1, batches + 1)
    doublings = np.log2((rows + 0.5) / (rows - 0.5))
    found = [entry.choice for entry in entries for _ in range(entry.first_batch, entry.last_batch + 1)]
    least = min(
        given_away(path, lost, doublings, lengths, steadiness)
        for path in product(range(choices), repeat=batches)
    )
    assert given_away(found, lost, doublings, lengths, steadiness) == pytest.approx(least, abs=1e-12)
    for entry in entries:
        rows = slice(entry.first_batch - 1, entry.last_batch)
        assert entry.speedup == speedups[rows, entry.choice].min()


@given(st.floats(0.05, 0.99), st.floats(0.001, 0.05), st.integers(1, 10))
def test_schedules_choose_the_best_length_and_cover_every_batch_once(alpha, slope, longest):
    batches = [1, 2, 5, 16, 64, 256]
    acceptance = Acceptance.constant(alpha)

    def kappa(batch, gamma):
        return (1.0 + slope * batch * (gamma + 1) + 0.05 * gamma) / (1.0 + slope * batch)

    entries = schedule_draft_length(batches, acceptance, kappa, longest)
    covered = [b for b in batches for e in entries if e.first_batch <= b <= e.last_batch]
    assert covered == batches
    assert all(left.choice != right.choice for left, right in pairwise(entries))
    lengths = np.arange(longest + 1)
    for entry in entries:
        etas = np.asarray(acceptance.tokens_per_cycle(lengths)) / kappa(float(entry.first_batch), lengths)
        assert etas[entry.choice] == pytest.approx(etas.max())
        assert entry.speedup >= 1.0
    assert [e.choice for e in entries] == sorted((e.choice for e in entries), reverse=True)
