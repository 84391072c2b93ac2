"""Intervals out of residuals: wider for few shapes, exactly as Student's t is."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from rooflines.hardware.calibration import OperatorConstants, Provenance, Residual
from rooflines.hardware.constants import Constants
from rooflines.timing.intervals import few_shapes_factor, log_ends, widened_ends


def entry(shapes, *residuals, factor=None):
    return OperatorConstants(
        operator="linear",
        arithmetic="bf16",
        form="test",
        constants=Constants(),
        provenance=Provenance(basis="measured", shapes=shapes),
        residuals=tuple(
            Residual(
                region=region,
                rows=9,
                median_abs_error=0.1,
                p90_abs_error=0.2,
                bias=0.0,
                log_q05=low,
                log_q95=high,
                in_sample=False,
                new_shape_factor=factor,
            )
            for region, low, high in residuals
        ),
    )


@pytest.mark.parametrize("shapes", [2, 3, 4, 5, 8, 16, 100])
def test_few_shapes_widen_as_student_does(shapes):
    t = stats.t.ppf(0.95, shapes - 1) / stats.norm.ppf(0.95)
    assert few_shapes_factor(shapes) == pytest.approx(t * math.sqrt(1 + 1 / shapes), rel=4e-3)


def test_many_shapes_widen_little_and_uncounted_ones_nothing():
    assert few_shapes_factor(10_000) == pytest.approx(1.0, abs=1e-3)
    assert few_shapes_factor(0) == 1.0
    assert few_shapes_factor(1) > few_shapes_factor(2) > few_shapes_factor(3) > few_shapes_factor(30)


def test_ends_move_away_from_their_middle():
    low, high = widened_ends(-0.3, 0.1, 1.5)
    assert (low + high) / 2 == pytest.approx(-0.1)
    assert (high - low) / 2 == pytest.approx(0.2 * 1.5)


def test_a_measured_factor_goes_before_the_one_that_the_number_of_shapes_says():
    stated, unstated = entry(4, ("all", -0.3, 0.1), factor=1.2), entry(4, ("all", -0.3, 0.1))
    assert log_ends(stated, "all") == pytest.approx(widened_ends(-0.3, 0.1, 1.2))
    assert log_ends(unstated, "all") == pytest.approx(widened_ends(-0.3, 0.1, few_shapes_factor(4)))
    assert log_ends(stated, "all", new_shape=False) == pytest.approx((-0.3, 0.1))


def test_the_region_answers_first_then_the_whole_range():
    one = entry(0, ("m <= 64", -0.1, 0.2), ("all", -0.4, 0.5))
    assert log_ends(one, "m <= 64") == pytest.approx((-0.1, 0.2))
    assert log_ends(one, "m > 512") == pytest.approx((-0.4, 0.5))
    assert log_ends(entry(0, ("m <= 64", -0.1, 0.2)), "m > 512") is None


def test_a_shape_that_was_fitted_to_is_not_widened():
    one = entry(3, ("all", -0.1, 0.2))
    assert log_ends(one, "all", new_shape=False) == pytest.approx((-0.1, 0.2))
    low, high = log_ends(one, "all")
    assert low < -0.1
    assert high > 0.2
