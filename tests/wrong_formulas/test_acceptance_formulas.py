"""Known faults of other tools, injected one by one: each must turn a check red.

A check is a function that passes on our formulas and raises AssertionError on a wrong one. Every test runs its check
twice: as it is, and with the fault in place.
"""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation import acceptance_text, closed_form, definitions
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.closed_form import require_possible_speedup, walltime_improvement
from rooflines.speculation.tree_search import greedy_tree
from rooflines.speculation.trees import DraftTree
from rooflines.speculation.verify_length import StepTable, choose_verify_lengths


def check_published_lengths():
    """Leviathan table 1 at c = 0, and DSpark figure 2 -> table 1 (math, code and chat of DFlash)."""
    assert Acceptance.constant(0.8).tokens_per_cycle(4) == pytest.approx(3.3616)
    for alpha, gamma, printed in (
        (0.6, 2, 1.96),
        (0.7, 3, 2.53),
        (0.8, 5, 3.69),
        (0.9, 2, 2.71),
        (0.9, 10, 6.86),
    ):
        assert walltime_improvement(alpha, gamma, 0.0) == pytest.approx(printed, abs=0.0051)
    rates = [0.885, 0.827, 0.8198, 0.8338, 0.8414, 0.839, 0.8277]
    assert Acceptance.conditional_rates(rates).tokens_per_cycle(7) == pytest.approx(4.80, rel=0.008)


def check_limits():
    """A perfect drafter yields gamma + 1 tokens, a useless one 1."""
    gamma = np.arange(9)
    assert Acceptance.constant(1.0).tokens_per_cycle(gamma) == pytest.approx(gamma + 1.0)
    assert Acceptance.constant(0.0).tokens_per_cycle(gamma) == pytest.approx(np.ones(9))
    assert Acceptance.constant(0.99).tokens_per_cycle(4) == pytest.approx(4.90, abs=0.005)


def check_engine_counters():
    """MiniMax-M3-EAGLE3 card: per-position rates 0.749, 0.547, 0.402; accepted / drafted 56.60 %; length 2.698."""
    for text in ("survival:0.749,0.547,0.402", "accepted-per-drafted:0.566@3", "accepted-length:2.698@3"):
        assert acceptance_text.parse_acceptance(text).tokens_per_cycle(3) == pytest.approx(2.698, abs=1e-3)


def check_tree():
    """Tokens of a tree against a walk over all outcomes of its two positions."""
    branches = BranchAcceptance.heads([(0.5, 0.25), (0.6, 0.2)])
    tree = DraftTree.from_paths([(0,), (1,), (0, 0), (0, 1)])
    expected = 0.5 * (0.8 * 3 + 0.2 * 2) + 0.25 * 2 + 0.25 * 1
    assert tree.tokens_per_cycle(branches) == pytest.approx(expected)
    assert greedy_tree(branches, 2).paths == ((0,), (0, 0))


def check_speedup_guard():
    """mlx-lm pull request 990: 46.1 % of one drafted token accepted, so tau = 1.461, and "1.57x"."""
    with pytest.raises(InputError, match=r"exceeds 1\.461"):
        require_possible_speedup(1.57, 1.461)


def check_scheduler():
    """DSpark appendix A: early stop verifies nothing, global search both positions."""
    survival = np.array([[0.8, 0.72]])
    table = StepTable((1, 2, 3), (1.0, 0.5, 0.45))
    assert choose_verify_lengths(survival, table, stop_early=True).lengths.tolist() == [0]
    assert choose_verify_lengths(survival, table, stop_early=False).tokens_per_s == pytest.approx(1.134)


def check_prefixes():
    """What is verified of a draft is a prefix, and survival is the product along it."""
    rates = [0.9, 0.5, 0.9]
    assert Acceptance.conditional_rates(rates).survival_profile(3) == pytest.approx([0.9, 0.45, 0.405])
    assert Acceptance.conditional_rates(rates).survival(3) == pytest.approx(0.405)


CHECKS = [
    check_published_lengths,
    check_limits,
    check_engine_counters,
    check_tree,
    check_speedup_guard,
    check_scheduler,
    check_prefixes,
]


@pytest.mark.parametrize("check", CHECKS)
def test_our_formulas_pass(check):
    check()


def rates_of(acceptance, draft_length):
    return acceptance.conditional(np.maximum(np.asarray(draft_length, dtype=float), 1.0))


