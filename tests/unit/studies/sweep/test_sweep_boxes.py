"""Boxes cover a grid once, in order, within their size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.studies.sweep.boxes import box_shape, boxes

SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=4)


@given(shape=SHAPES, most=st.integers(1, 200))
def test_every_point_lies_in_one_box_of_bounded_size(shape, most):
    seen = np.zeros(shape, dtype=int)
    for box in boxes(shape, most):
        assert np.prod(box_shape(box)) <= most
        seen[box] += 1
    assert np.all(seen == 1)


@given(shape=SHAPES, most=st.integers(1, 200))
def test_boxes_come_in_the_order_of_the_grid(shape, most):
    numbers = np.arange(np.prod(shape)).reshape(shape)
    firsts = [numbers[box].flat[0] for box in boxes(shape, most)]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize(
    ("shape", "most", "count"),
    [((4, 5, 6), 120, 1), ((4, 5, 6), 60, 2), ((4, 5, 6), 30, 4), ((4, 5, 6), 12, 12), ((4, 5, 6), 3, 40)],
)
def test_inner_axes_stay_whole(shape, most, count):
    cut = list(boxes(shape, most))
    assert len(cut) == count
    assert all(box_shape(box)[-1] == 6 for box in cut) or most < 6


def test_pieces_of_an_axis_are_of_nearly_one_length():
    assert [box_shape(box)[0] for box in boxes((10, 3), 12)] == [4, 4, 2]
    assert [box_shape(box)[0] for box in boxes((9, 3), 12)] == [3, 3, 3]
