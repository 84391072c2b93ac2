from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import InputError
from rooflines.measurement.cases import Case, Grid, plan_cases

axis = st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True).map(
    lambda values: tuple(sorted(values))
)
FULL = Grid(batches=(1, 4), positions=(1, 8), contexts=(16, 512), depths=(1, 10), prefills=(64,))


def steps(grid, layers=30, *, lean=True):
    return [case for case in plan_cases(grid, layers, lean=lean) if case.kind == "step"]


def test_each_axis_is_varied_alone_and_widths_at_both_ends_of_the_context():
    found = {(c.batch, c.new_positions, c.context, c.depth) for c in steps(FULL)}
    assert found == {
        (1, 1, 16, 30),
        (1, 8, 16, 30),
        (1, 1, 512, 30),
        (1, 8, 512, 30),
        (4, 1, 16, 30),
        (1, 1, 16, 1),
        (1, 1, 16, 10),
    }


def test_the_parts_of_a_lean_model_are_timed_too():
    cases = plan_cases(FULL, 30, lean=True)
    assert Case("head", 1, 8, 0, 0) in cases
    assert Case("prefill", 1, 64, 0, 30) in cases
    assert {c.new_positions for c in cases if c.kind == "draft"} == {1, 2, 4, 8}
    assert {c.depth for c in cases if c.kind == "draft"} == {1, 10, 30}
    assert {c.context for c in cases if c.kind == "draft"} == {16, 512}
    assert {c.new_positions for c in cases if c.kind == "empty"} == {1, 8}


def test_another_model_is_timed_as_a_whole_only():
    assert {case.kind for case in plan_cases(FULL, 30, lean=False)} == {"step", "prefill"}


def test_crossing_times_every_combination():
    grid = Grid(batches=(1, 4), positions=(1, 8), contexts=(16, 512), depths=(10,), cross=True)
    assert len(steps(grid)) == 2**4


@given(batches=axis, positions=axis, contexts=axis, depths=axis, cross=st.booleans())
def test_the_base_comes_first_nothing_twice_and_every_value_somewhere(
    batches, positions, contexts, depths, cross
):
    cases = steps(Grid(batches, positions, contexts, depths, cross=cross), 40)
    assert cases[0] == Case("step", batches[0], positions[0], contexts[0], 40)
    assert len(set(cases)) == len(cases)
    assert len({case.name for case in cases}) == len(cases)
    assert {case.batch for case in cases} == set(batches)
    assert {case.new_positions for case in cases} == set(positions)
    assert {case.context for case in cases} == set(contexts)
    assert {case.depth for case in cases} == {*depths, 40}


def test_what_the_model_lacks_is_refused():
    with pytest.raises(InputError, match="depth 31: the model has 30 layers"):
        plan_cases(Grid(depths=(31,)), 30, lean=True)
    with pytest.raises(InputError, match="no context is given"):
        plan_cases(Grid(contexts=()), 30, lean=True)
