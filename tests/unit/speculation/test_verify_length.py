from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.verify_length import (
    ScheduleEntry,
    StepTable,
    choose_verify_lengths,
    marginal_value,
    schedule_draft_length,
    tokens_when_verifying,
)


def flat(batch, gamma):
    """Every draft length costs what plain decoding costs."""
    return np.ones(np.broadcast_shapes(np.shape(batch), np.shape(gamma)))


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


def test_a_block_of_16_of_which_8_are_verified():
    # z-lab/dflash issue 10: draft 16, verify 8 at high concurrency.
    acceptance = Acceptance.constant(0.9)
    assert tokens_when_verifying(acceptance, 15, 7) == acceptance.tokens_per_cycle(7)
    several = tokens_when_verifying(acceptance, np.array([[7], [15]]), np.array([3, 7]))
    assert several.shape == (2, 2)
    with pytest.raises(InputError, match="exceeds the draft length"):
        tokens_when_verifying(acceptance, 7, 15)


def test_marginal_value_by_hand():
    value = marginal_value(Acceptance.conditional_rates([0.8, 0.5]), np.array([1.0, 1.2, 1.5]))
    assert value.tokens == pytest.approx([0.8, 0.4])
    assert value.cost == pytest.approx([0.2, 0.3])
    assert value.speedup == pytest.approx([1.8 / 1.2, 2.2 / 1.5])
    assert value.pays.tolist() == [True, False]


def test_marginal_value_over_batches():
    kappa = 1.0 + np.array([[0.05], [0.6]]) * np.arange(5)
    value = marginal_value(Acceptance.constant(0.7), kappa)
    assert value.speedup.shape == (2, 4)
    assert value.pays[0].sum() > value.pays[1].sum()


def test_a_schedule_shortens_with_batch_and_says_when_to_stop():
    def kappa(batch, gamma):
        return 1.0 + gamma * (0.02 + 0.01 * batch)

    entries = schedule_draft_length([1, 2, 4, 8, 16, 32, 64, 128], Acceptance.constant(0.7), kappa, 5)
    assert entries[0].first_batch == 1
    assert entries[-1] == ScheduleEntry(128, 128, 0, 1.0)
    assert [entry.draft_length for entry in entries] == sorted(
        {e.draft_length for e in entries}, reverse=True
    )
    merged = [entry for entry in entries if entry.last_batch > entry.first_batch]
    for entry in merged:
        eta = float(Acceptance.constant(0.7).tokens_per_cycle(entry.draft_length)) / kappa(
            entry.last_batch, entry.draft_length
        )
        assert entry.speedup == pytest.approx(eta)


def test_equal_lengths_choose_the_shortest():
    entries = schedule_draft_length([1], Acceptance.constant(0.0), flat, 4)
    assert entries == (ScheduleEntry(1, 1, 0, 1.0),)


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
        (lambda: marginal_value(Acceptance.constant(0.5), np.array([1.0, 0.0])), "above 0"),
        (lambda: marginal_value(Acceptance.constant(0.5), np.array(1.0)), "an array"),
        (
            lambda: schedule_draft_length([], Acceptance.constant(0.5), flat, 3),
            "at least one batch",
        ),
        (lambda: schedule_draft_length([4, 2], Acceptance.constant(0.5), flat, 3), "rising"),
        (lambda: schedule_draft_length([0], Acceptance.constant(0.5), flat, 3), "batch is 0"),
        (lambda: schedule_draft_length([1], Acceptance.constant(0.5), flat, -1), "longest"),
    ],
)
def test_malformed_input_is_refused(call, says):
    with pytest.raises(InputError) as refused:
        call()
    assert says in str(refused.value)
