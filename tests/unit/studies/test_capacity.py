from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.errors import DoesNotFitError, InputError
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity

ONE = ServedOption("h100-sxm5-80gb", drafters=("independent:llama-3.2-1b",), price_per_hour=2.0)
ASKED = CapacityQuestion(
    options=(ONE,),
    target="llama-3.1-8b",
    prompt_tokens="1024",
    output_tokens="256",
    rate=60.0,
    acceptance=("0.8",),
    slo_tpot="15 ms",
    slo_ttft="1 s",
    calibration="textbook",
)


@pytest.fixture(scope="module")
def answer():
    return make_capacity(ASKED)


def test_a_row_without_and_one_with_the_drafter(answer):
    assert [row["drafter"] for row in answer.rows] == ["none", "independent:llama-3.2-1b"]
    for row in answer.rows:
        assert row["cards"] == row["engines"] >= 60.0 / row["goodput_requests_per_s"]
        assert row["requests_per_s_per_engine"] == pytest.approx(60.0 / row["engines"])
        assert row["tpot_quantile_s"] <= 15e-3
        assert row["ttft_quantile_s"] <= 1.0
        assert row["tokens_per_s_per_card"] == pytest.approx(60.0 * 256 / row["cards"])


def test_prices_and_energy_follow_the_cards(answer):
    for row in answer.rows:
        assert row["price_per_hour"] == 2.0 * row["cards"]
        assert row["price_per_million_tokens"] == pytest.approx(
            row["price_per_hour"] / 3600 / (60.0 * 256) * 1e6
        )
        # H100 SXM5: 700 W (NVIDIA H100 datasheet).
        assert row["energy_upper_bound_j_per_token"] == pytest.approx(700.0 * row["cards"] / (60.0 * 256))


def test_no_price_is_built_in():
    alone = replace(ONE, price_per_hour=None, drafters=())
    answer = make_capacity(replace(ASKED, options=(alone,), acceptance=()))
    assert answer.rows[0]["price_per_hour"] is None
    assert answer.rows[0]["price_per_million_tokens"] is None


def test_the_draft_length_falls_with_the_load(answer):
    lengths = [row["draft_length"] for row in answer.loads if row["drafter"] != "none"]
    assert lengths[0] >= 3
    assert lengths == sorted(lengths, reverse=True)
    plain = [row for row in answer.loads if row["drafter"] == "none"]
    assert [row["plain_load"] for row in plain] == [0.1, 0.25, 0.5, 0.75, 0.9]
    assert all(row["utilisation"] == pytest.approx(row["plain_load"]) for row in plain)


def test_speculation_is_faster_at_low_load(answer):
    rows = {(row["drafter"], row["plain_load"]): row for row in answer.loads}
    assert rows["independent:llama-3.2-1b", 0.1]["tpot_s"] < 0.7 * rows["none", 0.1]["tpot_s"]
    # Its tokens come in bursts, a whole cycle apart.
    assert rows["independent:llama-3.2-1b", 0.1]["gap_p50_s"] > rows["none", 0.1]["gap_p50_s"]


def test_the_answer_begins_in_words(answer):
    assert answer.text.startswith("llama-3.1-8b, 60 requests/s of 1,024 tokens in, 256 out")
    assert f"needs {answer.rows[0]['cards']} cards" in answer.text
    assert "hour at the prices given" in answer.text


def test_a_poor_drafter_stops_paying_and_the_resource_is_named():
    asked = replace(ASKED, acceptance=("0.3",), draft_length="2")
    answer = make_capacity(asked)
    (end,) = answer.crossovers
    assert end["batch"] is not None
    assert end["bound"] in ("compute", "memory", "network", "overhead")
    if end["batch"] > 1:
        assert f"stops paying at batch {end['batch']}" in answer.text
    else:
        assert "pays at no batch" in answer.text


def test_never_drafting_never_pays():
    answer = make_capacity(replace(ASKED, draft_length="0"))
    assert answer.crossovers[0]["batch"] == 1
    assert answer.rows[0]["tpot_s"] == pytest.approx(answer.rows[1]["tpot_s"])


