from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.studies.plan import PlanQuestion, make_plan
from rooflines.studies.plan_realities import memory_bound_widths
from rooflines.studies.serve import make_deployment, make_machine

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3", "dflash"),
    acceptance="decay:0.8,0.93",
    draft_lengths=(1, 2, 3, 4, 5, 6),
    batches=(1, 32, 128),
    context=1024,
    calibration="textbook",
    explain=True,
)


@pytest.fixture(scope="module")
def plan():
    return make_plan(QUESTION)


def test_each_row_is_that_of_the_best_draft(plan):
    assert len(plan.realities) == 2 * 3
    for why in plan.realities:
        rows = [r for r in plan.rows if (r["drafter"], r["batch"]) == (why["drafter"], why["batch"])]
        best = max(rows, key=lambda row: row["speedup"])
        assert (why["draft_length"], why["verify_width"]) == (best["draft_length"], best["verify_width"])
        assert why["verify_cost"] + why["draft_cost"] == pytest.approx(best["cycle_cost"])
        assert why["draft_share"] == pytest.approx(why["draft_cost"] / best["cycle_cost"])


def test_accepted_lost_and_wrong_tokens_are_all_that_were_drafted(plan):
    for why in plan.realities:
        drafted = why["accepted"] + why["lost_to_prefix"] + why["wrong"]
        assert drafted == pytest.approx(why["draft_length"])
        assert why["lost_to_prefix"] > 0


def test_memory_stops_binding_where_the_bound_says_so():
    """Against the bound of single passes on both sides of the edge."""
    target = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))
    batches = [1, 8, 32, 128]
    widths = memory_bound_widths(target, batches, 1024.0)
    assert widths == sorted(widths, reverse=True)
    for batch, width in zip(batches, widths, strict=True):
        assert target.verify(float(batch), 1024.0, float(width)).bound == "memory"
        assert target.verify(float(batch), 1024.0, width + 1.0).bound == "compute"


def test_a_device_of_few_flops_a_byte_ends_early_and_experts_late():
    """H20 has a ridge near 37 FLOP/byte; 512 positions leave 16 rows to each of DeepSeek-V3's experts."""
    few = make_deployment("qwen2.5-7b", make_machine("h20-96gb", "textbook"))
    assert memory_bound_widths(few, [1], 0.0)[0] < 60
    experts = make_deployment("deepseek-v3", make_machine("h200-sxm-141gb", "textbook"), tensor=8)
    assert memory_bound_widths(experts, [1], 0.0) == [None]


def test_what_a_token_adds_is_the_difference_of_two_drafts(plan):
    rows = {(r["drafter"], r["batch"], r["draft_length"]): r for r in plan.rows}
    assert len(plan.marginal) == len(rows)
    for one in plan.marginal:
        here = rows[one["drafter"], one["batch"], one["position"]]
        before = rows.get((one["drafter"], one["batch"], one["position"] - 1))
        assert one["speedup"] == pytest.approx(here["speedup"])
        assert one["speedup_gain"] == pytest.approx(here["speedup"] - (before["speedup"] if before else 1.0))
        assert one["tokens"] == pytest.approx(
            here["tokens_per_cycle"] - (before["tokens_per_cycle"] if before else 1.0)
        )


def test_the_best_draft_ends_with_the_last_token_that_gains(plan):
    for why in plan.realities:
        gains = [
            one["speedup_gain"]
            for one in plan.marginal
            if (one["drafter"], one["batch"]) == (why["drafter"], why["batch"])
        ]
        assert np.all(np.asarray(gains[: why["draft_length"]]) > 0)
        assert len(gains) == why["draft_length"] or gains[why["draft_length"]] <= 0


def test_a_tree_has_no_fate_of_single_tokens():
    tree = make_plan(replace(QUESTION, drafters=("eagle3:topk=4,nodes=16",), acceptance="0.7"))
    assert {why["wrong"] for why in tree.realities} == {None}
    assert all(why["accepted"] > 0 for why in tree.realities)


def test_what_does_not_fit_has_no_reasons():
    found = make_plan(replace(QUESTION, batches=(1, 4096)))
    assert {why["batch"] for why in found.realities} == {1}
    assert {one["batch"] for one in found.marginal} == {1}


def test_nothing_is_explained_unless_asked_for():
    plain = make_plan(replace(QUESTION, explain=False))
    assert (plain.realities, plain.marginal) == ([], [])


def test_launches_that_bind_the_smallest_passes_do_not_end_the_reach_of_memory():
    # A decode step of DeepSeek-V3 at batch 8 waits for its many kernels; wider passes read more experts.
    machine = make_machine("mi300x", "auto")
    target = make_deployment("deepseek-v3", machine, tensor=8)
    assert target.verify(8.0, 4096.0, 1.0).bound == "overhead"
    (width,) = memory_bound_widths(target, [8], 4096.0)
    assert width is not None
    assert target.verify(8.0, 4096.0, float(width)).bound == "memory"
    assert target.verify(8.0, 4096.0, float(width + 1)).bound != "memory"
