from __future__ import annotations

import numpy as np
import pytest

from rooflines.rows import as_rows
from rooflines.speculation.acceptance_presets import acceptance_preset
from rooflines.studies import gallery
from rooflines.studies.plan import PlanQuestion, make_plan


def where(columns, **wanted):
    return [row for row in as_rows(columns) if all(row[key] == value for key, value in wanted.items())]


@pytest.fixture(scope="module")
def verify():
    return gallery.verify_cost()


@pytest.fixture(scope="module")
def crossovers():
    return gallery.batch_crossovers()


def test_a_pass_of_one_position_is_a_plain_step_on_every_device(verify):
    assert [row["relative"] for row in where(verify, positions=1)] == pytest.approx([1.0] * 12)


def test_verifying_is_cheaper_than_stepping_and_dearer_where_the_ridge_is_low(verify):
    assert all(row["relative"] < row["positions"] for row in as_rows(verify) if row["positions"] > 1)
    cost = {row["hardware"]: row["relative"] for row in where(verify, positions=16, batch=32)}
    assert cost["a100-sxm4-80gb"] > 1.3 * cost["h100-sxm5-80gb"]  # ridges of 153 and 295 FLOP per byte


def test_intervals_hold_the_prediction_and_are_wider_where_nobody_measured(verify):
    for row in as_rows(verify):
        assert min(1.0, row["relative"]) <= row["relative_low"] <= row["relative"] <= row["relative_high"]
        assert (row["relative_low"] == row["relative_high"]) == (row["positions"] == 1)

    def width(hardware):
        (row,) = where(verify, hardware=hardware, batch=32, positions=16)
        return row["relative_high"] / row["relative_low"]

    assert width("rtx-4090") > width("h100-sxm5-80gb") > 1.0


def test_every_row_says_what_its_time_rests_on(verify):
    by_device = {row["hardware"]: row["basis"] for row in as_rows(verify)}
    assert "h100-sxm5-80gb.vllm" in by_device["h100-sxm5-80gb"]
    assert "not measured" in by_device["rtx-4090"]


def test_the_surface_is_what_a_plan_says():
    cells = {
        (row["batch"], row["acceptance"], row["draft_length"]): row
        for row in as_rows(gallery.speedup_surface())
    }
    target, tensor = gallery.SURFACE_TARGET
    question = PlanQuestion(
        hardware=gallery.H100,
        target=target,
        tensor_parallel=tensor,
        drafters=(gallery.SURFACE_DRAFTER,),
        acceptance="0.8",
        draft_lengths=(2, 5),
        batches=gallery.SURFACE_BATCHES,
        context=gallery.SURFACE_CONTEXT,
    )
    for row in make_plan(question).rows:
        assert cells[row["batch"], 0.8, row["draft_length"]]["speedup"] == pytest.approx(row["speedup"])


def test_a_kept_length_stops_paying_where_its_own_line_ends_below_one(crossovers):
    ends = {
        row["draft_length"]: row["stops_paying_at"] for row in where(crossovers, panel="draft length kept")
    }
    assert ends[1] is None
    assert ends[7] < ends[3]
    for length, end in ends.items():
        beyond = [
            row["speedup"]
            for row in where(crossovers, panel="draft length kept", draft_length=length)
            if end is not None and row["batch"] >= end
        ]
        assert all(speedup <= 1.0 for speedup in beyond)


def test_the_best_length_is_at_least_as_good_as_any_kept_one(crossovers):
    best = {
        row["batch"]: row["speedup"]
        for row in where(crossovers, panel="best draft length")
        if "eagle3" in row["drafter"]
    }
    kept = [row for row in where(crossovers, panel="draft length kept") if row["batch"] in best]
    assert len(kept) > 20
    assert all(row["speedup"] <= best[row["batch"]] + 1e-12 for row in kept)


def test_the_gain_falls_less_with_longer_contexts(crossovers):
    def at(context, batch):
        line = where(crossovers, panel="context", context=context)
        return np.interp(batch, [row["batch"] for row in line], [row["speedup"] for row in line])

    assert at(8192, 40) > at(2048, 40) > at(512, 40)


def test_survival_is_the_product_of_what_was_published():
    columns = gallery.acceptance_decay()
    for task in gallery.DECAY_TASKS:
        published = acceptance_preset(f"dflash-qwen3-4b-{task}").values
        rows = where(columns, drafter="DFlash", task=task)
        assert [row["acceptance"] for row in rows] == pytest.approx(
            [one for (one,) in published] if len(published[0]) == 1 else list(published[0])
        )
        assert rows[-1]["survival"] == pytest.approx(np.prod([row["acceptance"] for row in rows]))
        assert "figure 2" in rows[0]["source"].lower()


def test_parts_of_a_cycle_add_up_and_tokens_over_cost_are_the_speedup():
    for row in as_rows(gallery.cycle_breakdown()):
        assert row["draft_steps"] + row["verify_steps"] == pytest.approx(row["cycle_cost"])
        assert row["tokens_per_cycle"] / row["cycle_cost"] == pytest.approx(row["speedup"])


def test_the_pareto_curve_trades_users_for_cards():
    for drafter in ("none", "eagle3"):
        rows = where(gallery.pareto(), drafter=drafter)
        batches = [row["batch"] for row in rows]
        assert batches == sorted(batches)
        assert np.all(np.diff([row["tokens_per_s_per_user"] for row in rows]) < 0)
