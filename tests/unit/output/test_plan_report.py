"""The figure of a plan."""

from __future__ import annotations

import pytest

from rooflines.output.figures.style import figure_style
from rooflines.output.plan_report import plan_figure
from rooflines.studies.plan import PlanQuestion, make_plan


@pytest.fixture(scope="module")
def plan():
    return make_plan(
        PlanQuestion(
            hardware="h100-sxm5-80gb",
            target="llama-3.1-8b",
            drafters=("eagle3:topk=10,nodes=59", "dflash"),
            acceptance=("eagle3=0.75", "dflash=0.8"),
            draft_lengths=(2, 4),
            batches=(1, 64),
            context=2048,
        )
    )


@pytest.fixture(scope="module")
def figure(plan):
    with figure_style():
        return plan_figure(plan)


def test_its_title_names_every_drafter_with_its_own_acceptance(figure):
    assert figure._suptitle.get_text().splitlines() == [
        "llama-3.1-8b on 1 x h100-sxm5-80gb, context 2048",
        "drafting: eagle3:topk=10,nodes=59, acceptance 0.75",
        "drafting: dflash, acceptance 0.8",
    ]


def test_every_drafter_is_drawn_up_to_the_largest_batch_that_fits(plan, figure):
    (last,) = [axis for axis in figure.axes if axis.get_xscale() == "log"]
    lines = {line.get_label(): line.get_xdata() for line in last.lines}
    for row in plan.memory:
        drawn = lines[row["drafter"]]
        assert max(drawn) == row["largest_batch"]
        assert {1, 2, 4, 8, 16, 32, 64, 128} <= set(drawn)


def test_the_end_of_each_drafter_is_the_one_that_the_plan_states(plan, figure):
    (last,) = [axis for axis in figure.axes if axis.get_xscale() == "log"]
    ends = [entry["batch"] for entry in plan.crossovers if entry["batch"] is not None]
    assert ends
    assert [text.get_text().strip() for text in last.texts] == [f"stops paying at {end}" for end in ends]
