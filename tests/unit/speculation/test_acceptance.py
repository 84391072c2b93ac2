from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance


def test_a_length_of_0_is_plain_decoding():
    for acceptance in (Acceptance.constant(0.8), Acceptance.conditional_rates([0.8, 0.7])):
        assert acceptance.tokens_per_cycle(0) == 1.0
        assert acceptance.survival(0) == 1.0
        assert acceptance.survival_profile(0).shape == (0,)
        assert acceptance.length_probabilities(0).tolist() == [1.0]


def test_the_last_listed_rate_goes_on():
    acceptance = Acceptance.conditional_rates([0.9, 0.5])
    assert acceptance.conditional(np.array([1, 2, 3, 9])).tolist() == [0.9, 0.5, 0.5, 0.5]
    assert acceptance.tokens_per_cycle(4) == pytest.approx(1 + 0.9 + 0.45 + 0.225 + 0.1125)


def test_decay_goes_on_from_the_last_listed_rate_and_never_exceeds_1():
    assert Acceptance((0.9, 0.8), decay=0.5).conditional_profile(4).tolist() == [0.9, 0.8, 0.4, 0.2]
    assert Acceptance.decaying(0.8, 1.25).conditional_profile(3).tolist() == [0.8, 1.0, 1.0]
    assert Acceptance.decaying(0.8, 1.25).conditional(3) == 1.0


def test_alpha_0_and_1():
    assert Acceptance.constant(0.0).tokens_per_cycle(np.array([0, 1, 5])).tolist() == [1, 1, 1]
    assert Acceptance.constant(1.0).tokens_per_cycle(np.array([0, 1, 5])).tolist() == [1, 2, 6]


def test_results_are_floats_for_floats_and_arrays_for_arrays():
    acceptance = Acceptance.constant(0.8)
    assert isinstance(acceptance.tokens_per_cycle(4), float)
    assert isinstance(acceptance.survival(4), float)
    assert isinstance(Acceptance.conditional_rates([0.5]).conditional(2), float)
    assert acceptance.tokens_per_cycle(np.ones((2, 3))).shape == (2, 3)


def test_a_million_points_of_alpha_and_length_in_one_call():
    alpha = np.linspace(0, 1, 1000)[:, None]
    tokens = Acceptance.constant(alpha).tokens_per_cycle(np.arange(1000) % 16)
    assert tokens.shape == (1000, 1000)
    assert tokens[800, 4] == pytest.approx(sum(float(alpha[800, 0]) ** k for k in range(5)))


def test_profiles_carry_the_shape_of_the_rates_in_front():
    profile = Acceptance((np.array([0.5, 1.0]), 0.5)).survival_profile(3)
    assert profile.tolist() == [[0.5, 0.25, 0.125], [1.0, 0.5, 0.25]]


def test_what_was_measured():
    assert Acceptance.conditional_rates([0.8, 0.7]).measured_length == 2
    assert Acceptance.constant(0.8).measured_length is None
    assert Acceptance.constant(0.8, measured_length=3).is_extrapolated(np.array([3, 4])).tolist() == [
        False,
        True,
    ]
    assert Acceptance.conditional_rates([0.5]).is_constant
    assert not Acceptance.decaying(0.5, 0.9).is_constant


@pytest.mark.parametrize("alpha", [-0.1, 1.2, float("nan"), float("inf")])
def test_impossible_rates_are_refused(alpha):
    with pytest.raises(InputError, match=r"within 0\.\.1"):
        Acceptance.constant(alpha)
    with pytest.raises(InputError, match="position 2"):
        Acceptance.conditional_rates([0.5, alpha])
    with pytest.raises(InputError, match="position 1"):
        Acceptance.constant(np.array([0.5, alpha]))


@pytest.mark.parametrize("length", [-1, 1.5, float("nan"), float("inf")])
def test_impossible_lengths_are_refused(length):
    for acceptance in (Acceptance.constant(0.5), Acceptance.conditional_rates([0.5, 0.4])):
        for method in (acceptance.tokens_per_cycle, acceptance.survival, acceptance.survival_profile):
            with pytest.raises(InputError, match="whole number"):
                method(length)
    with pytest.raises(InputError, match="draft length is -1"):
        Acceptance.constant(0.5).tokens_per_cycle(np.array([3, -1]))


def test_positions_count_from_1():
    with pytest.raises(InputError, match="position is 0"):
        Acceptance.constant(0.5).conditional(0)


def test_empty_and_malformed_values_are_refused():
    with pytest.raises(InputError, match="empty"):
        Acceptance.conditional_rates([])
    with pytest.raises(InputError, match="decay"):
        Acceptance.decaying(0.5, -1.0)
    with pytest.raises(InputError, match="decay"):
        Acceptance.decaying(0.5, float("nan"))
    with pytest.raises(InputError, match="measured length"):
        Acceptance.constant(0.5, measured_length=0)
