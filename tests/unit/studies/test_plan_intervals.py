"""Intervals of a plan: shared errors drop out of a speedup, unmeasured devices are less sure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.studies.plan import PlanQuestion, make_plan
from rooflines.studies.plan_intervals import COLUMNS

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-70b",
    drafters=("independent:llama-3.2-1b",),
    acceptance="0.8",
    draft_lengths=(0, 2, 5),
    batches=(1, 64),
    context=2048,
    tensor_parallel=4,
)


def width(row, name, unit=""):
    """Ratio of the two ends of an interval, in logarithms."""
    return float(np.log(row[f"{name}_high{unit}"] / row[f"{name}_low{unit}"]))


@pytest.fixture(scope="module")
def plan():
    return make_plan(QUESTION)


def test_every_number_lies_within_its_ends(plan):
    for row in plan.rows:
        for name, unit in (
            ("target_step", "_s"),
            ("draft", "_s"),
            ("verify", "_s"),
            ("cycle_cost", ""),
            ("speedup", ""),
        ):
            assert row[f"{name}_low{unit}"] <= row[f"{name}{unit}"] <= row[f"{name}_high{unit}"], name


def test_plain_decoding_is_exactly_as_fast_as_itself(plan):
    row = plan.rows[0]
    assert row["draft_length"] == 0
    assert row["speedup_low"] == row["speedup_high"] == pytest.approx(1.0)
    assert row["target_step_low_s"] < row["target_step_high_s"]


def test_a_speedup_is_better_known_than_independent_times_would_make_it(plan):
    for row in plan.rows:
        if row["draft_length"]:
            independent = np.hypot(width(row, "verify", "_s"), width(row, "target_step", "_s"))
            assert 0.0 < width(row, "speedup") < 0.8 * independent


def test_cost_and_speedup_are_known_alike_since_acceptance_is_given(plan):
    for row in plan.rows[1:3]:
        assert width(row, "speedup") == pytest.approx(width(row, "cycle_cost"))


def test_a_device_by_the_medians_of_others_is_less_sure(plan):
    medians = make_plan(replace(QUESTION, calibration="none"))
    for own, other in zip(plan.rows, medians.rows, strict=True):
        assert width(other, "target_step", "_s") > width(own, "target_step", "_s")
        if own["batch"] == 64 and own["draft_length"]:
            assert width(other, "speedup") > 1.2 * width(own, "speedup")
    # Of one sequence, step and verify pass run the same kernels in one region, and what a device adds to all of
    # them drops out; what is left was measured to be alike: products scatter here as they do on other devices.
    assert width(medians.rows[2], "speedup") == pytest.approx(width(plan.rows[2], "speedup"), rel=0.05)


def test_the_textbook_states_nothing_and_so_has_no_intervals():
    plan = make_plan(replace(QUESTION, calibration="textbook"))
    assert {row[name] for row in plan.rows for name in COLUMNS} == {None}
    assert plan.recommendation[0]["certain"] is None
    assert "(" not in plan.text


def test_a_recommendation_says_whether_it_is_certain(plan):
    assert plan.recommendation[0]["certain"] is True
    even = plan.rows[1]["break_even_acceptance"]
    close = make_plan(replace(QUESTION, acceptance=f"{even + 0.01:.4f}", draft_lengths=(2,), batches=(1,)))
    (answer,) = close.recommendation
    assert answer["speedup_low"] < 1.0 < answer["speedup_high"]
    assert answer["certain"] is False
    assert "cannot be told" in close.text


def test_heads_and_lookups_have_intervals_too():
    plan = make_plan(replace(QUESTION, drafters=("eagle3", "ngram"), draft_lengths=(3,)))
    for row in plan.rows:
        assert width(row, "draft", "_s") > 0.0
        assert width(row, "speedup") > 0.0


def test_a_cycle_is_never_cheaper_than_a_step_and_few_shapes_tell_no_less_than_none():
    question = replace(
        QUESTION, hardware="b200-sxm-180gb", target="qwen3-30b-a3b", drafters=("eagle3",), tensor_parallel=1
    )
    measured, unmeasured = make_plan(question), make_plan(replace(question, calibration="none"))
    for own, other in zip(measured.rows, unmeasured.rows, strict=True):
        assert own["speedup_high"] <= own["tokens_per_cycle"] * (1 + 1e-12)
        assert own["cycle_cost_low"] >= 1.0 - 1e-12
        # Experts were measured on two sizes there, which alone would widen the ends to a factor of five each.
        # What is left is how far those two scatter, and that is a fifth more than medians are off elsewhere.
        assert width(own, "target_step", "_s") < 1.25 * width(other, "target_step", "_s")


def test_a_cycle_is_never_cheaper_than_a_step_and_its_draft():
    """A verify pass takes a plain step at least, so that hardly any acceptance cannot pay."""
    question = replace(
        QUESTION,
        target="llama-3.1-8b",
        drafters=("eagle3",),
        acceptance="0.03",
        draft_lengths=(1,),
        tensor_parallel=1,
        cycle_overhead="50 us",
    )
    plan = make_plan(question)
    for row, answer in zip(plan.rows, plan.recommendation, strict=True):
        certain = 1.0 + 0.8 * row["draft_s"] / row["target_step_s"]
        assert certain < row["cycle_cost_low"] <= row["cycle_cost"]
        assert row["speedup_high"] == pytest.approx(row["tokens_per_cycle"] / row["cycle_cost_low"])
        assert row["speedup_high"] < 1.0
        assert answer["certain"] is True
    assert plan.rows[0]["draft_s"] / plan.rows[0]["target_step_s"] > 0.03
