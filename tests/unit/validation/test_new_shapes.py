"""Ends for shapes never seen: worked out by hand, and their coverage counted on shapes that were drawn."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.timing.intervals import few_shapes_factor
from rooflines.validation.held_out import ends_of_others
from rooflines.validation.new_shapes import COVERAGE, inner_ends, new_shape_factor, next_shape_ends


def labelled(*by_shape):
    log = np.concatenate([np.asarray(rows, dtype=float) for rows in by_shape])
    shape = np.repeat([f"s{number}" for number in range(len(by_shape))], [len(rows) for rows in by_shape])
    return log, shape


def drawn(generator, shapes, rows, between, within):
    """Rows of shapes that each have an error of their own."""
    own = generator.normal(0.0, between, shapes)
    return labelled(*(generator.normal(centre, within, rows) for centre in own))


def test_the_factor_is_what_rows_left_out_need():
    """Each of two shapes lies at fixed distances from the middle of the other's ends, in half-widths."""
    steps = np.linspace(-1.0, 1.0, 21)
    log, shape = labelled(steps, 1.5 * steps)
    # Ends of the one are -0.9..0.9, of the other -1.35..1.35: distances |x| / 0.9 of the second, |x| / 1.35
    # of the first.
    distances = np.concatenate([np.abs(steps) / 1.35, np.abs(1.5 * steps) / 0.9])
    expected = np.quantile(distances, COVERAGE * (1.0 + 1.0 / 42))
    assert new_shape_factor(log, shape) == pytest.approx(expected)
    low, high = next_shape_ends(log, shape)
    inner = inner_ends(log)
    assert (high - low) == pytest.approx(expected * (inner[1] - inner[0]))


def test_shapes_that_are_alike_are_hardly_widened_and_others_are():
    generator = np.random.default_rng(1)
    alike = new_shape_factor(*drawn(generator, 12, 200, 0.0, 0.1))
    apart = new_shape_factor(*drawn(generator, 12, 200, 0.3, 0.1))
    assert alike == pytest.approx(1.0, abs=0.05)
    assert apart > 1.1


def test_a_factor_lies_between_one_and_students_for_three_shapes():
    tight, far = np.linspace(0.0, 0.01, 20), np.linspace(5.0, 5.01, 20)
    assert new_shape_factor(*labelled(tight, -tight, tight, far)) == few_shapes_factor(3)
    assert new_shape_factor(*labelled(tight, far)) == few_shapes_factor(2)
    wide = np.linspace(-1.0, 1.0, 20)
    assert new_shape_factor(*labelled(wide, wide * 0.1, wide, wide * 0.1, wide * 0.1, wide * 0.1)) >= 1.0


def test_one_shape_and_few_rows_tell_nothing_and_take_students():
    one = labelled(np.linspace(-0.1, 0.1, 30))
    assert new_shape_factor(*one) is None
    assert new_shape_factor(*labelled([0.0, 0.1], [0.1, 0.2])) is None
    assert new_shape_factor(*labelled([0.1] * 9, [0.1] * 9)) is None  # nothing to measure a distance in
    low, high = inner_ends(one[0])
    assert next_shape_ends(*one) == pytest.approx(
        (-few_shapes_factor(1) * (high - low) / 2, few_shapes_factor(1) * (high - low) / 2)
    )


@pytest.mark.parametrize("between", [0.0, 0.05, 0.1])
def test_nine_tenths_of_shapes_never_seen_lie_inside(between):
    """Whatever part of the errors the rows of a shape share, as 400 draws of 10 shapes and one more show."""
    generator = np.random.default_rng(7)
    inside = []
    for _ in range(400):
        log, shape = drawn(generator, 11, 15, between, 0.08)
        seen = shape != "s10"
        low, high = next_shape_ends(log[seen], shape[seen])
        inside.append(np.mean((log[~seen] >= low) & (log[~seen] <= high)))
    assert 0.86 <= np.mean(inside) <= 0.94


def test_ends_of_a_shape_do_not_move_with_its_own_rows():
    generator = np.random.default_rng(3)
    log, shape = drawn(generator, 6, 20, 0.1, 0.1)
    region = np.full(len(log), "all")
    own = shape == "s2"
    before = ends_of_others(log, shape, region)
    after = ends_of_others(np.where(own, log * 9.0 + 4.0, log), shape, region)
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one[own], other[own])
        assert not np.allclose(one[~own], other[~own])
