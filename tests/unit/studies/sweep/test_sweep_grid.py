"""What a grid's file may say, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import FileFormatError
from rooflines.speculation.acceptance import Acceptance
from rooflines.studies.sweep.grid import SweepGrid, read_grid


def grid(small, **changes):
    return SweepGrid.read({**small, **changes}, "grid")


def refusal(small, **changes):
    with pytest.raises(FileFormatError) as caught:
        grid(small, **changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (7, (7,)),
        ([1, 8, 64], (1, 8, 64)),
        ({"first": 1, "last": 4, "step": 1}, (1, 2, 3, 4)),
        ({"first": 1, "last": 8, "step": 3}, (1, 4, 7)),
        ({"first": 1, "last": 10, "count": 3}, (1, 6, 10)),
        ({"first": 1, "last": 3, "count": 9}, (1, 2, 3)),
        ([{"first": 1, "last": 3, "step": 1}, 8], (1, 2, 3, 8)),
    ],
)
def test_whole_axes(small, written, values):
    assert grid(small, batch=written).batch == values


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (0.8, (0.8,)),
        ([0, 1], (0.0, 1.0)),
        ({"first": 0.1, "last": 0.3, "step": 0.1}, (0.1, 0.2, 0.3)),
        ({"first": 0.5, "last": 0.9, "count": 3}, (0.5, 0.7, 0.9)),
        (["survival:0.8,0.6", 0.5], ("survival:0.8,0.6", 0.5)),
    ],
)
def test_acceptance_for_all_drafters(small, written, values):
    assert grid(small, acceptance=written).rates_of("ngram:depth=3") == pytest.approx(values)


@given(
    first=st.integers(-50, 50), steps=st.integers(1, 400), step=st.sampled_from([0.001, 0.01, 0.1, 0.3, 0.7])
)
def test_a_range_ends_at_its_last_value(first, steps, step):
    from rooflines.studies.sweep.grid import _values

    last = round(first + steps * step, 12)
    values = _values({"first": first, "last": last, "step": step})
    assert len(values) == steps + 1
    assert values[-1] == pytest.approx(last, abs=1e-11)


def test_acceptance_goes_by_the_whole_name_then_by_the_kind_then_to_all(small):
    both = ["ngram", "ngram:depth=3", "independent:llama-3.2-1b"]
    named = grid(small, drafter=both, acceptance={"ngram": [0.3], "ngram:depth=3": [0.4], "independent": 0.5})
    assert [named.rates_of(name) for name in both] == [(0.3,), (0.4,), (0.5,)]


def test_cases_are_all_combinations_and_each_other_acceptance_by_itself(small):
    cases = list(grid(small).cases())
    assert len(cases) == len(set(cases)) == 2 * 2 * 2 * (1 + 2)
    lookups = {case.acceptance for case in cases if case.drafter == "ngram:depth=3"}
    assert lookups == {(0.5,), ("conditional:0.7,0.6,0.5",)}


def test_constant_rates_are_one_array(small):
    case = next(iter(grid(small).cases()))
    assert isinstance(case.rates, Acceptance)
    np.testing.assert_array_equal(case.rates.listed[0], [0.6, 0.8])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"batch": [0]}, "greater than or equal to 1"),
        ({"batch": [1, 1]}, "listed twice"),
        ({"batch": []}, "at least 1"),
        ({"batch": [1.5]}, "no whole number"),
        ({"batch": [True]}, "no whole number"),
        ({"batch": {"first": 1, "last": 8}}, "a range is { first = 1"),
        ({"batch": {"first": 1, "last": 8, "step": 1, "count": 2}}, "a range is { first = 1"),
        ({"batch": {"first": 8, "last": 1, "step": 1}}, "must rise"),
        ({"batch": {"first": 1, "last": 8, "step": 0}}, "choose a larger one"),
        ({"batch": {"first": 1, "last": 10**9, "step": 1}}, "choose a larger one"),
        ({"batch": {"first": 1, "last": 8, "count": 1}}, "count of 2"),
        ({"context": [-1]}, "greater than or equal to 0"),
        ({"acceptance": [1.2]}, "within 0..1"),
        ({"acceptance": ["conditoinal:0.8"]}, "conditional"),
        ({"acceptance": ["0.8x"]}, "0.8x"),
        ({"acceptance": [None]}, "write 0.8"),
        ({"acceptance": []}, "one acceptance at least"),
        ({"acceptance": {"ngram": []}}, "one acceptance at least"),
        ({"acceptance": {"ngram": [0.5]}}, "'independent:llama-3.2-1b' has none"),
        (
            {"acceptance": {"eagle3": [0.5], "ngram": [0.5], "independent": [0.5]}},
            "'eagle3' names no drafter",
        ),
        ({"columns": ["speedup", "speed"]}, "'speed' is none of"),
        ({"rows_per_part": 0}, "greater than or equal to 1"),
        ({"memory_reserve": 1.0}, "less than 1"),
        ({"hardwar": ["x"]}, "did you mean 'hardware'"),
    ],
)
def test_mistakes_name_the_field_and_the_rule(small, changes, said):
    message = refusal(small, **changes)
    assert said in message
    assert "\n" not in message


def test_files(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_grid(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("batch = [1", encoding="utf-8")
    with pytest.raises(FileFormatError, match="not TOML"):
        read_grid(tmp_path / "bad.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_grid(tmp_path / "binary.toml")


def test_the_fingerprint_sees_values_and_the_files_that_are_named(small, tmp_path, root):
    one = grid(small)
    assert one.fingerprint() == grid(small).fingerprint()
    assert one.fingerprint() != grid(small, batch=[1, 65]).fingerprint()
    profile = tmp_path / "own.toml"
    text = (root / "hardware_profiles" / "h100-sxm5-80gb.toml").read_text(encoding="utf-8")
    profile.write_text(text, encoding="utf-8")
    named = grid(small, hardware=[str(profile)])
    before = named.fingerprint()
    profile.write_text(text + "\n# another", encoding="utf-8")
    assert named.fingerprint() != before
