from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.closed_form import (
    break_even_acceptance,
    break_even_cost_ratio,
    chain_cycle_cost,
    constant_acceptance,
    operations_factor,
    optimal_draft_length,
    oracle_tokens_per_cycle,
    require_possible_speedup,
    some_length_pays,
    speedup,
    walltime_improvement,
)


def test_the_common_example():
    # alpha 0.8, gamma 4, c 0.05: tau 3.3616 over 1.2.
    assert walltime_improvement(0.8, 4, 0.05) == pytest.approx(3.3616 / 1.2)
    assert break_even_cost_ratio(3.3616, 4, verify_cost=1.0) == pytest.approx(2.3616 / 4)


def test_overhead_and_verify_enter_the_cycle():
    kappa = chain_cycle_cost(4, 0.05, verify_cost=1.1, overhead_cost=0.02)
    assert kappa == pytest.approx(0.2 + 1.1 + 0.02)
    assert speedup(3.3616, kappa) == pytest.approx(3.3616 / 1.32)


def test_everything_broadcasts():
    alpha, gamma = np.array([[0.5], [0.9]]), np.array([1.0, 2.0, 8.0])
    assert walltime_improvement(alpha, gamma, 0.1).shape == (2, 3)
    assert operations_factor(alpha, gamma, 0.1).shape == (2, 3)
    assert constant_acceptance(np.full((2, 1), 1.5), gamma).shape == (2, 3)
    assert break_even_acceptance(gamma, 0.05, np.array([[1.0], [1.2]])).shape == (2, 3)
    assert optimal_draft_length(alpha, np.array([0.01, 0.2]), 20).shape == (2, 2)
    assert some_length_pays(alpha, 0.7).tolist() == [[False], [True]]


def test_oracle_bound_at_1_is_infinite():
    assert oracle_tokens_per_cycle(np.array([0.0, 0.5, 1.0])).tolist() == [1.0, 2.0, np.inf]


@pytest.mark.parametrize(
    ("alpha", "cost_ratio", "longest", "best"),
    [(0.8, 1.0, 16, 0), (0.5, 0.5, 16, 0), (1.0, 0.0, 16, 16), (0.0, 0.0, 16, 0), (0.8, 0.0, 3, 3)],
)
def test_optimal_length_at_the_edges(alpha, cost_ratio, longest, best):
    assert optimal_draft_length(alpha, cost_ratio, longest) == best


def test_constant_acceptance_is_nan_where_impossible():
    alpha = constant_acceptance(np.array([0.9, 1.0, 5.0, 5.1]), 4)
    assert np.isnan(alpha[[0, 3]]).all()
    assert alpha[[1, 2]].tolist() == [0.0, 1.0]


def test_break_even_where_it_always_or_never_pays():
    assert break_even_acceptance(4, 0.0, verify_cost=0.9) == 0.0
    assert np.isnan(break_even_acceptance(2, 1.0, verify_cost=1.5))


@pytest.mark.parametrize(("eta", "tau"), [(1.57, 1.461), (1.257, 1.04), (2.5, 2.4)])
def test_speedup_above_tokens_per_cycle_is_refused(eta, tau):
    # mlx-lm pull request 990: 46.1 % of one drafted token and "1.57x"; 2-4 % acceptance and +25.7 %:
    # https://atomgradient.github.io/apple-silicon-llm-inference
    with pytest.raises(InputError, match="exceeds"):
        require_possible_speedup(eta, tau)


def test_possible_speedups_pass_print_rounding_included():
    require_possible_speedup(np.array([0.3, 1.0, 3.36]), np.array([1.2, 1.0, 3.3616]))
    require_possible_speedup(2.404, 2.396)
    with pytest.raises(InputError, match="above 0"):
        require_possible_speedup(0.0, 2.0)
    with pytest.raises(InputError, match="above 0"):
        require_possible_speedup(float("nan"), 2.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: walltime_improvement(1.2, 4, 0.05),
        lambda: walltime_improvement(0.8, -1, 0.05),
        lambda: walltime_improvement(0.8, 4, -0.05),
        lambda: walltime_improvement(0.8, 4, float("nan")),
        lambda: chain_cycle_cost(4, 0.05, float("inf")),
        lambda: speedup(3.0, 0.0),
        lambda: optimal_draft_length(0.8, 0.05, 0),
        lambda: constant_acceptance(2.0, 0),
        lambda: oracle_tokens_per_cycle(-0.1),
        lambda: some_length_pays(2.0, 0.1),
    ],
)
def test_impossible_input_is_refused(call):
    with pytest.raises(InputError):
        call()
