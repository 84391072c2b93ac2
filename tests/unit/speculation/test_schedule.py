from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.schedule import (
    ScheduleEntry,
    Steadiness,
    best_by_batch,
    schedule_draft_length,
    steady_by_batch,
)


def flat(batch, gamma):
    """Every draft length costs what plain decoding costs."""
    return np.ones(np.broadcast_shapes(np.shape(batch), np.shape(gamma)))


def test_a_schedule_shortens_with_batch_and_says_when_to_stop():
    def kappa(batch, gamma):
        return 1.0 + gamma * (0.02 + 0.01 * batch)

    entries = schedule_draft_length([1, 2, 4, 8, 16, 32, 64, 128], Acceptance.constant(0.7), kappa, 5)
    assert entries[0].first_batch == 1
    assert entries[-1] == ScheduleEntry(128, 128, 0, 1.0)
    assert [entry.choice for entry in entries] == sorted({e.choice for e in entries}, reverse=True)
    merged = [entry for entry in entries if entry.last_batch > entry.first_batch]
    for entry in merged:
        eta = float(Acceptance.constant(0.7).tokens_per_cycle(entry.choice)) / kappa(
            entry.last_batch, entry.choice
        )
        assert entry.speedup == pytest.approx(eta)


def test_equal_lengths_choose_the_shortest():
    entries = schedule_draft_length([1], Acceptance.constant(0.0), flat, 4)
    assert entries == (ScheduleEntry(1, 1, 0, 1.0),)


def test_equal_neighbours_are_merged_with_their_least_speedup():
    speedups = np.array([[1.0, 2.0], [1.0, 1.5], [1.2, 1.1], [1.0, 1.3]])
    assert best_by_batch([1, 2, 4, 8], speedups) == (
        ScheduleEntry(1, 2, 1, 1.5),
        ScheduleEntry(4, 4, 0, 1.2),
        ScheduleEntry(8, 8, 1, 1.3),
    )


STEADY = Steadiness(slack=0.1, shorter=0.01, longer=0.05)


def chosen(speedups, lengths, steadiness=STEADY, batches=None):
    given = np.asarray(speedups, dtype=float)
    rows = range(1, len(given) + 1) if batches is None else batches
    return [
        (entry.first_batch, lengths[entry.choice])
        for entry in steady_by_batch(rows, given, lengths, steadiness)
    ]


def test_a_short_gain_starts_no_range_and_a_long_one_does():
    """3 % over a fifteenth of a doubling is 0.2 % over a doubling; over five doublings it is 15 %."""
    batches = np.arange(1, 1025)
    edge = np.where((batches >= 256) & (batches < 268), 1.03, 0.95)
    assert chosen(np.stack([np.full(1024, 1.0), edge], axis=1), (2, 1)) == [(1, 2)]
    wide = np.where(batches >= 32, 1.03, 0.95)
    assert chosen(np.stack([np.full(1024, 1.0), wide], axis=1), (2, 1)) == [(1, 2), (32, 1)]


def test_a_longer_draft_must_gain_more_than_a_shorter_one():
    """3 % over one doubling: enough for a shorter draft, not for a longer one; 6 % is enough for both."""
    batches = np.arange(1, 33)
    for gain, lengths, starts in ((1.03, (3, 2), 2), (1.03, (2, 3), 1), (1.08, (3, 2), 2), (1.08, (2, 3), 2)):
        late = np.where(batches > 16, gain, 0.95)
        assert len(chosen(np.stack([np.ones(32), late], axis=1), lengths)) == starts


def test_what_loses_more_than_the_slack_is_chosen_at_no_batch():
    """A drop at one of a thousand batches costs next to nothing in all, and starts a range all the same."""
    batches = np.arange(1, 1025)
    drops = np.where(batches == 900, 0.85, 1.0)
    found = chosen(np.stack([drops, np.full(1024, 0.97)], axis=1), (2, 1))
    assert found == [(1, 2), (900, 1)]  # and stays: going back gains too little
    gentle = np.where(batches == 900, 0.91, 1.0)
    assert chosen(np.stack([gentle, np.full(1024, 0.97)], axis=1), (2, 1)) == [(1, 2)]


def test_a_choice_that_is_barred_is_left_there():
    speedups = [[1.0, 1.3], [1.0, -np.inf], [1.0, 1.005]]
    assert chosen(speedups, (0, 2)) == [(1, 2), (2, 0)]


def test_batches_count_by_doublings_however_many_are_given():
    """The same curve at every batch and at powers of two: one way to weigh them."""
    batches = np.arange(1, 257)
    speedups = np.stack([np.where(batches <= 16, 1.1, 1.0), np.full(256, 1.05)], axis=1)
    powers = 2 ** np.arange(9)
    assert chosen(speedups, (3, 1)) == [(1, 3), (17, 1)]
    assert chosen(speedups[powers - 1], (3, 1), batches=powers) == [(1, 3), (32, 1)]


def test_without_what_a_change_costs_every_batch_has_its_best():
    speedups = np.random.default_rng(5).uniform(1.0, 2.0, (20, 4))
    free = Steadiness(slack=0.5, shorter=0.0, longer=0.0)
    assert steady_by_batch(range(1, 21), speedups, (0, 1, 2, 3), free) == best_by_batch(
        range(1, 21), speedups
    )


@pytest.mark.parametrize(
    ("batches", "longest", "says"),
    [([], 3, "at least one batch"), ([4, 2], 3, "rising"), ([0], 3, "batch is 0"), ([1], -1, "longest")],
)
def test_malformed_input_is_refused(batches, longest, says):
    with pytest.raises(InputError, match=says):
        schedule_draft_length(batches, Acceptance.constant(0.5), flat, longest)


def test_steady_schedules_refuse_batches_that_do_not_rise():
    with pytest.raises(InputError, match="rising"):
        steady_by_batch([4, 2], np.ones((2, 1)), (0,), STEADY)
