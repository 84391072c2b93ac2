from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity
from rooflines.studies.capacity_intervals import CARRIED_ENDS, CLOSED_ENDS, STATE_ENDS

ONE = ServedOption("h100-sxm5-80gb", drafters=("independent:llama-3.2-1b",))
ASKED = CapacityQuestion(
    options=(ONE,),
    target="llama-3.1-8b",
    prompt_tokens="1024",
    output_tokens="256",
    rate=60.0,
    acceptance=("0.8",),
    slo_tpot="15 ms",
    slo_ttft="2 s",
    concurrency=(4, 1024),
    max_sequences=96,
)


@pytest.fixture(scope="module")
def answer():
    return make_capacity(ASKED)


@pytest.fixture(scope="module")
def by_medians():
    return make_capacity(replace(ASKED, calibration="none"))


def inside(row, name, unit):
    return row[f"{name}_low{unit}"] < row[f"{name}{unit}"] < row[f"{name}_high{unit}"]


def test_every_answer_lies_inside_its_interval(answer):
    for row in answer.rows:
        assert inside(row, "saturation", "_requests_per_s")
        assert inside(row, "goodput", "_requests_per_s")
        assert inside(row, "goodput", "_tokens_per_s_per_card")
        assert inside(row, "tpot", "_s")
        assert inside(row, "ttft", "_s")
        assert row["cards_low"] <= row["cards"] <= row["cards_high"]
        assert row["may_overload"] is False
    for row in answer.closed:
        assert inside(row, "tpot", "_s")
        assert inside(row, "ttft", "_s")
        assert row["low_tokens_per_s_per_card"] < row["tokens_per_s_per_card"]
        assert row["tokens_per_s_per_card"] < row["high_tokens_per_s_per_card"]


def test_cards_follow_from_the_ends_of_goodput(answer):
    for row in answer.rows:
        assert row["cards_low"] == math.floor(60.0 / row["goodput_high_requests_per_s"]) + 1
        assert row["cards_high"] == math.floor(60.0 / row["goodput_low_requests_per_s"]) + 1


def test_the_higher_the_load_the_further_the_ends_of_time_per_token(answer):
    plain = [row for row in answer.loads if row["drafter"] == "none"]
    below = [row for row in plain if not row["may_overload"]]
    assert len(below) >= 3
    spread = [row["tpot_high_s"] / row["tpot_low_s"] for row in below]
    assert all(later > earlier for earlier, later in pairwise(spread))


def test_near_saturation_the_end_is_an_overload(answer):
    last = next(row for row in answer.loads if row["drafter"] == "none" and row["plain_load"] == 0.9)
    assert last["may_overload"] is True
    assert last["tpot_high_s"] is None
    assert last["ttft_high_s"] is None
    assert last["tpot_low_s"] < last["tpot_s"]


def test_a_ratio_is_better_known_than_its_two_times(answer):
    drafted = {row["plain_load"]: row for row in answer.loads if row["drafter"] != "none"}
    plain = {row["plain_load"]: row for row in answer.loads if row["drafter"] == "none"}
    for load in (0.1, 0.25, 0.5):
        row = drafted[load]
        assert row["speedup"] == pytest.approx(plain[load]["tpot_s"] / row["tpot_s"])
        assert row["speedup_low"] < row["speedup"] < row["speedup_high"]
        apart = math.hypot(*(math.log(one["tpot_high_s"] / one["tpot_low_s"]) for one in (row, plain[load])))
        assert math.log(row["speedup_high"] / row["speedup_low"]) < 0.6 * apart
    assert all(plain[load]["speedup"] is None for load in plain)


def test_gains_are_over_plain_decoding_of_the_same_option(answer):
    plain, drafted = answer.rows
    assert plain["goodput_over_plain"] is None
    ratio = drafted["goodput_requests_per_s"] / plain["goodput_requests_per_s"]
    assert drafted["goodput_over_plain"] == pytest.approx(ratio)
    assert drafted["goodput_over_plain_low"] < ratio < drafted["goodput_over_plain_high"]
    assert f"carries {ratio:.2f} times what plain decoding does" in answer.text


def test_constants_of_other_devices_are_less_sure(answer, by_medians):
    for own, other in zip(answer.rows, by_medians.rows, strict=True):
        spread = [
            row["saturation_high_requests_per_s"] / row["saturation_low_requests_per_s"]
            for row in (own, other)
        ]
        assert spread[1] > 1.02 * spread[0]


def test_waits_for_a_place_are_no_longer_than_the_engine_is_slow(answer):
    """Nearly all of the time to first token of 1024 requests at 96 places is such a wait."""
    few, many = (row for row in answer.closed if row["drafter"] == "none")
    assert few["waiting"] == 0
    assert many["waiting"] == 1024 - 96
    assert many["ttft_high_s"] / many["ttft_low_s"] < 2.0 < few["ttft_high_s"] / few["ttft_low_s"]
    assert any("the other 928 wait" in note for note in answer.warnings)


def test_a_crossover_is_a_range_of_batches():
    answer = make_capacity(
        replace(ASKED, acceptance=("0.55",), draft_length="3", max_sequences=256, concurrency=())
    )
    (end,) = answer.crossovers
    assert end["interval"] is True
    assert 1 <= end["batch_low"] < end["batch"]
    assert end["batch_high"] is None or end["batch"] < end["batch_high"]
    assert end["rate_low_requests_per_s"] < end["rate_requests_per_s"]
    assert f"stops paying at batch {end['batch']}" in answer.text


