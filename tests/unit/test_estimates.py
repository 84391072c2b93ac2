from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import InputError
from rooflines.estimates import Estimate, total

sds = st.floats(0.0, 0.3)
values = st.floats(1e-6, 1e6)


@given(values, values, sds)
def test_a_cause_that_acts_alike_on_both_sides_drops_out_of_a_ratio(one, other, sd):
    ratio = Estimate(one, {"kernel": sd}) / Estimate(other, {"kernel": sd})
    assert ratio.log_sd == pytest.approx(0.0, abs=1e-12)
    assert ratio.value == pytest.approx(one / other)


@given(values, values, sds, sds)
def test_causes_of_its_own_add_in_squares(one, other, left, right):
    ratio = Estimate(one, {"left": left}) / Estimate(other, {"right": right})
    assert ratio.log_sd == pytest.approx(math.hypot(left, right))


@given(values, values, sds, sds)
def test_a_sum_lies_between_independent_and_wholly_shared(one, other, left, right):
    apart = (Estimate(one, {"left": left}) + Estimate(other, {"right": right})).log_sd
    shared = (Estimate(one, {"same": left}) + Estimate(other, {"same": right})).log_sd
    assert apart <= shared + 1e-12
    assert shared <= max(left, right) + 1e-12


@given(values, sds)
def test_the_reciprocal_of_the_reciprocal_is_the_estimate(value, sd):
    estimate = Estimate(value, {"kernel": sd})
    again = estimate.reciprocal().reciprocal()
    assert again.value == pytest.approx(value)
    assert again.errors == estimate.errors


def test_intervals_cover_what_they_say():
    rng = np.random.default_rng(0)
    kernel, host = rng.normal(0, 0.1, 20_000), rng.normal(0, 0.2, 20_000)
    decode = 3.0 * np.exp(kernel) + 1.0 * np.exp(host)
    verify = 4.0 * np.exp(kernel) + 1.0 * np.exp(host + 0.0)
    estimates = [Estimate(whole, {"kernel": 0.1}) + Estimate(1.0, {"host": 0.2}) for whole in (3.0, 4.0)]
    low, high = (estimates[1] / estimates[0]).interval()
    covered = np.mean((verify / decode > low) & (verify / decode < high))
    assert covered == pytest.approx(0.9, abs=0.015)
    low, high = estimates[0].interval()
    assert np.mean((decode > low) & (decode < high)) == pytest.approx(0.9, abs=0.015)


def test_arrays_broadcast():
    estimate = Estimate(np.array([1.0, 2.0]), {"kernel": 0.1}) + Estimate(1.0, {"host": 0.2})
    low, high = estimate.interval()
    assert low.shape == high.shape == (2,)
    assert np.all(low < estimate.value)
    assert np.all(estimate.value < high)


def test_an_empty_sum_is_an_exact_zero():
    assert total(()).interval() == (0.0, 0.0)


def test_the_basis_of_a_result_names_both():
    assert (Estimate(1.0, basis="measured") * Estimate(1.0, basis="default")).basis == "measured; default"
    assert (Estimate(1.0, basis="measured") / Estimate(1.0, basis="measured")).basis == "measured"
    assert (Estimate(1.0, {"a": 0.1}, "x") * 2.0).value == pytest.approx(2.0)


@pytest.mark.parametrize("level", [0.0, 1.0, 90.0])
def test_a_level_is_a_share(level):
    with pytest.raises(InputError, match=r"0\.9"):
        Estimate(1.0).interval(level)
