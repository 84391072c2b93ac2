"""What must hold of trees in a cycle, whatever their rule and rates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import grown
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.studies.serve import make_deployment, make_machine


@cache
def target():
    return make_deployment("llama-2-7b", make_machine("a100-sxm-80gb", "none"))


class Free:
    """Drafts a tree at no cost, so that the verify pass and the yield remain."""

    name = "free"

    def __init__(self, tree):
        self.tree = tree

    def draft(self, batch, context, draft_length):  # noqa: ARG002 - the protocol's signature
        return grown(0.0, draft_length, self.tree)


@st.composite
def vectors(draw):
    raw = draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4))
    scale = draw(st.floats(0.05, 0.999)) / sum(raw)
    return tuple(sorted((rate * scale for rate in raw), reverse=True))


branches = st.builds(BranchAcceptance.positional, vectors())
growths = st.builds(TreeGrowth, st.integers(1, 4), st.integers(1, 40))
depths = st.integers(0, 5)


@settings(max_examples=60, deadline=None)
@given(branches, growths, depths)
def test_tokens_lie_between_one_and_all_levels(rates, growth, depth):
    tokens = float(growth.tokens_per_cycle(rates, depth))
    assert 1.0 <= tokens <= min(depth, growth.nodes) + 1.0


@settings(max_examples=60, deadline=None)
@given(branches, growths, depths)
def test_more_nodes_never_yield_less(rates, growth, depth):
    more = TreeGrowth(growth.top_k, growth.nodes + 3)
    assert more.tokens_per_cycle(rates, depth) >= growth.tokens_per_cycle(rates, depth) - 1e-12


@settings(max_examples=60, deadline=None)
@given(branches, growths, st.integers(1, 5))
def test_no_tree_has_more_nodes_than_are_verified(rates, growth, depth):
    tree = growth.tree(rates, depth)
    assert tree.nodes <= growth.verified_nodes(depth)
    assert tree.depth <= depth


@settings(max_examples=40, deadline=None)
@given(branches, st.integers(0, 6))
def test_a_tree_of_one_guess_is_a_chain(rates, depth):
    growth = TreeGrowth(1, 64)
    assert growth.verified_nodes(depth) == depth
    expected = rates.chain().tokens_per_cycle(depth)
    assert growth.tokens_per_cycle(rates, depth) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(branches, growths, st.integers(1, 64).map(float))
def test_a_cycle_takes_the_yield_of_its_tree(rates, growth, batch):
    lengths = np.array([0.0, 1.0, 3.0])
    outcome = cycle(cycle_times(target(), Free(growth), batch, 512.0, lengths), rates)
    assert np.asarray(outcome.tokens_per_cycle) == pytest.approx(growth.tokens_per_cycle(rates, lengths))
    assert np.asarray(outcome.verify_width) == pytest.approx(growth.verified_nodes(lengths) + 1.0)
    assert np.asarray(outcome.speedup)[0] == pytest.approx(1.0)


@settings(deadline=None)
@given(growths, st.floats(0, 1), depths)
def test_one_rate_a_position_is_what_the_tree_attains_by_depth(growth, alpha, depth):
    times = cycle_times(target(), Free(growth), 1.0, 512.0, float(depth))
    acceptance = Acceptance.constant(alpha)
    assert cycle(times, acceptance).tokens_per_cycle == acceptance.tokens_per_cycle(depth)


@settings(max_examples=40, deadline=None)
@given(vectors(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 32).map(float))
def test_verifying_less_of_a_chain_costs_and_yields_what_a_shorter_draft_does(
    vector, drafted, verified, batch
):
    acceptance = Acceptance.constant(vector[0])
    given_width = cycle_times(target(), Free(None), batch, 512.0, float(drafted), verify_length=verified)
    shorter = cycle_times(target(), Free(None), batch, 512.0, float(min(drafted, verified)))
    one, other = cycle(given_width, acceptance), cycle(shorter, acceptance)
    assert one.tokens_per_cycle == other.tokens_per_cycle
    assert one.verify_s == other.verify_s
    assert one.draft_length == drafted


def test_a_tree_has_no_verify_length():
    with pytest.raises(InputError, match="nodes="):
        cycle_times(target(), Free(TreeGrowth(2, 4)), 1.0, 512.0, 2.0, verify_length=1)


@pytest.mark.parametrize(("top_k", "nodes"), [(0, 4), (65, 4), (2, 0), (2, 5000)])
def test_a_tree_beyond_reason_is_refused(top_k, nodes):
    with pytest.raises(InputError, match="within 1"):
        TreeGrowth(top_k, nodes)
