"""Lengths and rates at the edge of what is meant: one clear line, never a wait, a warning or a certainty."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance import LONGEST_SUMMED, Acceptance
from rooflines.speculation.acceptance_fit import fit_acceptance
from rooflines.speculation.acceptance_text import parse_acceptance
from rooflines.speculation.closed_form import constant_acceptance, operations_factor

ENDLESS = 10**12


@pytest.mark.parametrize(
    "call",
    [
        lambda: parse_acceptance(f"accepted-length:3.0@{ENDLESS}"),
        lambda: parse_acceptance(f"accepted-length:3.0@{ENDLESS},3.1@4"),
        lambda: constant_acceptance(3.0, ENDLESS),
        lambda: Acceptance.conditional_rates([0.8, 0.7]).tokens_per_cycle(ENDLESS),
        lambda: Acceptance.conditional_rates([0.8, 0.7]).survival(np.array([2, ENDLESS])),
        lambda: Acceptance.constant(0.8).survival_profile(ENDLESS),
    ],
)
def test_endless_drafts_are_refused_at_once(call):
    with pytest.raises(InputError, match=f"beyond {LONGEST_SUMMED}"):
        call()


def test_the_longest_draft_is_summed_and_the_closed_form_has_no_limit():
    assert Acceptance.conditional_rates([0.5, 0.5]).tokens_per_cycle(LONGEST_SUMMED) == pytest.approx(2.0)
    assert Acceptance.constant(0.5).tokens_per_cycle(ENDLESS) == pytest.approx(2.0)


def test_a_growing_decay_reaches_1_without_overflow_and_leaves_0_alone():
    assert Acceptance.decaying(0.5, 1.25).conditional(LONGEST_SUMMED * 4) == 1.0
    assert Acceptance.decaying(0.0, 1.25).conditional(LONGEST_SUMMED * 4) == 0.0
    assert Acceptance.decaying(0.5, 1.25).conditional(np.array([1, 2])) == pytest.approx([0.5, 0.625])


def test_a_fit_of_rising_acceptance_holds_its_last_rate_beyond_the_measured_length():
    # EAGLE-3 on chat rises (DSpark, https://arxiv.org/abs/2607.05147, figure 2): c_1..c_7.
    rising = Acceptance.conditional_rates([0.5336, 0.5894, 0.6421, 0.6782, 0.7086, 0.7289, 0.7325])
    lengths = np.arange(1, 8)
    fit = fit_acceptance(lengths.tolist(), rising.tokens_per_cycle(lengths).tolist(), "decaying")
    assert fit.decay > 1.0
    assert fit.acceptance.tokens_per_cycle(lengths) == pytest.approx(
        rising.tokens_per_cycle(lengths), rel=fit.worst_relative_error + 1e-12
    )
    assert fit.acceptance.conditional(40) == fit.acceptance.conditional(7) < 1.0
    assert fit.acceptance.is_extrapolated(8)
    assert not fit.acceptance.is_extrapolated(7)


def test_a_fit_of_falling_acceptance_goes_on_falling():
    truth = Acceptance.decaying(0.9, 0.8)
    lengths = [1, 2, 4, 8]
    fit = fit_acceptance(lengths, truth.tokens_per_cycle(np.array(lengths)).tolist(), "decaying")
    assert fit.acceptance.conditional(12) == pytest.approx(truth.conditional(12), rel=1e-5)
    assert fit.acceptance.is_extrapolated(12)


@pytest.mark.parametrize("ratio", [-0.1, float("nan"), float("inf")])
def test_an_operations_ratio_below_0_or_not_finite_is_refused(ratio):
    with pytest.raises(InputError, match="operations ratio"):
        operations_factor(0.8, 4, ratio)
