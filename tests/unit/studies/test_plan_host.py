"""Host time of a plan: a time of one's own, or what is known of an engine, with its source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.engines.host import host_time
from rooflines.errors import InputError
from rooflines.studies.plan import PlanQuestion, make_plan, served_target
from rooflines.studies.plan_host import host_of, host_words

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3", "dflash"),
    acceptance="0.75",
    draft_lengths=(0, 3),
    batches=(1, 32),
    context=2048,
)

TARGET = served_target(QUESTION)


@pytest.fixture(scope="module")
def bare():
    return make_plan(QUESTION)


def test_a_time_is_that_of_a_cycle():
    given = host_of("1 ms", "eagle3", TARGET)
    assert (given.time.cycle_s, given.time.plain_s, given.stated) == (1e-3, 0.0, None)
    assert host_words([given]) == []


@pytest.mark.parametrize("engine", ["vllm", " vLLM", "sglang", "sglang-overlap", "transformers"])
def test_an_engine_is_named_with_its_source_and_basis(engine):
    given = host_of(engine, "independent:llama-3.2-1b", TARGET)
    (words,) = host_words([given])
    assert given.stated.source in words
    assert given.stated.basis in words
    assert words.startswith(f"host of {engine.strip().lower()}")


def test_of_several_times_the_one_measured_most_alike_is_taken():
    alone = host_of("sglang", "eagle3:depth=3", TARGET).stated
    split = host_of("sglang", "eagle3", served_target(replace(QUESTION, tensor_parallel=8))).stated
    assert (alone.ranks, split.ranks) == (1, 8)
    assert split.time.cycle_s > alone.time.cycle_s


@pytest.mark.parametrize("text", ["vlm", "3", "5 GB", "-1 ms"])
def test_what_is_neither_is_refused_with_both(text):
    with pytest.raises(InputError, match=r"host time per cycle: .* or name an engine: .*vllm"):
        host_of(text, "eagle3", TARGET)


def test_vllm_waits_between_plain_steps_as_between_cycles(bare):
    plan = make_plan(replace(QUESTION, cycle_overhead="vllm"))
    step_s = host_time("vllm").time.plain_s
    for one, other in zip(bare.rows, plan.rows, strict=True):
        assert other["target_step_s"] == pytest.approx(one["target_step_s"] + step_s)
        assert other["overhead_s"] == pytest.approx(step_s)
        assert other["speedup"] == pytest.approx(1.0) or other["speedup"] > one["speedup"]
    assert "SpecDecode-Bench/simulator" in plan.basis
    assert all(row["basis"] == plan.basis for row in plan.rows)


def test_each_drafter_has_what_was_measured_with_its_kind(bare):
    plan = make_plan(replace(QUESTION, cycle_overhead="sglang"))
    rows = {(row["drafter"], row["batch"]): row for row in plan.rows if row["draft_length"]}
    dflash, other = host_time("sglang", kind="dflash"), host_time("sglang", kind="eagle3")
    assert rows["eagle3", 32]["overhead_s"] == pytest.approx(other.time.cycle_s)
    assert rows["dflash", 32]["overhead_s"] == pytest.approx(
        dflash.time.cycle_s + 32 * dflash.time.sequence_s
    )
    assert dflash.source in plan.basis
    assert other.source in plan.basis
    assert plan.rows[0]["target_step_s"] == bare.rows[0]["target_step_s"]


def test_the_whole_search_has_the_host_in_it(bare):
    plan = make_plan(replace(QUESTION, drafters=("dflash",), cycle_overhead="sglang", draft_lengths=(3,)))
    best = {entry["first_batch"]: entry["speedup"] for entry in plan.schedule}
    alone = {entry["first_batch"]: entry["speedup"] for entry in bare.schedule}
    assert best[1] < alone[1]
    (row,) = [row for row in plan.rows if row["batch"] == 1]
    assert best[1] <= row["speedup"]


def test_extras_pay_the_host_too():
    asked = replace(
        QUESTION,
        drafters=("eagle3:topk=4,nodes=16", "eagle3"),
        acceptance="sequoia:0.7,0.1",
        draft_lengths=(1, 2, 3),
        best_tree=True,
        explain=True,
        adaptive_verify=True,
    )
    bare, slow = make_plan(asked), make_plan(replace(asked, cycle_overhead="20 ms"))
    for name in ("best_trees", "verify_budget", "marginal"):
        one, other = getattr(bare, name)[0], getattr(slow, name)[0]
        assert other["speedup"] < one["speedup"], name


def test_steps_that_were_measured_hold_the_host_already(tmp_path):
    table = tmp_path / "steps.jsonl"
    measured = replace(QUESTION, drafters=("eagle3",), steps=str(table), cycle_overhead="vllm")
    with pytest.raises(InputError, match="would count twice"):
        make_plan(measured)
