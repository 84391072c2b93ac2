from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance_fit import fit_acceptance


def test_one_run_fixes_a_constant_exactly():
    fit = fit_acceptance([5], [3.1], "constant")
    assert fit.acceptance.tokens_per_cycle(5) == pytest.approx(3.1, rel=1e-6)
    assert fit.decay == 1.0
    assert fit.acceptance.measured_length == 5


def test_errors_are_signed_and_the_worst_is_a_size():
    fit = fit_acceptance([1, 8], [1.92, 3.11], "constant")
    assert fit.relative_errors[0] < 0 < fit.relative_errors[1]
    assert fit.worst_relative_error == max(-fit.relative_errors[0], fit.relative_errors[1])


def test_two_runs_fix_two_parameters():
    fit = fit_acceptance([3, 7], [3.02, 3.94], "decaying")
    assert fit.worst_relative_error < 1e-6


def test_limits_of_the_parameters_are_reached():
    assert fit_acceptance([1, 4], [2.0, 5.0], "decaying").acceptance.tokens_per_cycle(4) == pytest.approx(5.0)
    assert fit_acceptance([1, 4], [1.0, 1.0], "constant").alpha == 0.0


@pytest.mark.parametrize(
    ("gammas", "lengths", "form", "says"),
    [
        ([], [], "constant", "one accepted length"),
        ([1, 2], [1.5], "constant", "one accepted length"),
        ([3], [2.0], "decaying", "measure a second"),
        ([3, 3], [2.0, 2.1], "decaying", "measure a second"),
        ([3], [4.1], "constant", "within 1..4"),
        ([3], [0.5], "constant", "within 1..4"),
        ([0], [1.0], "constant", "whole number of 1"),
        ([1.5], [1.2], "constant", "whole number"),
    ],
)
def test_impossible_runs_are_refused(gammas, lengths, form, says):
    with pytest.raises(InputError) as refused:
        fit_acceptance(gammas, lengths, form)
    assert says in str(refused.value)
