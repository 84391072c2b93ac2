"""Laws of the time forms, for any times and sharpness."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.timing.forms import saturating, smooth_maximum

TIMES = st.floats(1e-9, 1e3)
SHARPNESS = st.floats(1.0, 50.0)
SLACK = 1 + 1e-12


@given(TIMES, TIMES, SHARPNESS)
def test_it_lies_between_the_maximum_and_the_sum(one, other, sharpness):
    time = smooth_maximum(one, other, sharpness)
    assert max(one, other) <= time * SLACK
    assert time <= (one + other) * SLACK


@given(TIMES, TIMES, SHARPNESS)
def test_the_order_does_not_matter(one, other, sharpness):
    assert smooth_maximum(one, other, sharpness) == smooth_maximum(other, one, sharpness)


@given(TIMES, TIMES, SHARPNESS, st.floats(1e-3, 1e3))
def test_it_scales_with_its_unit(one, other, sharpness, unit):
    scaled = smooth_maximum(one * unit, other * unit, sharpness)
    assert scaled == pytest.approx(smooth_maximum(one, other, sharpness) * unit, rel=1e-9)


@given(TIMES, TIMES, SHARPNESS, SHARPNESS)
def test_sharper_is_never_slower(one, other, sharpness, more):
    dull, sharp = sorted((sharpness, more))
    assert smooth_maximum(one, other, sharp) <= smooth_maximum(one, other, dull) * SLACK


@given(TIMES, TIMES, TIMES, st.one_of(SHARPNESS, st.just(math.inf)))
def test_more_work_never_takes_less_time(one, other, extra, sharpness):
    less = smooth_maximum(one, other, sharpness)
    assert less <= smooth_maximum(one + extra, other, sharpness) * SLACK


@given(st.floats(0.01, 1.0), st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.floats(0.0, 1e4))
def test_an_efficiency_rises_with_length_and_stays_below_its_limit(efficiency, tokens, more, saturation):
    short, long = sorted((tokens, more))
    assert 0 < saturating(efficiency, short, saturation) <= saturating(efficiency, long, saturation) * SLACK
    assert saturating(efficiency, long, saturation) <= efficiency