def test_the_textbook_gives_no_interval_and_says_so():
    from rooflines.output.capacity_text import basis_text

    answer = make_capacity(replace(ASKED, calibration="textbook"))
    for row in answer.rows:
        assert all(row[name] is None for name in (*CARRIED_ENDS, *STATE_ENDS))
        assert row["goodput_over_plain_low"] is None
    assert all(row[name] is None for row in answer.loads for name in STATE_ENDS)
    assert all(row[name] is None for row in answer.closed for name in CLOSED_ENDS)
    assert answer.crossovers[0]["interval"] is False
    assert "No intervals" in basis_text(answer)
    assert answer.rows[1]["goodput_over_plain"] > 0


def test_apart_the_prefill_engines_err_too():
    answer = make_capacity(replace(ASKED, rate=2000.0, kv_transfer="50 GB/s", concurrency=()))
    for row in answer.rows:
        assert row["cards_low"] <= row["cards"] <= row["cards_high"]
        assert row["cards_low"] < row["cards_high"]
        assert inside(row, "goodput", "_tokens_per_s_per_card")


def test_a_promise_below_the_best_case_is_kept_by_no_number_of_cards():
    answer = make_capacity(replace(ASKED, slo_tpot="1 us", concurrency=()))
    for row in answer.rows:
        assert (row["cards"], row["cards_low"], row["cards_high"]) == (None, None, None)
        assert row["goodput_low_requests_per_s"] == row["goodput_high_requests_per_s"] == 0.0
        assert row["alone_tpot_s"] > 1e-6
    assert "even a request that meets no other has TPOT" in answer.text


def test_a_promise_near_the_best_case_may_be_one_that_nobody_keeps():
    alone = make_capacity(replace(ASKED, options=(replace(ONE, drafters=()),), acceptance=())).rows[0]
    close = f"{alone['alone_tpot_s'] * 1.1e3:.3f} ms"
    asked = replace(
        ASKED, options=(replace(ONE, drafters=()),), acceptance=(), slo_tpot=close, concurrency=()
    )
    answer = make_capacity(asked)
    (row,) = answer.rows
    assert row["cards"] is not None
    assert row["cards_low"] <= row["cards"]
    assert row["cards_high"] is None
    assert row["goodput_low_requests_per_s"] == 0.0
    assert "or more, if any number does" in answer.text


def test_the_time_of_a_host_is_as_given_at_both_ends():
    """Only what is predicted of a wait may be wrong: its ends move by the host's time and no further."""
    asked = replace(ASKED, rate=None, slo_tpot=None, slo_ttft=None, concurrency=())
    bare, hosted = (make_capacity(replace(asked, request_overhead=text)) for text in ("0 s", "500 ms"))
    for one, other in zip(bare.loads, hosted.loads, strict=True):
        if one["ttft_s"] is not None:
            assert other["ttft_low_s"] == pytest.approx(one["ttft_low_s"] + 0.5)
        if one["ttft_s"] is not None and not one["may_overload"]:
            assert other["ttft_high_s"] == pytest.approx(one["ttft_high_s"] + 0.5)


def test_a_promise_is_kept_as_often_with_the_host_paid_for():
    asked = replace(ASKED, slo_tpot=None, concurrency=())
    bare, hosted = (
        make_capacity(replace(asked, slo_ttft=promise, request_overhead=host))
        for promise, host in (("150 ms", "0 s"), ("200 ms", "50 ms"))
    )
    for one, other in zip(bare.rows, hosted.rows, strict=True):
        for name in ("goodput_low_requests_per_s", "goodput_requests_per_s", "goodput_high_requests_per_s"):
            assert other[name] == pytest.approx(one[name], rel=1e-6)


def test_by_load_prefill_engines_keep_the_promise_or_else_do_not_overflow():
    apart = replace(ASKED, kv_transfer="50 GB/s", concurrency=(), rate=None, slo_tpot=None)
    for promise, kept in (("40 ms", True), ("1 ms", False)):
        rows = [row for row in make_capacity(replace(apart, slo_ttft=promise)).loads if not row["overloaded"]]
        assert len(rows) >= 8
        assert all((row["ttft_quantile_s"] <= 40e-3) or not kept for row in rows)
        assert all(row["prefill_engines"] >= 1 for row in rows)


def test_prefill_engines_that_cannot_keep_a_promise_are_no_answer():
    """However much the decode engines carry."""
    apart = replace(ASKED, kv_transfer="50 GB/s", concurrency=(), rate=None, slo_tpot=None, slo_ttft="1 ms")
    answer = make_capacity(apart)
    for row in answer.rows:
        assert row["goodput_requests_per_s"] > 0
        assert row["goodput_tokens_per_s_per_card"] == 0.0
        assert row["batch"] is None
    assert answer.text.count("cannot keep the promise at any load") == 2


def test_beside_few_places_for_long_prompts_intervals_have_a_width_too():
    asked = CapacityQuestion(
        options=(ServedOption("h100-sxm5-80gb"),),
        target="llama-3.1-8b",
        prompt_tokens="100000",
        output_tokens="200",
    )
    for row in make_capacity(asked).loads:
        assert row["tpot_low_s"] < 0.95 * row["tpot_s"]
        assert row["tpot_high_s"] is None or row["tpot_high_s"] > 1.05 * row["tpot_s"]
