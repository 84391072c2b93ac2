"""From a plan to advice: one drafter, its ranges, its tree and its costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.output.engine_settings import advice_of, engine_settings, split_drafter
from rooflines.studies.plan import PlanQuestion, make_plan

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("independent:llama-3.2-1b",),
    acceptance="0.8",
    draft_lengths=(2, 4),
    batches=(1, 64),
    context=2048,
    calibration="textbook",
)


@pytest.fixture(scope="module")
def plan():
    return make_plan(QUESTION)


def entry(first, last, drafter, draft_length):
    return {
        "first_batch": first,
        "last_batch": last,
        "drafter": drafter,
        "draft_length": draft_length,
        "speedup": 1.5,
    }


def test_advice_repeats_the_schedule_and_prices_cycles_as_the_plan_does(plan):
    advice = advice_of(plan)
    assert (advice.family, advice.model) == ("independent", "meta-llama/Llama-3.2-1B")
    assert (advice.target, advice.tensor_parallel) == ("meta-llama/Llama-3.1-8B", 1)
    assert [(one.first, one.last, one.draft_length) for one in advice.ranges] == [
        (row["first_batch"], row["last_batch"], row["draft_length"]) for row in plan.schedule
    ]
    assert [(cost.batch, cost.draft_length, cost.verify_width) for cost in advice.costs] == [
        (1, 2, 3),
        (1, 4, 5),
        (64, 2, 3),
        (64, 4, 5),
    ]
    for cost, row in zip(advice.costs, plan.rows, strict=True):
        assert cost.seconds == pytest.approx(row["cycle_cost"] * row["target_step_s"])


@pytest.mark.parametrize("batches", [(1,), (160,), (1, 160), (40, 160)])
def test_one_length_for_all_batches_is_the_best_of_those_asked_for(batches):
    answer = make_plan(replace(QUESTION, batches=batches, draft_lengths=(1, 2, 4, 8), acceptance="0.6"))
    worth = {0: 1.0}
    for length in (1, 2, 4, 8):
        speedups = [row["speedup"] for row in answer.rows if row["draft_length"] == length]
        worth[length] = np.prod(speedups)
    assert advice_of(answer).single == max(worth, key=worth.get)


def test_lengths_asked_for_at_other_batches_differ():
    singles = [
        advice_of(make_plan(replace(QUESTION, batches=(batch,), draft_lengths=(1, 2, 4, 8)))).single
        for batch in (1, 160)
    ]
    assert singles[0] > singles[1]


def test_where_no_batch_asked_for_fits_the_schedule_says_what_one_length_is():
    answer = make_plan(replace(QUESTION, batches=(100_000,)))
    assert answer.schedule
    assert advice_of(answer).single == answer.schedule[0]["draft_length"] > 0


@pytest.mark.parametrize(
    ("target", "drafter", "loaded", "draft"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "independent:llama-3.2-1b", None, "meta-llama/Llama-3.2-1B"),
        ("qwen3-8b", "eagle3:qwen3-8b-eagle3", "Qwen/Qwen3-8B", None),  # a config of a head, no checkpoint
        ("qwen3-8b", "ngram", "Qwen/Qwen3-8B", None),
    ],
)
def test_presets_are_the_repositories_that_they_were_read_from(target, drafter, loaded, draft):
    advice = advice_of(make_plan(replace(QUESTION, target=target, drafters=(drafter,))))
    assert (advice.target, advice.model) == (loaded or target, draft)


def test_a_file_is_what_was_typed(tmp_path, plan):
    file = tmp_path / "config.json"
    file.write_text("{}", encoding="utf-8")
    advice = advice_of(replace(plan, question=replace(QUESTION, target=str(file), tensor_parallel=4)))
    assert (advice.target, advice.tensor_parallel) == (str(file), 4)


def test_an_engine_runs_one_drafter(plan):
    two = [entry(1, 8, "independent:llama-3.2-1b", 4), entry(9, 64, "ngram", 2)]
    with pytest.raises(InputError, match=r"independent:llama-3\.2-1b, ngram"):
        engine_settings(replace(plan, schedule=two), "vllm")


def test_plain_decoding_everywhere_needs_no_settings(plan):
    text = engine_settings(replace(plan, schedule=[entry(1, 64, None, 0)]), "vllm")
    assert text.startswith("# Plain decoding")


def test_what_does_not_fit_has_no_settings(plan):
    with pytest.raises(InputError, match="fits in memory"):
        engine_settings(replace(plan, schedule=[]), "vllm")


@pytest.mark.parametrize(
    ("drafter", "depths", "nodes"),
    [
        ("eagle3:topk=10,nodes=59", (1, 6), 59),  # one level has no more than 10, six have all 59
        ("eagle2", (1, 6), 59),  # a tree by default
    ],
)
def test_trees_are_as_wide_as_at_the_depth_that_is_written(drafter, depths, nodes):
    answer = make_plan(replace(QUESTION, drafters=(drafter,), draft_lengths=depths, batches=(1,)))
    at_six = replace(answer, schedule=[entry(1, 8, drafter, 6)])
    advice = advice_of(at_six)
    assert (advice.top_k, advice.nodes) == (10, nodes)
    assert "--speculative-num-draft-tokens 60" in engine_settings(at_six, "sglang")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("mtp", ("mtp", None, {})),
        ("independent:llama-3.2-1b", ("independent", "llama-3.2-1b", {})),
        (
            "eagle3:yuhuili/EAGLE3,topk=10,nodes=59",
            ("eagle3", "yuhuili/EAGLE3", {"topk": "10", "nodes": "59"}),
        ),
        ("dflash:block=16", ("dflash", None, {"block": "16"})),
    ],
)
def test_names_of_drafters_are_taken_apart(text, parts):
    assert split_drafter(text) == parts
