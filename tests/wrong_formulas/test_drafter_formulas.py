"""Faults of pricing drafters, injected one by one: each must turn a check red.

A check is a function that passes on our formulas and raises AssertionError on a wrong one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.models.drafters import DrafterSpec
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters import base, dflash, eagle
from rooflines.speculation.drafters.head import Head
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.speculation.trees import DraftTree
from rooflines.studies.serve import make_deployment, make_machine


def drafter_of(text, target="llama-3.1-8b", overhead="0 s"):
    served = make_deployment(target, make_machine("h100-sxm5-80gb", "textbook", overhead))
    return served, make_drafter(text, served)


def check_a_level_is_a_pass():
    """Six levels of EAGLE are six launches of its head; a host of 1 ms a launch shows it."""
    _, drafter = drafter_of("eagle3", overhead="1 ms")
    assert float(drafter.draft(1.0, 512.0, 6.0).seconds) > 6e-3


def check_a_block_of_16_drafts_15():
    """The first position is the known token (z-lab's DFlash), and 16 are verified."""
    _, drafter = drafter_of("dflash", target="qwen3-8b")
    lengths = drafter.draft_lengths((15, 16))
    assert lengths == (15,)
    assert float(drafter.draft(1.0, 512.0, 15.0).verify_width) == 16


def check_a_head_reads_what_it_shares():
    """EAGLE has 0.25B parameters of its own and reads the target's head of 0.53B in each pass."""
    _, drafter = drafter_of("eagle")
    own = drafter.head.spec.weight_bytes / 3.35e12
    assert float(drafter.draft(1.0, 0.0, 1.0).seconds) > 2.5 * own


def check_a_draft_vocabulary_is_read_and_not_the_targets():
    """EAGLE-3's head has 32,000 rows, a quarter of Llama-3.1's."""
    _, drafter = drafter_of("eagle3")
    head = next(op for op in drafter.head.forward(SHAPE).operators if op.name == "head")
    assert head.cost.weight_bytes == 32_000 * 4096 * 2


def check_a_head_keeps_a_cache():
    served, drafter = drafter_of("eagle3")
    share = float(drafter.kv_cache_bytes(1.0, 1000.0)) / served.model.kv_bytes(1000)
    assert share == pytest.approx(1 / 32)


def check_a_tree_is_verified_whole():
    served, drafter = drafter_of("eagle3:topk=10,nodes=59")
    chain = make_drafter("eagle3", served)
    wide, narrow = (
        float(served.verify(64.0, 512.0, one.draft(64.0, 512.0, 6.0).verify_width).seconds)
        for one in (drafter, chain)
    )
    assert wide > 5 * narrow


def check_a_tree_gains_by_its_second_guesses():
    """A star of two guesses: tau = 1 + 0.6 + 0.2."""
    served, drafter = drafter_of("eagle3:topk=2,nodes=2")
    rates = BranchAcceptance.positional((0.6, 0.2))
    times = cycle_times(served, drafter, 1.0, 512.0, 1.0)
    assert float(cycle(times, rates).tokens_per_cycle) == pytest.approx(1.8)


def check_probabilities_multiply_along_a_path():
    """A chain of two in a tree: tau = 1 + 0.6 + 0.36."""
    served, drafter = drafter_of("eagle3:topk=2,nodes=6")
    times = cycle_times(served, drafter, 1.0, 512.0, 2.0)
    rates = BranchAcceptance.positional((0.6, 0.2))
    expected = 1 + 0.8 + 0.8 * 0.8  # both guesses under both nodes
    assert float(cycle(times, rates).tokens_per_cycle) == pytest.approx(expected)


SHAPE = eagle.Shape(1.0, 1.0, 0.0, 1.0)
CHECKS = [
    check_a_level_is_a_pass,
    check_a_block_of_16_drafts_15,
    check_a_head_reads_what_it_shares,
    check_a_draft_vocabulary_is_read_and_not_the_targets,
    check_a_head_keeps_a_cache,
    check_a_tree_is_verified_whole,
    check_a_tree_gains_by_its_second_guesses,
    check_probabilities_multiply_along_a_path,
]


@pytest.mark.parametrize("check", CHECKS)
def test_our_formulas_pass_every_check(check):
    check()


def turns_red(check):
    with pytest.raises(AssertionError):
        check()


def test_a_draft_of_many_levels_priced_as_one_pass(monkeypatch):
    whole = eagle.EagleDrafter.draft
    monkeypatch.setattr(
        eagle.EagleDrafter, "draft", lambda self, b, s, n: replace(whole(self, b, s, 1.0), verify_width=n + 1)
    )
    turns_red(check_a_level_is_a_pass)


def test_a_block_taken_as_the_draft_length(monkeypatch):
    whole = dflash.make_head

    def off_by_one(*arguments):
        head = whole(*arguments)
        return replace(head, spec=head.spec.model_copy(update={"draft_length": head.spec.block_size}))

    monkeypatch.setattr(dflash, "make_head", off_by_one)
    turns_red(check_a_block_of_16_drafts_15)


def test_only_the_heads_own_weights_read(monkeypatch):
    whole = Head.forward

    def without_the_shared(self, *shape, **rest):
        full = whole(self, *shape, **rest)
        return replace(full, operators=tuple(op for op in full.operators if op.name != "head"))

    monkeypatch.setattr(Head, "forward", without_the_shared)
    turns_red(check_a_head_reads_what_it_shares)


def test_the_targets_vocabulary_in_the_place_of_the_drafts(monkeypatch):
    from rooflines.speculation.drafters import head

    whole = head.head_model
    monkeypatch.setattr(
        head,
        "head_model",
        lambda spec, target: whole(spec.model_copy(update={"draft_vocabulary": spec.vocabulary}), target),
    )
    turns_red(check_a_draft_vocabulary_is_read_and_not_the_targets)


def test_a_head_without_a_cache(monkeypatch):
    monkeypatch.setattr(Head, "kv_cache_bytes", lambda *_: 0.0)
    turns_red(check_a_head_keeps_a_cache)


def test_a_tree_verified_like_its_deepest_path(monkeypatch):
    monkeypatch.setattr(eagle, "grown", lambda seconds, length, _: base.chain(seconds, length))
    turns_red(check_a_tree_is_verified_whole)


def test_a_tree_that_yields_what_its_best_path_does(monkeypatch):
    monkeypatch.setattr(
        TreeGrowth, "tokens_per_cycle", lambda _, rates, depth: rates.chain().tokens_per_cycle(depth)
    )
    turns_red(check_a_tree_gains_by_its_second_guesses)


def test_nodes_counted_without_their_ancestors(monkeypatch):
    monkeypatch.setattr(DraftTree, "path_products", lambda _, rates: np.asarray(rates, dtype=float))
    from rooflines.speculation import tree_growth

    tree_growth._tokens.cache_clear()
    turns_red(check_probabilities_multiply_along_a_path)
    tree_growth._tokens.cache_clear()


def test_a_head_is_not_its_config_read_as_a_model():
    """What AutoModel makes of yuhuili's EAGLE-3 config: 1.27B parameters, three times the 0.42B of the head."""
    _, drafter = drafter_of("eagle3:eagle3-llama3.1-8b")
    spec: DrafterSpec = drafter.head.spec
    as_a_model = 1_268_789_248
    assert as_a_model / spec.parameters == pytest.approx(2.99, abs=0.01)
