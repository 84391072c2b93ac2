"""How FLOPs, bytes and constants become seconds, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rooflines.timing.forms import saturating, smooth_maximum


def test_infinite_sharpness_is_the_hard_maximum():
    assert smooth_maximum(3.0, 4.0, math.inf) == 4.0


def test_sharpness_one_adds():
    assert smooth_maximum(3.0, 4.0, 1.0) == 7.0


def test_sharpness_two_is_the_hypotenuse():
    assert smooth_maximum(3.0, 4.0, 2.0) == pytest.approx(5.0)


def test_equal_times_cost_a_known_factor():
    """At the ridge a = b, so the result is a * 2^(1/p): 32 % above the hard maximum for p = 2.5."""
    assert smooth_maximum(1.0, 1.0, 2.5) == pytest.approx(2 ** (1 / 2.5))


def test_nothing_takes_no_time():
    assert smooth_maximum(0.0, 0.0, 2.5) == 0.0


def test_tiny_and_huge_times_neither_vanish_nor_overflow():
    assert smooth_maximum(1e-200, 1e-200, 2.5) == pytest.approx(1e-200 * 2**0.4)
    assert smooth_maximum(1e200, 1e200, 2.5) == pytest.approx(1e200 * 2**0.4)


@pytest.mark.parametrize("sharpness", [1.0, 2.5, math.inf])
def test_arrays_broadcast(sharpness):
    one, other = np.array([[1.0], [5.0]]), np.array([2.0, 3.0, 4.0])
    together = smooth_maximum(one, other, sharpness)
    assert np.shape(together) == (2, 3)
    assert together[1, 2] == pytest.approx(smooth_maximum(5.0, 4.0, sharpness))


def test_an_efficiency_saturates_with_length():
    assert saturating(0.6, 1000.0, 1000.0) == pytest.approx(0.3)
    assert saturating(0.6, 1e9, 1000.0) == pytest.approx(0.6, rel=1e-5)
    assert saturating(0.6, 7.0, 0.0) == 0.6


def test_a_length_of_zero_saturates_as_one_token():
    assert saturating(0.5, 0.0, 3.0) == saturating(0.5, 1.0, 3.0) == pytest.approx(0.125)
