from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import InputError, RooflinesError
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.host import CycleHost
from rooflines.studies.plan import PlanQuestion, make_plan
from rooflines.studies.plan_acceptance import assign_acceptance
from rooflines.studies.plan_price import SCHEDULE_SLACK
from rooflines.studies.plan_verify import BatchCycle, verify_budget_row
from rooflines.studies.serve import make_deployment, make_machine

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("independent:llama-3.2-1b", "eagle3", "ngram:host=20us"),
    acceptance=("0.8", "eagle3=0.7", "ngram=0.3"),
    draft_lengths=(1, 3, 5),
    batches=(1, 16, 128),
    context=2048,
    calibration="none",
)
DRAFTERS = ("independent:llama-3.2-1b", "eagle3:topk=4,nodes=16", "eagle3", "ngram")


@pytest.fixture(scope="module")
def plan():
    return make_plan(QUESTION)


class TestAcceptanceOfEach:
    def test_one_for_all(self):
        assert [one.text for one in assign_acceptance("0.8", DRAFTERS)] == ["0.8"] * 4

    def test_by_kind_and_by_text_and_the_rest(self):
        given = ("0.8", "eagle3=0.7", "eagle3:topk=4,nodes=16=sequoia:0.7,0.1", "ngram=survival:0.4,0.2")
        texts = [one.text for one in assign_acceptance(given, DRAFTERS)]
        assert texts == ["0.8", "sequoia:0.7,0.1", "0.7", "survival:0.4,0.2"]

    def test_rates_of_guesses_stay_such(self):
        tree, chain = assign_acceptance(("eagle=sequoia:0.7,0.1", "ngram=0.3"), ("eagle", "ngram"))
        assert isinstance(tree.rates, BranchAcceptance)
        assert tree.by_depth.conditional(1) == 0.7
        assert not isinstance(chain.rates, BranchAcceptance)

    def test_the_order_does_not_matter(self):
        one = assign_acceptance(("eagle3=0.7", "0.8"), DRAFTERS)
        other = assign_acceptance(("0.8", "eagle3=0.7"), DRAFTERS)
        assert one == other

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (("eagle3=0.7",), "has no acceptance: give --acceptance independent="),
            (("0.8", "0.7"), "given twice: '0.8' and '0.7'"),
            (("0.8", "ngram=0.3", "ngram=0.4"), "given twice: '0.3' and '0.4'"),
            (("0.8", "medusa=0.3"), "names no drafter"),
            (("0.8", "ngram=high"), "no number"),
        ],
    )
    def test_what_fits_no_drafter_is_refused(self, given, message):
        with pytest.raises(RooflinesError, match=message):
            assign_acceptance(given, DRAFTERS)


class TestSeveralDrafters:
    def test_each_has_a_row_at_every_batch_and_length(self, plan):
        keys = {(row["drafter"], row["batch"], row["draft_length"]) for row in plan.rows}
        assert len(keys) == len(plan.rows) == 3 * 3 * 3

    def test_each_is_priced_as_alone(self, plan):
        for drafter, acceptance in zip(QUESTION.drafters, ("0.8", "0.7", "0.3"), strict=True):
            alone = make_plan(replace(QUESTION, drafters=(drafter,), acceptance=acceptance))
            assert alone.rows == [row for row in plan.rows if row["drafter"] == drafter]

    def test_the_best_of_all_is_recommended(self, plan):
        for entry in plan.recommendation:
            best = max(
                (row for row in plan.rows if row["batch"] == entry["batch"]), key=lambda row: row["speedup"]
            )
            assert (entry["drafter"], entry["speedup"]) == (best["drafter"], best["speedup"])

    def test_what_was_given_for_each_is_told(self, plan):
        assert {one["drafter"]: one["acceptance"] for one in plan.acceptances} == {
            "independent:llama-3.2-1b": "0.8",
            "eagle3": "0.7",
            "ngram:host=20us": "0.3",
        }

    def test_the_same_drafter_twice_is_refused(self):
        with pytest.raises(InputError, match="given twice"):
            replace(QUESTION, drafters=("eagle3", "eagle3"))


