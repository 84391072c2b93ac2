from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.models.readers import read_model
from rooflines.speculation.acceptance import Acceptance
from rooflines.studies.explore import expert_degrees, explore, possible_drafters
from rooflines.studies.plan import PlanQuestion, make_plan, narrowed, plan_for, served_target

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("independent:llama-3.2-1b", "ngram:host=20us"),
    acceptance=("independent=0.8", "ngram=0.3"),
    draft_lengths=(1, 2, 3, 4),
    batches=(8,),
    context=1024,
)


def same(one, other):
    """Equal documents, numbers up to the rounding of arrays of other lengths."""
    if isinstance(other, dict):
        assert one.keys() == other.keys()
        for key in other:
            same(one[key], other[key])
    elif isinstance(other, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    elif isinstance(other, float):
        assert one == pytest.approx(other, rel=1e-9)
    else:
        assert one == other


@pytest.fixture(scope="module")
def view():
    return explore(QUESTION, 3)


def test_the_plan_is_the_one_that_the_command_line_answers(view):
    same(view.plan.document(), make_plan(QUESTION).document())


def test_lines_along_draft_lengths_are_the_rows_of_the_plan(view):
    for line in view.by_length:
        rows = [row for row in view.plan.rows if row["drafter"] == line.drafter]
        assert line.x == tuple(row["draft_length"] for row in rows)
        np.testing.assert_allclose(line.speedup, [row["speedup"] for row in rows], rtol=1e-12)
        np.testing.assert_allclose(line.low, [row["speedup_low"] for row in rows], rtol=1e-12)


def test_lines_along_batches_take_the_best_draft_length_and_end_where_memory_does(view):
    for line in view.by_batch:
        room = next(row["largest_batch"] for row in view.plan.memory if row["drafter"] == line.drafter)
        assert line.x[-1] <= room < 2 * line.x[-1]
        batch = line.x[3]
        rows = [
            row
            for row in make_plan(replace(QUESTION, batches=(batch,))).rows
            if row["drafter"] == line.drafter
        ]
        best = max(rows, key=lambda row: row["speedup"])
        assert line.draft_length[3] == best["draft_length"]
        assert line.speedup[3] == pytest.approx(best["speedup"], rel=1e-12)


def test_intervals_hold_the_speedup_and_are_empty_of_the_textbook(view):
    for line in (*view.by_length, *view.by_batch):
        assert line.low is not None
        assert all(low < at < high for low, at, high in zip(line.low, line.speedup, line.high, strict=True))
    textbook = explore(replace(QUESTION, calibration="textbook"), 3)
    assert all(line.low is None and line.high is None for line in textbook.by_length)


def test_a_plan_of_several_batches_holds_that_of_each():
    asked = replace(QUESTION, batches=(1, 8, 64), explain=True, adaptive_verify=True)
    target = served_target(asked)
    wide = plan_for(asked, target)
    for batch in asked.batches:
        alone = plan_for(replace(asked, batches=(batch,)), target)
        same(narrowed(wide, target, batch).document(), alone.document())


def test_the_map_breaks_even_where_the_plan_does(view):
    for one in view.maps:
        row = next(row for row in view.cycles if row["drafter"] == one.drafter)
        alpha = np.asarray(one.acceptance)
        at_one = np.asarray(one.cost_ratios[1.0])
        # On the line of break-even at the drafter's own cost ratio lies the plan's break-even acceptance.
        found = np.interp(row["cost_ratio"], at_one, alpha)
        assert found == pytest.approx(row["break_even_acceptance"], abs=2e-2)
        assert one.here == pytest.approx(
            (
                float(QUESTION.acceptance[0].split("=")[1]) if "independent" in one.drafter else 0.3,
                row["cost_ratio"],
            ),
            rel=1e-6,
        )
        assert one.speedup == pytest.approx(row["speedup"])


def test_a_line_of_the_map_has_its_speedup_everywhere(view):
    one, row = view.maps[0], view.cycles[0]
    rest = (row["verify_s"] + row["overhead_s"]) / row["target_step_s"]
    tau = np.asarray(Acceptance.constant(np.asarray(one.acceptance)).tokens_per_cycle(3.0))
    for level, costs in one.cost_ratios.items():
        np.testing.assert_allclose(tau / (3 * np.asarray(costs) + rest), level, rtol=1e-9)


@pytest.mark.parametrize("drafter", ["independent:llama-3.2-1b", "eagle2"])
def test_the_map_knows_how_much_of_a_draft_is_verified(drafter):
    asked = replace(QUESTION, drafters=(drafter,), acceptance="0.8", verify_length=2)
    view = explore(asked, 4)
    (one,), (row,) = view.maps, view.cycles
    tree = row["verify_width"] > 5
    assert tree == (drafter == "eagle2")
    alpha, cost_ratio = one.here
    tau = float(np.asarray(Acceptance.constant(alpha).tokens_per_cycle(4.0 if tree else 2.0)))
    assert alpha == pytest.approx(0.8, rel=1e-6)
    assert tau == pytest.approx(row["tokens_per_cycle"])
    lines = sorted(one.cost_ratios)
    # The drafter lies between the lines of speedups around its own.
    at = {level: np.interp(alpha, one.acceptance, one.cost_ratios[level]) for level in lines}
    assert all((at[level] > cost_ratio) == (row["speedup"] > level) for level in lines)


def test_one_plan_serves_the_questions_of_a_slider(monkeypatch):
    asked = replace(QUESTION, acceptance="0.61")
    first = explore(asked, 3)

    def never(*_arguments):
        raise AssertionError("a plan was made again")

    monkeypatch.setattr("rooflines.studies.explore.plan_for", never)
    other = explore(replace(asked, batches=(16,)), 2)
    assert other.by_batch == first.by_batch
    assert [row["draft_length"] for row in other.cycles] == [2, 2]
    assert other.plan.question.batches == (16,)


def test_experts_are_spread_over_multiples_of_tp_that_divide_them():
    assert expert_degrees("llama-3.1-8b", 1) == ()
    assert expert_degrees("gpt-oss-20b", 1) == (1, 2, 4, 8, 16, 32)
    assert expert_degrees("deepseek-v3", 8) == (1, 8, 16, 32, 64, 128, 256)


def test_operators_add_up_to_their_pass_and_stay_below_the_roof(view):
    roof = view.roofs[0]
    for phase in ("decode", "prefill", "verify"):
        points = [point for point in view.operators if point.phase == phase]
        whole = next(point for point in points if point.operator == "whole pass")
        parts = [point for point in points if point is not whole]
        assert {"qkv projection", "attention", "head"} <= {point.operator for point in parts}
        assert sum(point.seconds for point in parts) <= whole.seconds
        for point in parts:
            bound = min(roof.peak_flop_per_s, point.intensity_flop_per_byte * roof.memory_bytes_per_s)
            assert point.attained_flop_per_s <= bound * (1 + 1e-9)


def test_without_context_nothing_prefills():
    view = explore(replace(QUESTION, context=0), 3)
    assert {point.phase for point in view.operators} == {"decode", "verify"}


def test_cycles_are_shown_at_the_draft_length_chosen_or_the_nearest(view):
    assert [row["draft_length"] for row in view.cycles] == [3, 3]
    longer = explore(replace(QUESTION, drafters=("medusa",), acceptance="0.6"), 9)
    assert longer.cycles[0]["draft_length"] == 4


def test_what_does_not_fit_has_no_speed_but_points_and_memory():
    view = explore(replace(QUESTION, target="llama-3.1-405b", drafters=("ngram",), acceptance="0.3"), 3)
    assert view.by_length == view.by_batch == view.maps == []
    assert view.operators
    assert not view.plan.memory[0]["fits"]


def test_a_model_that_was_read_already_stands_for_its_name():
    model = read_model("llama-3.1-8b", "mine")
    view = explore(replace(QUESTION, target="mine"), 3, model)
    assert view.plan.rows[0]["speedup"] == make_plan(QUESTION).rows[0]["speedup"]
    assert view.plan.text.startswith("mine on")


def test_possible_drafters_can_draft_and_weigh_less():
    found = possible_drafters(QUESTION)
    assert {"independent:llama-3.2-1b", "ngram", "eagle3:eagle3-llama3.1-8b", "medusa"} <= set(found)
    assert not {"independent:llama-3.1-70b", "independent:qwen3-0.6b", "eagle:eagle-llama2-7b"} & set(found)
    assert not [text for text in found if "vicuna" in text]
    for text in found[:4]:
        make_plan(replace(QUESTION, drafters=(text,), acceptance="0.5"))


def test_a_question_that_a_plan_refuses_is_refused():
    with pytest.raises(InputError, match="context"):
        explore(replace(QUESTION, context=-1), 3)
