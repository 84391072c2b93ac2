from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.schedule import ScheduleEntry, best_by_batch, schedule_draft_length


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


def test_a_gain_within_the_slack_starts_no_range_and_one_beyond_it_does():
    speedups = np.array([[2.0, 1.99], [1.99, 2.0], [2.0, 1.99], [1.9, 2.0]])
    assert len(best_by_batch([1, 2, 3, 4], speedups)) == 4
    assert best_by_batch([1, 2, 3, 4], speedups, 0.01) == (ScheduleEntry(1, 4, 1, 1.99),)
    assert best_by_batch([1, 2, 3, 4], speedups, 0.004) == best_by_batch([1, 2, 3, 4], speedups)


def test_ranges_meet_where_the_least_is_lost():
    falling = np.array([2.0, 2.0, 2.0, 1.97, 1.95, 1.8])
    steady = np.array([1.8, 1.98, 1.99, 1.98, 1.96, 1.95])
    met = best_by_batch(range(1, 7), np.stack([falling, steady], axis=1), 0.02)
    assert met == (ScheduleEntry(1, 3, 0, 2.0), ScheduleEntry(4, 6, 1, 1.95))


def test_what_may_not_be_chosen_is_in_no_range():
    speedups = np.array([[1.0, 1.3], [1.0, -np.inf], [1.0, 1.005]])
    entries = best_by_batch([1, 2, 3], speedups, 0.01)
    assert entries == (ScheduleEntry(1, 1, 1, 1.3), ScheduleEntry(2, 3, 0, 1.0))


@pytest.mark.parametrize(
    ("batches", "longest", "says"),
    [([], 3, "at least one batch"), ([4, 2], 3, "rising"), ([0], 3, "batch is 0"), ([1], -1, "longest")],
)
def test_malformed_input_is_refused(batches, longest, says):
    with pytest.raises(InputError, match=says):
        schedule_draft_length(batches, Acceptance.constant(0.5), flat, longest)