RIGHT_ACCEPTED = Acceptance.accepted_per_cycle


def one_plus_gamma_alpha(self, draft_length):
    """pochenai and xiecailang: tau = 1 + gamma alpha, 4.2 where 3.36 is right."""
    return 1.0 + np.asarray(draft_length) * rates_of(self, draft_length)


def last_rate_times_length(self, draft_length):
    """qwen3-6-mtp: alpha_k k."""
    return np.maximum(np.asarray(draft_length) * rates_of(self, draft_length), 1.0)


def capped_at_gamma(self, draft_length):
    """GenZ: min(tau, gamma), 4.0 where 4.90 is right."""
    return np.minimum(1.0 + RIGHT_ACCEPTED(self, draft_length), np.maximum(draft_length, 1.0))


def bonus_dropped(self, draft_length):
    """An exercise of torchedup: accepted drafts alone, without the target's own token."""
    return RIGHT_ACCEPTED(self, draft_length)


def one_too_many(self, draft_length):
    """Sum to gamma + 1: the verify width taken for the draft length."""
    return 1.0 + RIGHT_ACCEPTED(self, np.asarray(draft_length) + 1)


@pytest.mark.parametrize(
    "wrong", [one_plus_gamma_alpha, last_rate_times_length, capped_at_gamma, bonus_dropped, one_too_many]
)
@pytest.mark.parametrize("check", [check_published_lengths, check_limits])
def test_wrong_tokens_per_cycle_turn_red(monkeypatch, check, wrong):
    monkeypatch.setattr(Acceptance, "tokens_per_cycle", wrong)
    with pytest.raises(AssertionError):
        check()


def test_the_naive_geometric_sum_fails_at_alpha_1(monkeypatch):
    def naive(self, draft_length):
        alpha = np.asarray(self.listed[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            return (1.0 - alpha ** (np.asarray(draft_length) + 1.0)) / (1.0 - alpha)

    monkeypatch.setattr(Acceptance, "tokens_per_cycle", naive)
    with pytest.raises(AssertionError):
        check_limits()


def test_survival_read_as_conditional_turns_red(monkeypatch):
    monkeypatch.setattr(definitions, "from_survival", Acceptance.conditional_rates)
    with pytest.raises(AssertionError):
        check_engine_counters()


def test_accepted_per_drafted_read_as_alpha_turns_red(monkeypatch):
    monkeypatch.setattr(definitions, "constant_acceptance", lambda tau, gamma: (tau - 1.0) / gamma)
    with pytest.raises(AssertionError):
        check_engine_counters()


def test_accepted_length_without_the_bonus_token_turns_red(monkeypatch):
    right = closed_form.constant_acceptance
    monkeypatch.setattr(
        definitions, "constant_acceptance", lambda tau, gamma: right(min(tau + 1.0, 4.0), gamma)
    )
    with pytest.raises(AssertionError):
        check_engine_counters()


def test_tree_nodes_without_their_path_turn_red(monkeypatch):
    monkeypatch.setattr(DraftTree, "path_products", lambda _self, rates: np.asarray(rates))
    with pytest.raises(AssertionError):
        check_tree()


def test_a_tree_that_counts_its_longest_path_only_turns_red(monkeypatch):
    monkeypatch.setattr(
        DraftTree, "path_products", lambda self, rates: np.cumprod(rates) * (np.asarray(self.ranks) == 0)
    )
    with pytest.raises(AssertionError):
        check_tree()


def test_a_guard_at_gamma_plus_one_alone_turns_red(monkeypatch):
    def bounded_by_width(speedup, tokens):
        if speedup > np.ceil(tokens):
            raise InputError("above gamma + 1")

    monkeypatch.setitem(check_speedup_guard.__globals__, "require_possible_speedup", bounded_by_width)
    with pytest.raises(pytest.fail.Exception):
        check_speedup_guard()


def test_a_scheduler_is_not_fed_conditional_rates():
    # With c = (0.8, 0.9) the second position would seem likelier than the first, and could not be verified alone.
    with pytest.raises(InputError, match="rises along a draft"):
        choose_verify_lengths(
            np.array([[0.8, 0.9]]), StepTable((1, 2, 3), (1.0, 0.5, 0.45)), stop_early=False
        )


def test_survival_without_the_product_turns_red(monkeypatch):
    monkeypatch.setattr(Acceptance, "survival_profile", Acceptance.conditional_profile)
    with pytest.raises(AssertionError):
        check_prefixes()
