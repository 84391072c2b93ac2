from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.lengths import Lengths, parse_lengths, summarised


def test_a_number_is_a_constant():
    lengths = parse_lengths("1024", "prompt tokens")
    assert lengths.values.tolist() == [1024.0]
    assert lengths.mean == 1024.0


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("uniform:100..300", 200.0),
        ("exponential:500", 500.0),
        ("lognormal:800,0.5", 800.0 * np.exp(0.125)),
        ("lognormal:1000,1", 1000.0 * np.exp(0.5)),
    ],
)
def test_distributions_keep_their_mean(text, mean):
    assert parse_lengths(text, "prompt tokens").mean == pytest.approx(mean, rel=0.015)


def test_every_length_is_whole_and_one_at_least():
    values = parse_lengths("exponential:3", "output tokens").values
    assert values.min() == 1.0
    assert np.array_equal(values, np.round(values))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-5",
        "0",
        "1e3",
        "uniform:9..3",
        "uniform:5",
        "lognormal:100",
        "lognormal:100,9",
        "normal:5,1",
        "exponential:0",
        "999999999999",
    ],
)
def test_what_no_request_can_have_is_refused(text):
    with pytest.raises(InputError, match="prompt tokens"):
        parse_lengths(text, "prompt tokens")


@pytest.mark.parametrize(
    ("values", "weights", "reason"),
    [
        ([1.0], [0.5], "sum to 1"),
        ([1.0, 2.0], [1.0], "one weight a value"),
        ([], [], "at least one value"),
        ([-1.0], [1.0], "within"),
        ([np.nan], [1.0], "within"),
        ([1.0, 2.0], [1.0, 0.0], "positive"),
    ],
)
def test_lengths_must_be_a_distribution(values, weights, reason):
    with pytest.raises(InputError, match=reason):
        Lengths(np.array(values), np.array(weights))


def test_slices_keep_the_mean_and_the_order():
    rng = np.random.default_rng(1)
    values = rng.lognormal(6.0, 1.0, 10_000)
    weights = rng.uniform(0.5, 1.5, 10_000)
    weights /= weights.sum()
    kept, shares = summarised(values, weights, 16)
    assert kept.size == 16
    assert shares.sum() == pytest.approx(1.0)
    assert kept @ shares == pytest.approx(values @ weights)
    assert np.all(np.diff(kept) > 0)


def test_few_values_are_left_as_they_are():
    values, weights = np.array([3.0, 1.0]), np.array([0.25, 0.75])
    kept, shares = summarised(values, weights, 16)
    assert kept is values
    assert shares is weights
