from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.verify_length import StepTable, choose_verify_lengths


def test_positions_go_to_the_requests_whose_drafts_survive():
    survival = np.array([[0.9, 0.8, 0.7], [0.3, 0.1, 0.0]])
    choice = choose_verify_lengths(survival, lambda b: 1.0 / (1.0 + 0.2 * b), stop_early=False)
    assert choice.lengths.tolist() == [3, 0]
    assert choice.batch_tokens == 5
    assert choice.tokens_per_step == pytest.approx(2 + 0.9 + 0.8 + 0.7)


def test_free_verification_verifies_all_that_can_be_accepted():
    choice = choose_verify_lengths(np.array([[0.5, 0.25], [0.4, 0.0]]), np.ones_like, stop_early=True)
    assert choice.lengths.tolist() == [2, 1]


def test_equal_survival_still_gives_prefixes():
    choice = choose_verify_lengths(
        np.full((3, 4), 0.5), lambda b: np.where(b <= 6, 1.0, 0.1), stop_early=False
    )
    assert choice.lengths.sum() == 3
    assert choice.tokens_per_step == pytest.approx(3 + 1.5)


def test_drafts_of_no_length():
    choice = choose_verify_lengths(np.zeros((4, 0)), np.ones_like, stop_early=True)
    assert choice.lengths.tolist() == [0, 0, 0, 0]
    assert choice.batch_tokens == 4


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: choose_verify_lengths(np.array([0.5]), np.ones_like, stop_early=True), "a matrix"),
        (lambda: choose_verify_lengths(np.zeros((0, 3)), np.ones_like, stop_early=True), "a matrix"),
        (lambda: choose_verify_lengths(np.array([[1.5]]), np.ones_like, stop_early=True), "within 0..1"),
        (lambda: choose_verify_lengths(np.array([[0.5, 0.6]]), np.ones_like, stop_early=True), "rises"),
        (lambda: StepTable((), ()), "at least one size"),
        (lambda: StepTable((1, 2), (1.0,)), "one speed for each"),
        (lambda: StepTable((2, 1), (1.0, 1.0)), "rise"),
        (lambda: StepTable((0, 1), (1.0, 1.0)), "rise"),
        (lambda: StepTable((1,), (0.0,)), "above 0"),
        (lambda: StepTable((1, 4), (1.0, 0.5))(np.array([5])), "ends at 4"),
    ],
)
def test_malformed_input_is_refused(call, says):
    with pytest.raises(InputError) as refused:
        call()
    assert says in str(refused.value)
