"""The studies behind `speedup`, `intensity` and `plan`, called from Python."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rooflines.errors import InputError, MissingPeakError, UnitError, UnknownNameError
from rooflines.speculation.acceptance import Acceptance
from rooflines.studies.intensity import study_intensity, time_phase
from rooflines.studies.plan import LARGEST_SEARCHED, LONGEST_CONTEXT, PlanQuestion, make_plan
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.studies.speedup import study_speedup

GOOD = {
    "hardware": "a100-sxm-80gb",
    "target": "llama-2-7b",
    "drafters": ("independent:tinyllama-1.1b-v1.0",),
    "acceptance": "0.8",
    "draft_lengths": (2, 4),
    "batches": (1, 8),
    "context": 1024,
    "calibration": "textbook",
}


def question(**changes):
    return PlanQuestion(**{**GOOD, **changes})


@pytest.fixture(scope="module")
def served():
    return make_deployment("llama-2-7b", make_machine("a100-sxm-80gb", "textbook"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drafters": ()}, "needs a drafter"),
        ({"draft_lengths": ()}, "give one of 1 or more"),
        ({"draft_lengths": (0,)}, "give one of 1 or more"),
        ({"context": -1}, "context is -1"),
        ({"context": LONGEST_CONTEXT + 1}, "must be within"),
        ({"memory_reserve": 1.0}, "share within 0..1, below 1"),
        ({"memory_reserve": float("nan")}, "share within 0..1, below 1"),
    ],
)
def test_an_impossible_question_is_refused_before_anything_is_read(changes, message):
    with pytest.raises(InputError, match=message):
        question(hardware="not looked up", **changes)


def test_the_document_of_a_plan_is_plain_json():
    document = make_plan(question(batches=(1, 4096))).document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_the_crossover_is_searched_up_to_what_fits_and_no_further():
    few = make_plan(question(context=32768)).crossovers[0]
    assert few["searched_to"] == make_plan(question(context=32768)).memory[0]["largest_batch"] < 20
    many = make_plan(
        question(hardware="b200", target="qwen2.5-1.5b", drafters=("independent:qwen2.5-0.5b",), context=16)
    )
    assert many.crossovers[0]["searched_to"] == LARGEST_SEARCHED < many.memory[0]["largest_batch"]


def test_the_best_of_several_drafters_is_recommended_by_name():
    both = make_plan(question(drafters=("independent:llama-2-7b", "independent:tinyllama-1.1b-v1.0")))
    assert {entry["drafter"] for entry in both.recommendation} == {"independent:tinyllama-1.1b-v1.0"}
    alone = make_plan(question())
    assert [entry["speedup"] for entry in both.recommendation] == [
        entry["speedup"] for entry in alone.recommendation
    ]


def test_equal_speedups_recommend_the_shorter_draft():
    never = make_plan(question(acceptance="0", draft_lengths=(0, 1, 2)))
    assert [(entry["draft_length"], entry["speedup"]) for entry in never.recommendation] == [
        (0, 1.0),
        (0, 1.0),
    ]
    assert not any(entry["speculate"] for entry in never.recommendation)


def test_a_larger_reserve_leaves_room_for_fewer():
    rooms = [
        make_plan(question(memory_reserve=share)).memory[0]["largest_batch"] for share in (0.0, 0.1, 0.5)
    ]
    assert rooms == sorted(rooms, reverse=True)
    assert rooms[0] > rooms[2]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("a100-sxm-80g",), UnknownNameError),
        (("a100-sxm-80gb", "best"), UnknownNameError),
        (("a100-sxm-80gb", "auto", "300"), UnitError),
    ],
)
def test_a_machine_of_nonsense_is_refused(arguments, kind):
    with pytest.raises(kind):
        make_machine(*arguments)


def test_a_format_without_a_stated_peak_is_never_timed_with_another(served):
    fp8 = make_deployment("llama-2-7b", served.machine, weight_dtype="fp8")
    with pytest.raises(MissingPeakError, match="fp8"):
        fp8.decode(1.0, 1024.0)


def test_an_empty_format_is_no_default(served):
    with pytest.raises(UnknownNameError):
        make_deployment("llama-2-7b", served.machine, kv_dtype="")


def test_phases_are_the_passes_of_the_deployment(served):
    assert time_phase(served, "decode", 2, 64, None).seconds == served.decode(2, 64).seconds
    assert time_phase(served, "verify", 2, 64, 5).seconds == served.verify(2, 64, 5).seconds
    assert time_phase(served, "prefill", 2, 64, None).seconds == served.prefill(2, 64).seconds
    assert time_phase(served, "prefill", 2, 64, 16).seconds == served.prefill(2, 16, 64).seconds


def test_an_unknown_phase_is_refused(served):
    with pytest.raises(InputError, match="use decode, prefill or verify"):
        time_phase(served, "train", 1, 64, None)


def test_intensity_rises_with_the_batch_and_crosses_the_ridge(served):
    """Weights are read once for the whole batch, so without a cache intensity is near the batch."""
    totals = [study_intensity(served, "decode", batch, 0).columns for batch in (1, 16, 128, 512)]
    found = [columns["intensity_flop_per_byte"][-1] for columns in totals]
    assert found == sorted(found)
    assert found[1] == pytest.approx(16, rel=0.05)
    assert [columns["bound"][-1] for columns in totals] == ["memory", "memory", "memory", "compute"]


def test_speedup_matches_a_sum_by_hand():
    study = study_speedup(Acceptance.conditional_rates([0.9, 0.8, 0.7]), (0, 1, 2, 3), 0.1, 1.2, 0.05)
    taus = [1.0, 1.9, 1.9 + 0.72, 1.9 + 0.72 + 0.504]
    costs = [1.0, 1.35, 1.45, 1.55]
    assert study.columns["tokens_per_cycle"] == pytest.approx(taus)
    assert study.columns["cycle_cost"] == pytest.approx(costs)
    assert study.columns["speedup"] == pytest.approx(list(np.divide(taus, costs)))
    assert study.best_draft_length == 3


@pytest.mark.parametrize(
    "costs", [(-0.1, 1.0, 0.0), (0.1, 0.0, 0.0), (0.1, 1.0, float("inf")), (float("nan"), 1.0, 0.0)]
)
def test_impossible_costs_are_refused(costs):
    with pytest.raises(InputError):
        study_speedup(Acceptance.constant(0.8), (1, 2), *costs)
