"""Laws of acceptance: bounds, monotony, limits, and the equivalence of definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_acceptance
from rooflines.speculation.closed_form import (
    break_even_acceptance,
    break_even_cost_ratio,
    chain_cycle_cost,
    constant_acceptance,
    operations_factor,
    optimal_draft_length,
    oracle_tokens_per_cycle,
    speedup,
    walltime_improvement,
)
from rooflines.speculation.definitions import from_accepted_length, from_histogram, from_survival

shares = st.floats(0.0, 1.0)
rate_lists = st.lists(shares, min_size=1, max_size=12)
lengths = st.integers(1, 24)
costs = st.floats(0.0, 2.0)


@given(rate_lists, st.floats(0.0, 1.25), lengths)
def test_tokens_lie_within_1_and_gamma_plus_1(rates, decay, gamma):
    tokens = Acceptance(tuple(rates), decay).tokens_per_cycle(gamma)
    assert 1.0 <= tokens <= gamma + 1.0 + 1e-12


@given(rate_lists, st.integers(0, 12), shares, lengths)
def test_tokens_rise_with_every_rate(rates, position, higher, gamma):
    raised = list(rates)
    position %= len(raised)
    raised[position] = max(higher, raised[position])
    before = Acceptance.conditional_rates(rates).tokens_per_cycle(gamma)
    assert Acceptance.conditional_rates(raised).tokens_per_cycle(gamma) >= before


@given(rate_lists, lengths)
def test_tokens_rise_with_length_by_the_survival_of_the_new_position(rates, gamma):
    acceptance = Acceptance.conditional_rates(rates)
    gained = acceptance.tokens_per_cycle(gamma) - acceptance.tokens_per_cycle(gamma - 1)
    assert gained == pytest.approx(acceptance.survival(gamma), abs=1e-12)
    assert gained >= 0


@given(shares, st.integers(0, 40))
def test_the_closed_form_is_the_sum(alpha, gamma):
    summed = 1.0 + sum(alpha**position for position in range(1, gamma + 1))
    assert Acceptance.constant(alpha).tokens_per_cycle(gamma) == pytest.approx(summed, rel=1e-13)


@given(st.integers(1, 60), st.floats(1e-17, 1e-3))
def test_the_closed_form_keeps_its_digits_near_alpha_1(gamma, gap):
    # 1 - alpha cancels there: compared with exact rational arithmetic of the binomial sum.
    alpha = 1.0 - gap
    exact = float(sum(np.longdouble(alpha) ** position for position in range(gamma + 1)))
    assert Acceptance.constant(alpha).tokens_per_cycle(gamma) == pytest.approx(exact, rel=1e-13)


@given(rate_lists, lengths)
def test_arrays_give_what_single_points_give(rates, gamma):
    several = np.array([0, 1, gamma])
    for acceptance in (Acceptance.conditional_rates(rates), Acceptance.constant(rates[0])):
        single = [acceptance.tokens_per_cycle(int(length)) for length in several]
        assert acceptance.tokens_per_cycle(several) == pytest.approx(single)
        assert acceptance.survival(several) == pytest.approx([acceptance.survival(int(g)) for g in several])


@given(st.lists(shares, min_size=1, max_size=6), lengths, st.floats(0.2, 1.2))
def test_arrays_of_rates_broadcast_with_lengths(alphas, gamma, decay):
    column = np.asarray(alphas)[:, None]
    row = np.arange(gamma + 1.0)
    for model in (Acceptance.constant(column), Acceptance.decaying(column, decay), Acceptance((column, 0.5))):
        tokens = model.tokens_per_cycle(row)
        assert tokens.shape == (len(alphas), gamma + 1)
        rates = tuple(rate if np.ndim(rate) == 0 else float(rate[-1, 0]) for rate in model.listed)
        last = Acceptance(rates, model.decay).tokens_per_cycle(gamma)
        assert tokens[-1, -1] == pytest.approx(last)


@given(rate_lists)
def test_profiles_agree_with_each_other(rates):
    acceptance = Acceptance.conditional_rates(rates)
    gamma = len(rates)
    assert acceptance.conditional_profile(gamma) == pytest.approx(rates)
    assert acceptance.survival_profile(gamma) == pytest.approx(acceptance.survival(np.arange(1, gamma + 1)))
    assert acceptance.accepted_per_cycle(gamma) == pytest.approx(acceptance.survival_profile(gamma).sum())
    counts = acceptance.length_probabilities(gamma)
    assert counts.sum() == pytest.approx(1.0)
    assert np.all(counts >= 0)
    assert counts @ np.arange(gamma + 1) == pytest.approx(acceptance.accepted_per_cycle(gamma))


@given(rate_lists, st.floats(0.0, 1.25), lengths)
def test_single_positions_agree_with_the_profile_beyond_the_listed_ones(rates, decay, gamma):
    acceptance = Acceptance(tuple(rates), decay)
    positions = np.arange(1, gamma + 1)
    assert acceptance.conditional(positions) == pytest.approx(acceptance.conditional_profile(gamma))
    assert acceptance.survival(positions) == pytest.approx(acceptance.survival_profile(gamma))


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=10))
def test_definitions_agree_on_one_profile(rates):
    truth = Acceptance.conditional_rates(rates)
    gamma = len(rates)
    tokens = truth.tokens_per_cycle(gamma)
    from_positions = from_survival(truth.survival_profile(gamma).tolist())
    assert from_positions.conditional_profile(gamma) == pytest.approx(rates, rel=1e-9)
    counted = from_histogram((truth.length_probabilities(gamma) * 1e6).tolist())
    assert counted.tokens_per_cycle(gamma) == pytest.approx(tokens, rel=1e-9)
    for text in (
        f"accepted-length:{tokens!r}@{gamma}",
        f"accepted-drafts:{tokens - 1!r}@{gamma}",
        f"accepted-per-drafted:{(tokens - 1) / gamma!r}@{gamma}",
        f"tau-per-width:{tokens / (gamma + 1)!r}@{gamma}",
    ):
        assert parse_acceptance(text).tokens_per_cycle(gamma) == pytest.approx(tokens, rel=1e-9)


@given(shares, lengths)
def test_a_constant_is_recovered_from_its_length(alpha, gamma):
    tokens = Acceptance.constant(alpha).tokens_per_cycle(gamma)
    assert constant_acceptance(tokens, gamma) == pytest.approx(alpha, abs=1e-9)
    assert from_accepted_length(tokens, gamma).tokens_per_cycle(gamma) == pytest.approx(tokens, rel=1e-12)


@given(shares, costs, st.integers(1, 64))
def test_the_optimal_length_is_the_best_of_all(alpha, cost_ratio, longest):
    candidates = np.arange(longest + 1)
    improvements = np.asarray(walltime_improvement(alpha, candidates, cost_ratio))
    found = int(optimal_draft_length(alpha, cost_ratio, longest))
    assert improvements[found] == pytest.approx(improvements.max(), rel=1e-12)


@given(shares, lengths, costs)
def test_speedup_never_exceeds_tokens_where_verify_is_not_cheaper_than_decode(alpha, gamma, cost_ratio):
    tokens = Acceptance.constant(alpha).tokens_per_cycle(gamma)
    assert walltime_improvement(alpha, gamma, cost_ratio) <= tokens
    assert tokens <= oracle_tokens_per_cycle(alpha) * (1 + 1e-12)


@given(lengths, costs, st.floats(1.0, 3.0))
def test_break_even_acceptance_is_where_speedup_is_1(gamma, cost_ratio, verify_cost):
    alpha = break_even_acceptance(gamma, cost_ratio, verify_cost)
    kappa = chain_cycle_cost(gamma, cost_ratio, verify_cost)
    if np.isnan(alpha):
        assert speedup(gamma + 1.0, kappa) < 1.0
    else:
        assert speedup(Acceptance.constant(alpha).tokens_per_cycle(gamma), kappa) == pytest.approx(
            1.0, rel=1e-9
        )


@given(shares, lengths, st.floats(0.5, 3.0))
def test_break_even_cost_ratio_is_where_speedup_is_1(alpha, gamma, verify_cost):
    tokens = Acceptance.constant(alpha).tokens_per_cycle(gamma)
    cost_ratio = break_even_cost_ratio(tokens, gamma, verify_cost)
    if cost_ratio >= 0:
        assert speedup(tokens, chain_cycle_cost(gamma, cost_ratio, verify_cost)) == pytest.approx(1.0)
    else:
        assert speedup(tokens, verify_cost) < 1.0


@given(shares, lengths, st.floats(0.0, 1.0))
def test_operations_never_shrink(alpha, gamma, operations_ratio):
    assert operations_factor(alpha, gamma, operations_ratio) >= 1.0 - 1e-12


@given(rate_lists, st.integers(0, 20))
def test_extrapolation_is_marked_exactly_beyond_what_was_measured(rates, gamma):
    measured = Acceptance.conditional_rates(rates)
    assert measured.is_extrapolated(gamma) == (gamma > len(rates))
    assert not np.any(Acceptance.constant(rates[0]).is_extrapolated(np.arange(gamma + 1)))