class TestSchedule:
    def test_every_batch_has_a_draft_that_is_nearly_the_best(self, plan):
        """Against pricing single batches of the ranges, one drafter and length after another."""
        target = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "none"))
        given = assign_acceptance(QUESTION.acceptance, QUESTION.drafters)
        for entry in plan.schedule:
            for batch in {entry["first_batch"], entry["last_batch"]}:
                found = {(None, 0): 1.0}
                for text, one in zip(QUESTION.drafters, given, strict=True):
                    drafter = make_drafter(text, target)
                    for length in QUESTION.draft_lengths:
                        times = cycle_times(target, drafter, float(batch), 2048.0, float(length))
                        found[text, length] = float(cycle(times, one.rates).speedup)
                chosen = found[entry["drafter"], entry["draft_length"]]
                if batch <= min(row["largest_batch"] for row in plan.memory):
                    assert chosen >= (1.0 - SCHEDULE_SLACK) * max(found.values())
                    assert 1.0 <= entry["speedup"] <= chosen * (1 + 1e-12)

    def test_ranges_follow_each_other_without_a_gap_and_differ(self, plan):
        assert plan.schedule[0]["first_batch"] == 1
        for one, other in zip(plan.schedule, plan.schedule[1:], strict=False):
            assert other["first_batch"] == one["last_batch"] + 1
            assert (one["drafter"], one["draft_length"]) != (other["drafter"], other["draft_length"])
        assert plan.schedule[-1]["last_batch"] == max(end["searched_to"] for end in plan.crossovers)

    def test_drafts_get_shorter_as_the_batch_grows(self):
        alone = make_plan(
            replace(
                QUESTION,
                drafters=("eagle3",),
                acceptance="0.7",
                draft_lengths=(1, 2, 3, 4, 5, 6),
                context=128,
                calibration="textbook",  # fitted tiles make steps, at which a longer draft may be free
            )
        )
        lengths = [entry["draft_length"] for entry in alone.schedule]
        assert len(lengths) > 2
        assert lengths == sorted(lengths, reverse=True)

    def test_experts_whose_tiles_change_with_the_batch_have_few_ranges(self):
        mixture = replace(
            QUESTION,
            hardware="b200",
            target="deepseek-v3",
            drafters=("mtp",),
            acceptance="0.8",
            draft_lengths=tuple(range(1, 9)),
            tensor_parallel=8,
            calibration="auto",
        )
        schedule = make_plan(mixture).schedule
        lengths = [entry["draft_length"] for entry in schedule]
        assert len(schedule) <= 8
        assert lengths[0] - lengths[-1] > 3

    def test_where_nothing_fits_there_is_none(self):
        assert make_plan(replace(QUESTION, target="llama-3.1-70b")).schedule == []


class TestTrees:
    def test_a_tree_has_rows_by_depth_and_its_nodes_in_the_verify_width(self):
        rows = make_plan(replace(QUESTION, drafters=("eagle3:topk=4,nodes=16",), acceptance="0.7")).rows
        assert [row["verify_width"] for row in rows[:3]] == [5.0, 17.0, 17.0]
        assert all(row["leviathan_speedup"] is None for row in rows)

    def test_second_guesses_raise_the_yield_of_a_tree_and_not_of_a_chain(self):
        def tokens(drafter, acceptance):
            return make_plan(replace(QUESTION, drafters=(drafter,), acceptance=acceptance)).rows[2][
                "tokens_per_cycle"
            ]

        assert tokens("eagle3", "sequoia:0.6,0.2,0.1") == pytest.approx(tokens("eagle3", "0.6"))
        tree = "eagle3:topk=3,nodes=30"
        assert tokens(tree, "sequoia:0.6,0.2,0.1") > 1.3 * tokens(tree, "0.6")

    def test_one_rate_a_position_is_said_to_be_the_trees(self):
        tree = replace(QUESTION, drafters=("eagle3:topk=4,nodes=16",), acceptance="0.7")
        assert any("what the tree attains by depth" in note for note in make_plan(tree).warnings)
        known = replace(tree, acceptance="sequoia:0.6,0.2")
        assert not any("by depth" in note for note in make_plan(known).warnings)

    def test_memory_holds_the_whole_tree(self):
        def cached(drafter):
            return make_plan(replace(QUESTION, drafters=(drafter,), acceptance="0.7")).memory[0]["kv_bytes"]

        assert cached("eagle3:topk=4,nodes=16") - cached("eagle3") == (16 - 5) * 131_072


