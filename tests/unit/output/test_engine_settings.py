"""From a plan to advice: one drafter, its ranges, its tree and its costs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.models.catalogue import load_preset
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
    assert advice.target == "meta-llama/Llama-3.1-8B"
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
    file.write_text(json.dumps(load_preset("llama-3.1-8b")), encoding="utf-8")
    advice = advice_of(replace(plan, question=replace(QUESTION, target=str(file))))
    assert (advice.target, advice.notes) == (str(file), ())


@pytest.mark.parametrize(
    ("typed", "written", "config_of"),
    [
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B", None),
        ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B", None),
        ("llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("NousResearch/Llama-3.1-8B-Instruct", "NousResearch/Llama-3.1-8B-Instruct", None),
    ],
)
def test_an_ending_that_was_typed_is_kept_and_what_was_not_typed_is_said(plan, typed, written, config_of):
    advice = advice_of(replace(plan, question=replace(QUESTION, target=typed)))
    assert advice.target == written
    expected = f"{written} is written for {typed}, with the config of {config_of}"
    assert bool(config_of) == any(expected in note for note in advice.notes)


def test_a_repository_of_another_name_is_checked_by_whoever_pastes_it(plan):
    advice = advice_of(replace(plan, question=replace(QUESTION, target="qwen3-30b-a3b")))
    assert advice.target == "Qwen/Qwen3-30B-A3B-Instruct-2507"
    assert "written for qwen3-30b-a3b" in advice.notes[0]


def test_a_drafter_is_named_as_a_target_is(plan):
    typed = "independent:Llama-3.2-1B-Instruct"
    rows = [{**row, "drafter": typed} for row in plan.rows]
    memory = [{**row, "drafter": typed} for row in plan.memory]
    schedule = [entry(1, 64, typed, 2)]
    advice = advice_of(replace(plan, rows=rows, memory=memory, schedule=schedule))
    assert advice.model == "meta-llama/Llama-3.2-1B-Instruct"
    assert any("meta-llama/Llama-3.2-1B:" in note for note in advice.notes)


SERVED = replace(
    QUESTION,
    target="deepseek-v3",
    drafters=("mtp",),
    hardware="h200-sxm-141gb",
    tensor_parallel=8,
    expert_parallel=8,
    kv_dtype="fp8_e4m3",
    memory_reserve=0.2,
)


def test_the_target_is_served_as_it_was_planned():
    answer = make_plan(SERVED)
    served = advice_of(answer).served
    assert (served.tensor_parallel, served.expert_parallel) == (8, 8)
    assert (served.checkpoint_dtype, served.weight_dtype, served.kv_dtype) == (
        "fp8-block",
        "fp8-block",
        "fp8",
    )
    assert (served.memory_reserve, served.asked_batch) == (0.2, 64)
    assert served.largest_batch == answer.schedule[-1]["last_batch"]
    assert served.positions == 2048 + max(entry["draft_length"] for entry in answer.schedule) + 1
    memory = answer.memory[0]
    beside = memory["capacity_bytes"] - memory["weights_bytes"] - memory["drafter_weights_bytes"]
    assert served.cache_share * beside == pytest.approx(beside - 0.2 * memory["capacity_bytes"])


def test_a_format_that_was_asked_for_is_told_from_that_of_the_checkpoint(plan):
    asked = advice_of(replace(plan, question=replace(QUESTION, weight_dtype="int4"))).served
    assert (asked.checkpoint_dtype, asked.weight_dtype) == ("bf16", "int4-g128")


def test_a_batch_that_does_not_fit_has_no_slot():
    answer = make_plan(replace(QUESTION, batches=(1, 8, 100_000)))
    assert advice_of(answer).served.asked_batch == 8


def test_a_module_that_the_target_has_not_starts_nowhere():
    answer = make_plan(replace(QUESTION, drafters=("mtp",)))
    assert any("llama-3.1-8b ships no MTP module" in note for note in answer.warnings)
    with pytest.raises(InputError, match=r"llama-3\.1-8b ships no MTP module"):
        engine_settings(answer, "vllm")
    own = make_plan(replace(SERVED, batches=(1,)))
    assert not any("MTP" in note for note in own.warnings)
    assert '"method": "mtp"' in engine_settings(own, "vllm")


def test_where_the_schedule_is_not_the_best_it_says_what_that_loses(plan):
    drafter = QUESTION.drafters[0]
    other = advice_of(replace(plan, schedule=[entry(1, 200, drafter, 2)]))
    best = {row["batch"]: row for row in plan.recommendation}
    rows = {(row["batch"], row["draft_length"]): row["speedup"] for row in plan.rows}
    for batch in (1, 64):
        length = best[batch]["draft_length"]
        told = f"at batch {batch} 2 ({rows[batch, 2]:.3g} x; best {length}, {best[batch]['speedup']:.3g} x)"
        assert (length != 2) == any(told in note for note in other.notes)
    assert any(best[batch]["draft_length"] != 2 for batch in (1, 64))
    same = [entry(row["batch"], row["batch"], drafter, row["draft_length"]) for row in plan.recommendation]
    same[0] = {**same[0], "last_batch": 63}
    assert advice_of(replace(plan, schedule=same)).notes == ()


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


TREES = replace(
    QUESTION,
    hardware="b200-sxm-180gb",
    target="qwen3-8b",
    drafters=("eagle3:topk=10,nodes=59",),
    acceptance="sequoia:0.6,0.2,0.08",
    draft_lengths=(6,),
    batches=(1, 32),
    best_tree=True,
)


def test_of_best_trees_that_of_the_largest_batch_that_pays_is_written_and_the_others_are_told():
    answer = make_plan(TREES)
    first, last = answer.best_trees
    assert first["nodes"] > last["nodes"]
    advice = advice_of(answer)
    assert (advice.single, advice.nodes) == (last["draft_length"], last["nodes"])
    text = engine_settings(answer, "sglang")
    assert f"--speculative-num-draft-tokens {last['nodes'] + 1}" in text
    assert f"# The tree is the best at batch 32; at batch 1 6 deep, {first['nodes']} nodes is." in text
    lengths = [one.draft_length for one in advice.ranges]
    assert all(one != other for one, other in pairwise(lengths))
    alone = advice_of(make_plan(replace(TREES, batches=(1,))))
    assert alone.nodes == first["nodes"]
    assert not any("The tree is" in note for note in alone.notes)


def test_lengths_beyond_what_was_measured_are_told():
    beyond = make_plan(replace(QUESTION, acceptance="conditional:0.9,0.9"))
    told = "# Acceptance was given for 2 drafted positions: longer drafts rest on its last rate, carried on."
    assert told in engine_settings(beyond, "vllm").splitlines()
    within = make_plan(replace(QUESTION, acceptance="conditional:0.9,0.9", draft_lengths=(2,)))
    assert "Acceptance was given" not in engine_settings(within, "vllm")
