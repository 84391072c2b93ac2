from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.schedule import PLAIN, Schedule, parse_schedule

BATCHES = np.array([1.0, 16.0, 17.0, 64.0, 65.0])


def used(schedule):
    """The lengths allowed at each batch."""
    return [[schedule.lengths[k] for k in np.flatnonzero(row)] for row in schedule.allowed(BATCHES)]


def test_one_length_is_used_everywhere():
    assert parse_schedule("4") == Schedule((4,))
    assert used(parse_schedule("4")) == [[4]] * 5


def test_several_lengths_compete_at_every_batch():
    assert parse_schedule("0..2,5").lengths == (0, 1, 2, 5)
    assert used(parse_schedule("2,0")) == [[0, 2]] * 5


def test_a_ladder_gives_one_length_to_each_range_of_batches():
    assert used(parse_schedule("4@16, 2@64, 0")) == [[4], [4], [2], [2], [0]]


@pytest.mark.parametrize(
    "text", ["", "four", "-1", "5..2", "4@16", "4@16,2@8,0", "4@0,1", "0..999999", "4@16,2..3", "9999@4,0"]
)
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(InputError, match="draft length"):
        parse_schedule(text)


def test_a_drafter_that_cannot_draft_all_lengths():
    assert parse_schedule("0..8").limited_to((0, 1, 2)).lengths == (0, 1, 2)
    assert parse_schedule("2@9,0").limited_to((0, 1, 2)) == parse_schedule("2@9,0")
    with pytest.raises(InputError, match="draft length 4"):
        parse_schedule("4@9,0").limited_to((0, 1, 2))


def test_plain_decoding_is_a_schedule():
    assert used(PLAIN) == [[0]] * 5