class TestVerifyLength:
    def test_verifying_less_than_is_drafted(self):
        rows = make_plan(replace(QUESTION, verify_length=3)).rows
        assert {row["verify_width"] for row in rows if row["draft_length"] == 5} == {4.0}
        assert {row["verify_width"] for row in rows if row["draft_length"] == 1} == {2.0}
        short = {(r["drafter"], r["batch"]): r for r in rows if r["draft_length"] == 3}
        for row in rows:
            if row["draft_length"] == 5:
                other = short[row["drafter"], row["batch"]]
                assert row["tokens_per_cycle"] == other["tokens_per_cycle"]
                assert row["verify_s"] == other["verify_s"]

    def test_a_tree_beside_it_is_told(self):
        mixed = replace(
            QUESTION, drafters=("eagle3:topk=4,nodes=16", "eagle3"), acceptance="0.7", verify_length=2
        )
        found = make_plan(mixed)
        assert any("verifies its nodes" in note for note in found.warnings)
        assert {row["verify_width"] for row in found.rows if row["drafter"] == "eagle3"} == {2.0, 3.0}

    @pytest.mark.parametrize("length", [0, -1])
    def test_nothing_to_verify_is_refused(self, length):
        with pytest.raises(InputError, match="verify length"):
            replace(QUESTION, verify_length=length)


@pytest.fixture(scope="module")
def rows():
    """How much to verify of drafts of 8, by two drafters at three batches."""
    asked = replace(QUESTION, drafters=("ngram:host=20us", "eagle3"), acceptance="0.5", adaptive_verify=True)
    return make_plan(replace(asked, draft_lengths=(8,), batches=(1, 32, 200))).verify_budget


class TestAdaptiveVerify:
    def test_it_never_yields_less_than_verifying_all(self, rows):
        assert len(rows) == 6
        for row in rows:
            assert row["tokens_per_s"] >= row["tokens_per_s_all_verified"] * (1 - 1e-12)
            assert 0 <= row["verify_length"] <= 8
            assert row["verify_positions"] == pytest.approx(row["batch"] * (row["verify_length"] + 1))

    def test_less_is_verified_of_a_larger_batch(self, rows):
        for drafter in ("ngram:host=20us", "eagle3"):
            lengths = [row["verify_length"] for row in rows if row["drafter"] == drafter]
            assert lengths == sorted(lengths, reverse=True)
            assert lengths[-1] < lengths[0]

    def test_it_is_at_least_the_best_uniform_verify_length(self):
        """Uniform lengths are among the choices; pricing each by the cycle gives the same time."""
        target = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "none"))
        drafter = make_drafter("eagle3", target)
        (given,) = assign_acceptance("0.5", ("eagle3",))
        row = verify_budget_row(
            BatchCycle(target, drafter, 64, 512.0, 6, CycleHost(cycle_s=1e-3)), given.by_depth
        )
        uniform = [
            float(
                cycle(
                    cycle_times(target, drafter, 64.0, 512.0, 6.0, overhead_s=1e-3, verify_length=verified),
                    given.rates,
                ).speedup
            )
            for verified in range(1, 7)
        ]
        assert row["speedup"] >= max(uniform) * (1 - 1e-12)
        assert row["speedup"] <= max(uniform) * 1.05

    def test_it_is_left_out_unless_asked_for(self, plan):
        assert plan.verify_budget == []


def test_eight_drafters_over_eight_batches_take_less_than_half_a_second():
    """The whole process has a second; imports take most of the rest. The best of three is judged."""
    drafters = (
        "independent:llama-3.2-1b",
        "medusa",
        "eagle3:topk=10,nodes=59",
        "dflash",
        "dspark",
        "mtp",
        "ngram",
        "quantized:int4-g128",
    )
    asked = replace(QUESTION, drafters=drafters, acceptance="0.7", batches=(1, 2, 4, 8, 16, 32, 64, 128))
    taken = []
    for _ in range(3):
        start = time.process_time()
        answer = make_plan(asked)
        taken.append(time.process_time() - start)
    assert len({row["drafter"] for row in answer.rows}) == 8
    assert np.min(taken) < 0.5


def test_drafts_that_are_not_always_there_have_no_fate_by_position():
    asked = replace(QUESTION, drafters=("ngram:host=20us,hit=0.4",), acceptance="0.5", explain=True)
    rows = make_plan(asked).realities
    assert rows
    assert all(row["wrong"] is None and row["lost_to_prefix"] is None for row in rows)
    assert all(row["accepted"] <= 0.4 * (1 + 1e-9) for row in rows)  # 0.4 (0.5 + 0.25 + ..) at most


def test_how_much_to_verify_is_not_chosen_for_drafts_that_are_not_always_there():
    asked = replace(QUESTION, drafters=("ngram:host=20us,hit=0.4",), acceptance="0.5", adaptive_verify=True)
    with pytest.raises(InputError, match="does not always propose"):
        make_plan(asked)
