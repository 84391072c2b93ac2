from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.measurement.speculation.drafters import PromptLookup, find_continuation


@pytest.mark.parametrize(
    ("tokens", "length", "found"),
    [
        ([1, 2, 3, 9, 1, 2, 3], 2, [9, 1]),
        ([1, 2, 3, 9, 1, 2, 3], 9, [9, 1, 2, 3]),  # all that follows, though shorter than asked
        ([1, 2, 3, 9, 7, 2, 3, 8, 1, 2, 3], 1, [9]),  # the longest match, not the latest
        ([5, 3, 6, 3, 7, 3], 1, [6]),  # of equally long ones the first
        ([4, 4], 3, [4]),
        ([1, 2, 3], 3, []),
        ([1], 3, []),
    ],
)
def test_what_followed_the_same_words(tokens, length, found):
    assert find_continuation(np.array(tokens), length, 3, 1).tolist() == found


def test_short_matches_may_be_refused():
    tokens = np.array([5, 3, 6, 3])
    assert find_continuation(tokens, 1, 3, 1).tolist() == [6]
    assert find_continuation(tokens, 1, 3, 2).tolist() == []


def _slowly(tokens, length, longest, shortest):
    for size in range(longest, shortest - 1, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[len(tokens) - size :]:
                return tokens[start + size : start + size + length]
    return []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25), st.integers(1, 6), st.integers(1, 4))
def test_it_is_what_a_plain_search_finds(tokens, length, longest):
    found = find_continuation(np.array(tokens), length, longest, 1).tolist()
    assert found == _slowly(tokens, length, longest, 1)


def test_the_drafter_is_certain_of_what_it_copies():
    drafter = PromptLookup()
    draft = drafter.draft(np.array([7, 8, 7]), 4)
    assert (draft.tokens.tolist(), draft.probabilities) == ([8, 7], None)
    assert drafter.rehearse(np.array([7, 8, 7]), 4) == 4