def test_a_promise_that_cannot_be_kept_is_said_so():
    answer = make_capacity(replace(ASKED, slo_tpot="10 us"))
    assert answer.rows[0]["cards"] is None
    assert "cannot keep the promise at any load" in answer.text


def test_without_a_load_an_engine_is_judged():
    answer = make_capacity(replace(ASKED, rate=None))
    for row in answer.rows:
        assert row["cards"] is None
        assert row["goodput_requests_per_s"] < row["saturation_requests_per_s"]
        assert row["requests_per_s_per_engine"] == pytest.approx(row["goodput_requests_per_s"], rel=1e-5)
    assert "requests/s an engine" in answer.text


def test_without_a_promise_the_fewest_stable_cards():
    answer = make_capacity(replace(ASKED, slo_tpot=None, slo_ttft=None))
    row = answer.rows[0]
    assert row["goodput_requests_per_s"] == row["saturation_requests_per_s"]
    assert row["utilisation"] < 1.0
    assert (row["cards"] - 1) * row["saturation_requests_per_s"] <= 60.0
    assert "fewest that do not overflow" in answer.text


def test_options_are_compared_and_the_best_is_named():
    other = ServedOption("b200-sxm-180gb", price_per_hour=1.0)
    answer = make_capacity(replace(ASKED, options=(replace(ONE, drafters=()), other), acceptance=()))
    assert [row["option"] for row in answer.rows] == ["1 x h100-sxm5-80gb", "1 x b200-sxm-180gb"]
    assert "Cheapest: 1 x b200-sxm-180gb" in answer.text


def test_apart_prefill_has_engines_of_its_own():
    answer = make_capacity(replace(ASKED, kv_transfer="50 GB/s"))
    row = answer.rows[0]
    assert row["prefill_engines"] >= 1
    assert row["engines"] == row["cards"] > row["prefill_engines"]


def test_spread_experts_show_both_regimes():
    asked = CapacityQuestion(
        options=(ServedOption("h200-sxm-141gb", expert_parallel=8),),
        target="deepseek-v3",
        prompt_tokens="1024",
        output_tokens="256",
        max_sequences=4,
    )
    decode, prefill = make_capacity(asked).exchanges
    assert (decode["phase"], prefill["phase"]) == ("decode", "prefill")
    assert decode["bound"] == "latency"
    assert prefill["bound"] == "bandwidth"
    assert decode["tokens_per_step"] == 32
    assert make_capacity(ASKED).exchanges == []


def test_a_trace_brings_its_load_and_its_bursts(tmp_path):
    path = tmp_path / "trace.csv"
    times = [*(float(k * 2) for k in range(200)), *(100 + 0.001 * k for k in range(3000))]
    path.write_text(
        "arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{t},1000,200\n" for t in times),
        encoding="utf-8",
    )
    answer = make_capacity(
        replace(ASKED, prompt_tokens=None, output_tokens=None, trace=str(path), rate=None, slo_tpot="30 ms")
    )
    assert answer.trace["requests"] == 3200
    assert answer.trace["rate_per_s"] == pytest.approx(3199 / 398.0)
    assert any("busiest minute" in note for note in answer.warnings)
    assert any("Poisson" in note for note in answer.warnings)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"options": ()}, "needs a device"),
        ({"prompt_tokens": None}, "or a trace"),
        ({"trace": "file.csv"}, "not both"),
        ({"rate": 0.0}, "above 0"),
        ({"rate": float("inf")}, "above 0"),
        ({"acceptance": ()}, "needs its acceptance"),
        ({"options": (ServedOption("h100-sxm5-80gb"),)}, "acceptance .* is given, but no drafter"),
        ({"options": (ONE, ONE)}, "an option is given twice"),
        ({"memory_reserve": 1.0}, "memory reserve"),
    ],
)
def test_questions_without_sense_are_refused(changes, reason):
    with pytest.raises(InputError, match=reason):
        replace(ASKED, **changes)


@pytest.mark.parametrize("price", [0.0, -1.0, float("inf"), float("nan")])
def test_a_price_must_be_one(price):
    with pytest.raises(InputError, match="price"):
        replace(ONE, price_per_hour=price)


