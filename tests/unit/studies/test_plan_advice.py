from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.studies.plan import PlanQuestion, make_plan

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3",),
    acceptance="0.9",
    draft_lengths=(1, 2, 3),
    batches=(1, 128),
    context=1024,
)


def flags(**changes):
    plan = make_plan(replace(QUESTION, **changes))
    return [entry["longest_compared"] for entry in plan.recommendation], "longest draft compared" in plan.text


def test_a_draft_on_the_edge_of_those_compared_is_told():
    """At this acceptance longer drafts do gain more at batch 1."""
    best = {
        longest: make_plan(replace(QUESTION, draft_lengths=tuple(range(1, longest + 1)))).recommendation[0]
        for longest in (3, 16)
    }
    assert best[16]["draft_length"] > best[3]["draft_length"] == 3
    assert best[16]["speedup"] > best[3]["speedup"]
    assert flags()[0][0] is True
    assert flags()[1]
    assert flags(draft_lengths=tuple(range(1, 17))) == ([False, False], False)


@pytest.mark.parametrize(
    "changes",
    [
        {"draft_lengths": (3,)},  # nothing was compared
        {"draft_lengths": (0, 3)},
        {"drafters": ("eagle3:depth=3",)},  # drafts no other length
        {"target": "qwen3-8b", "drafters": ("dflash:qwen3-8b-dflash",), "draft_lengths": (3, 15)},  # nor more
        {"acceptance": "0.02"},  # does not speculate
    ],
)
def test_where_no_longer_draft_was_left_out_nothing_is_told(changes):
    assert flags(**changes) == ([False, False], False)


def test_what_does_not_fit_has_no_edge():
    assert flags(batches=(100_000,)) == ([None], False)


def test_widths_are_whole_and_shares_are_called_so():
    plan = make_plan(QUESTION)
    for row in plan.rows:
        assert row["verify_width"] == row["draft_length"] + 1
        assert isinstance(row["verify_width"], int)
        assert row["accepted_per_drafted"] == pytest.approx(
            (row["tokens_per_cycle"] - 1.0) / row["draft_length"]
        )
        assert "acceptance" not in row
    assert all(isinstance(entry["verify_width"], int) for entry in (*plan.recommendation, *plan.schedule))
