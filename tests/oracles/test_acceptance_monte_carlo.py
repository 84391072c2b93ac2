"""Tokens per cycle against simulated cycles, and fits against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_fit import fit_acceptance

CYCLES = 200_000
PROFILES = [
    Acceptance.constant(0.8),
    Acceptance.constant(0.3),
    Acceptance.conditional_rates([0.9, 0.6, 0.7, 0.2]),
    Acceptance.decaying(0.95, 0.8),
    Acceptance.decaying(0.5, 1.1),
]


def simulate(acceptance, gamma, rng):
    """Drafted tokens accepted in each cycle: positions are tried in turn until one is rejected."""
    rates = acceptance.conditional_profile(gamma)
    accepted = np.zeros(CYCLES, dtype=int)
    alive = np.ones(CYCLES, dtype=bool)
    for rate in rates:
        alive &= rng.random(CYCLES) < rate
        accepted += alive
    return accepted


@pytest.mark.parametrize("acceptance", PROFILES)
@pytest.mark.parametrize("gamma", [1, 4, 9])
def test_tokens_and_their_distribution(acceptance, gamma):
    accepted = simulate(acceptance, gamma, np.random.default_rng(20230517 + gamma))
    tokens = 1 + accepted
    error = 5 * tokens.std() / np.sqrt(CYCLES) + 1e-12
    assert acceptance.tokens_per_cycle(gamma) == pytest.approx(tokens.mean(), abs=error)
    counts = np.bincount(accepted, minlength=gamma + 1) / CYCLES
    assert acceptance.length_probabilities(gamma) == pytest.approx(counts, abs=5 * 0.5 / np.sqrt(CYCLES))
    assert acceptance.survival(gamma) == pytest.approx(counts[-1], abs=5 * 0.5 / np.sqrt(CYCLES))


def test_rejection_sampling_accepts_as_often_as_the_distributions_overlap():
    # Leviathan et al. 2023 (https://arxiv.org/abs/2211.17192): alpha = E[sum min(p, q)] (corollary 3.6), and the
    # output follows the target's distribution whatever the drafter's.
    rng = np.random.default_rng(7)
    target, draft = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.25, 0.25, 0.25, 0.25])
    drafted = rng.choice(4, size=CYCLES, p=draft)
    accepted = rng.random(CYCLES) < np.minimum(1.0, target / draft)[drafted]
    residual = np.maximum(target - draft, 0.0) / np.maximum(target - draft, 0.0).sum()
    emitted = np.where(accepted, drafted, rng.choice(4, size=CYCLES, p=residual))
    alpha = np.minimum(target, draft).sum()
    assert accepted.mean() == pytest.approx(alpha, abs=0.006)
    assert np.bincount(emitted) / CYCLES == pytest.approx(target, abs=0.006)
    assert Acceptance.constant(alpha).tokens_per_cycle(1) == pytest.approx(1 + accepted.mean(), abs=0.006)


CURVES = [
    [1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58],
    [1.93, 2.73, 3.39, 3.97, 4.41, 4.80, 5.04, 5.21],
    [1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88],
]


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("form", ["constant", "decaying"])
def test_fits_find_the_least_squares_that_scipy_finds(curve, form):
    gammas = np.arange(1, 9)

    def errors(parameters):
        decay = parameters[1] if form == "decaying" else 1.0
        return Acceptance.decaying(parameters[0], decay).tokens_per_cycle(gammas) / curve - 1.0

    start = [0.7, 0.95] if form == "decaying" else [0.7]
    bounds = (np.zeros(len(start)), np.array([1.0, 1.25])[: len(start)])
    theirs = optimize.least_squares(errors, start, bounds=bounds, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    ours = fit_acceptance(gammas.tolist(), curve, form)
    assert np.sum(np.square(ours.relative_errors)) <= 2 * theirs.cost * (1 + 1e-9)
    assert [ours.alpha, ours.decay][: len(start)] == pytest.approx(theirs.x, abs=1e-5)


def test_a_fit_recovers_what_made_the_lengths():
    truth = Acceptance.decaying(0.83, 0.91)
    gammas = [1, 2, 3, 5, 8]
    fit = fit_acceptance(gammas, [truth.tokens_per_cycle(gamma) for gamma in gammas], "decaying")
    assert (fit.alpha, fit.decay) == pytest.approx((0.83, 0.91), abs=1e-6)
    assert fit.worst_relative_error < 1e-7


def test_a_fit_sees_acceptance_that_rises_along_the_draft():
    # EAGLE-3 on chat, DSpark figure 2: 0.53 -> 0.73.
    truth = Acceptance.conditional_rates([0.5336, 0.5894, 0.6421, 0.6782, 0.7086, 0.7289, 0.7325])
    gammas = list(range(1, 8))
    fit = fit_acceptance(gammas, [truth.tokens_per_cycle(gamma) for gamma in gammas], "decaying")
    assert fit.decay > 1.0
    assert fit.worst_relative_error < 0.01