def test_what_does_not_fit_gets_no_speed():
    with pytest.raises(
        DoesNotFitError,
        match=r"1 x h100-sxm5-80gb with plain decoding does not fit: .* tensor parallelism 2 holds it",
    ):
        make_capacity(
            replace(ASKED, target="llama-3.1-70b", options=(ServedOption("h100-sxm5-80gb"),), acceptance=())
        )


def test_an_engine_by_name_brings_its_host_time_and_its_source():
    bare, named = (make_capacity(replace(ASKED, cycle_overhead=text)) for text in ("0 s", "vllm"))
    # A request that meets no other: 1.207 ms more a plain step, and of a cycle for its tokens.
    plain, drafted = (
        named.rows[index]["alone_tpot_s"] - bare.rows[index]["alone_tpot_s"] for index in (0, 1)
    )
    assert plain == pytest.approx(1.207e-3, rel=1e-3)
    assert 1.207e-3 / 9 < drafted < 1.207e-3 / 2
    assert any("SpecDecode-Bench" in part for part in named.basis)
    assert len(named.basis) == len(bare.basis) + 1


def test_a_time_per_cycle_is_none_of_plain_steps():
    bare, timed = (make_capacity(replace(ASKED, cycle_overhead=text)) for text in ("0 s", "1 ms"))
    assert timed.rows[0]["alone_tpot_s"] == bare.rows[0]["alone_tpot_s"]
    assert timed.rows[1]["alone_tpot_s"] > bare.rows[1]["alone_tpot_s"]


def test_host_time_of_a_request_delays_its_first_token_alone():
    bare, hosted = (make_capacity(replace(ASKED, request_overhead=text)) for text in ("0 s", "40 ms"))
    for one, other in zip(bare.loads, hosted.loads, strict=True):
        assert other["tpot_s"] == one["tpot_s"]
        if one["ttft_s"] is not None:
            assert other["ttft_s"] == pytest.approx(one["ttft_s"] + 40e-3)
    assert hosted.rows[0]["goodput_requests_per_s"] <= bare.rows[0]["goodput_requests_per_s"]


def test_a_promise_shorter_than_the_hosts_time_is_not_kept():
    answer = make_capacity(replace(ASKED, request_overhead="1.1 s"))
    assert all(row["cards"] is None for row in answer.rows)
    assert "cannot keep the promise at any load" in answer.text


@pytest.mark.parametrize(
    ("engine", "first"), [("vllm", False), ("sglang", True), ("sglang-overlap", True), ("1 ms", False)]
)
def test_an_engine_by_name_takes_prompts_in_its_own_order(engine, first):
    alone = replace(ONE, drafters=())
    asked = replace(ASKED, options=(alone,), acceptance=(), concurrency=(32,), cycle_overhead=engine)
    answer = make_capacity(asked)
    assert any("takes prompts before it decodes" in part for part in answer.basis) is first
    bare = make_capacity(replace(asked, cycle_overhead="0 s"))
    # In lockstep all wait for the last prompt; groups one step apart wait for their own.
    assert (answer.closed[0]["ttft_s"] > 1.5 * bare.closed[0]["ttft_s"]) is first
    quiet = make_capacity(replace(asked, concurrency=()))
    assert not any("takes prompts" in part for part in quiet.basis)


def test_host_time_of_drafts_is_no_basis_of_plain_decoding():
    alone = replace(ONE, drafters=())
    answer = make_capacity(replace(ASKED, options=(alone,), acceptance=(), cycle_overhead="sglang"))
    assert not any("host of" in part for part in answer.basis)


def test_a_limit_on_sequences_that_costs_cards_is_said():
    alone = replace(ONE, drafters=())
    asked = replace(ASKED, options=(alone,), acceptance=(), slo_tpot=None, slo_ttft=None, rate=200.0)
    few = make_capacity(replace(asked, max_sequences=16))
    assert any("run 16 sequences at once, as --max-sequences says" in note for note in few.warnings)
    # Neither where one engine does, nor where the promise bounds it, nor where the memory does.
    for changes in ({"rate": 1.0}, {"slo_tpot": "5.6 ms"}, {"max_sequences": 10**5, "batched_tokens": 10**6}):
        answer = make_capacity(replace(asked, **({"max_sequences": 16} | changes)))
        assert answer.rows[0]["cards"] is not None
        assert not any("--max-sequences" in note for note in answer.warnings)
