"""Sequoia (https://arxiv.org/abs/2402.12374), MagicDec and TurboSpec forms as cases of eta = tau / kappa."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.closed_form import chain_cycle_cost, optimal_draft_length, speedup
from rooflines.speculation.schedule import schedule_draft_length
from rooflines.speculation.tree_search import best_sequoia_tree, sequoia_table
from rooflines.speculation.trees import DraftTree
from rooflines.speculation.verify_length import StepTable

VECTOR = (0.6, 0.15, 0.08, 0.04, 0.02)


def test_a_single_guess_is_leviathans_chain():
    # With one child each, F is equation 1 of Leviathan et al. 2023.
    table = sequoia_table((0.8,), verify_width=6, depth=5)
    chain = Acceptance.constant(0.8)
    assert table.best_tokens()[1:, 5] == pytest.approx([chain.tokens_per_cycle(gamma) for gamma in range(6)])


def test_a_chain_is_bounded_by_one_over_one_minus_p1_and_a_tree_is_not():
    # A chain's tokens stay below 1 / (1 - P_1) however long; a tree's grow without bound.
    bound = 1.0 / (1.0 - VECTOR[0])
    tokens = sequoia_table(VECTOR, verify_width=256, depth=16).best_tokens()[:, 16]
    assert DraftTree.chain(64).tokens_per_cycle(BranchAcceptance.positional(VECTOR)) < bound
    assert tokens[256] > tokens[64] > bound


def test_speedup_is_tokens_over_verify_plus_depth_times_c():
    # Speedup(n, d) = G(n, d) / (t(n) + d c), searched over a grid.
    verify_cost = 1.0 + 0.004 * np.arange(64)
    choice = best_sequoia_tree(VECTOR, verify_cost, cost_ratio=0.03, depth=8)
    tokens = sequoia_table(VECTOR, 64, 8).best_tokens()
    grid = [
        tokens[n, d] / (verify_cost[n - 1] + d * 0.03)
        for n in range(1, 65)
        for d in range(9)
        if np.isfinite(tokens[n, d])
    ]
    assert choice.speedup == pytest.approx(max(grid))
    assert choice.tokens_per_cycle == pytest.approx(
        choice.tree.tokens_per_cycle(BranchAcceptance.positional(VECTOR))
    )
    assert choice.cycle_cost == pytest.approx(
        verify_cost[choice.tree.verify_width - 1] + choice.tree.depth * 0.03
    )


def test_with_free_verify_of_chains_sequoia_is_leviathans_optimum():
    choice = best_sequoia_tree((0.8,), np.ones(33), cost_ratio=0.05, depth=32)
    assert choice.tree.depth == optimal_draft_length(0.8, 0.05, longest=32)


def test_the_tree_follows_the_hardware():
    # Where verification is flat in n (offloading) trees are large, where it is dear they are small.
    flat = best_sequoia_tree(VECTOR, np.ones(128), cost_ratio=0.002, depth=12)
    dear = best_sequoia_tree(VECTOR, 1 + 0.05 * np.arange(128), cost_ratio=0.05, depth=12)
    assert flat.tree.verify_width == 128
    assert dear.tree.verify_width < 16
    assert flat.tree.depth > dear.tree.depth


def test_only_widths_with_a_finite_cost_are_chosen():
    # Sequoia's own demo profiles t(n) at n = 1, 2, 4, 8, 16, 32 as 10, 10, 10, 12, 14, 18 with a draft time of 0.3
    # (https://github.com/Infini-AI-Lab/Sequoia/blob/main/demo-config.json).
    cost = np.full(32, np.inf)
    cost[[0, 1, 3, 7, 15, 31]] = np.array([10, 10, 10, 12, 14, 18]) / 10
    choice = best_sequoia_tree(VECTOR, cost, cost_ratio=0.03, depth=10)
    assert choice.tree.verify_width in (4, 8, 16, 32)
    assert choice.speedup == pytest.approx(choice.tokens_per_cycle / choice.cycle_cost)


def test_magicdec_is_the_same_law():
    # https://arxiv.org/abs/2408.11049: T_SD / T_AR = (gamma T_D + T_V(gamma)) / (Omega(gamma, alpha) T_T).
    gamma, alpha, draft_s, verify_s, target_s = 4, 0.8, 0.9e-3, 12e-3, 10e-3
    omega = (1 - alpha ** (gamma + 1)) / (1 - alpha)
    magicdec = (gamma * draft_s + verify_s) / (omega * target_s)
    kappa = chain_cycle_cost(gamma, draft_s / target_s, verify_s / target_s)
    assert 1 / magicdec == pytest.approx(speedup(Acceptance.constant(alpha).tokens_per_cycle(gamma), kappa))


def test_turbospec_goodput_picks_the_length_of_the_best_speedup():
    # https://arxiv.org/abs/2406.14066: goodput = tokens of all requests / batch time, with a batch time linear in
    # context and batched tokens. Coefficients: the group's SpecDecode-Bench fit for Llama-3.1-8B on an H100.
    per_kv, per_token, fixed = 3.926e-8, 2.101e-5, 5.886e-3
    draft_kv, draft_token, draft_fixed = 2.378e-9, 8.414e-7, 2.135e-3
    context, acceptance = 1024.0, Acceptance.constant(0.7)

    def target_s(batch, tokens):
        return per_kv * batch * context + per_token * batch * tokens + fixed

    def cycle_s(batch, gamma):
        drafting = gamma * (draft_kv * batch * context + draft_token * batch + draft_fixed / 3)
        return drafting + target_s(batch, gamma + 1)

    entries = schedule_draft_length(
        [1, 16, 64, 256, 1024], acceptance, lambda batch, gamma: cycle_s(batch, gamma) / target_s(batch, 1), 6
    )
    for entry in entries:
        for batch in (entry.first_batch, entry.last_batch):
            goodput = [
                batch * acceptance.tokens_per_cycle(gamma) / cycle_s(batch, gamma)
                if gamma
                else batch / target_s(batch, 1)
                for gamma in range(7)
            ]
            assert int(np.argmax(goodput)) == entry.choice
    assert entries[0].choice > entries[-1].choice


def test_a_step_table_runs_at_the_next_profiled_size():
    table = StepTable((1, 8, 16), (100.0, 90.0, 70.0))
    assert table(np.array([1, 2, 8, 9])).tolist() == [100.0, 90.0, 90.0, 70.0]
