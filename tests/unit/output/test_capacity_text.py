from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rooflines.output.capacity_text import basis_text, capacity_columns, capacity_tables
from rooflines.output.tables import Quantity
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity

ASKED = CapacityQuestion(
    options=(ServedOption("h100-sxm5-80gb", drafters=("ngram:hit=0.5",)),),
    target="llama-3.1-8b",
    prompt_tokens="1024",
    output_tokens="256",
    acceptance=("0.6",),
    slo_tpot="20 ms",
    rate=40.0,
    max_sequences=64,
    concurrency=(8,),
)


@pytest.fixture(scope="module")
def answer():
    return make_capacity(ASKED)


def test_an_interval_is_one_cell_beside_its_value(answer):
    tables = capacity_tables(answer)
    one = tables["One engine"]
    assert list(one)[list(one).index("TPOT") + 1] == "TPOT 90 %"
    row = answer.rows[0]
    assert one["TPOT"][0] == Quantity(row["tpot_s"], "s")
    assert re.fullmatch(r"[\d.]+ ms to [\d.]+ ms", one["TPOT 90 %"][0])
    cards = tables["What the load needs"]["cards 90 %"][0]
    assert cards == f"{row['cards_low']} to {row['cards_high']}"


def test_an_end_without_limit_is_a_word(answer):
    by_load = capacity_tables(answer)["One engine by load"]
    near = [number for number, row in enumerate(answer.loads) if row["may_overload"]]
    assert near
    for number in near:
        assert by_load["TPOT 90 %"][number].endswith("to overload")
    endless = replace(answer, rows=[{**row, "cards_high": None} for row in answer.rows])
    cells = capacity_tables(endless)["What the load needs"]["cards 90 %"]
    assert cells[0] == f"{answer.rows[0]['cards_low']} or more"


def test_tables_that_hold_nothing_are_left_out(answer):
    assert set(capacity_tables(answer)) == {
        "Memory of one card",
        "What one engine carries",
        "What the load needs",
        "One engine",
        "One engine: percentiles",
        "One engine by load",
        "One engine by load: percentiles",
        "One engine by requests at once, all sent at the start",
    }
    bare = make_capacity(replace(ASKED, rate=None, slo_tpot=None, concurrency=()))
    assert not {"One engine", "One engine by requests at once, all sent at the start"} & set(
        capacity_tables(bare)
    )


def test_without_load_and_promise_the_answer_says_what_an_engine_does_at_half_of_what_it_carries():
    bare = make_capacity(replace(ASKED, rate=None, slo_tpot=None, concurrency=()))
    first, plain, *_ = bare.text.splitlines()
    assert first == "llama-3.1-8b, 1,024 tokens in, 256 out:"
    half = next(row for row in bare.loads if row["plain_load"] == 0.5)
    assert f"at {half['rate_requests_per_s']:.3g} the batch is {half['batch']:.3g}, TPOT" in plain


def test_a_way_to_serve_has_a_line_of_its_own(answer):
    lines = answer.text.splitlines()
    assert lines[1].startswith("1 x h100-sxm5-80gb with plain decoding needs ")
    assert lines[2].startswith("1 x h100-sxm5-80gb with ngram:hit=0.5 needs ")
    row = answer.rows[0]
    assert f"{row['cards']} cards ({row['cards_low']}-{row['cards_high']})" in lines[1]


def test_machines_get_numbers_and_no_words(answer):
    columns = capacity_columns(answer)
    assert {"tpot_low_s", "tpot_high_s", "cards_low", "cards_high"} <= set(columns)
    assert all(
        isinstance(value, int | float | str | bool | None) for row in answer.rows for value in row.values()
    )


def test_what_intervals_mean_is_said_where_there_are_some(answer):
    assert "hold 90 % of the cases" in basis_text(answer)
    textbook = make_capacity(replace(ASKED, calibration="textbook"))
    assert "No intervals" in basis_text(textbook)
    assert not any("90 %" in heading for table in capacity_tables(textbook).values() for heading in table)


def test_prefill_engines_are_counted_where_they_are_apart(answer):
    assert "of them prefill" not in capacity_tables(answer)["What the load needs"]
    apart = make_capacity(replace(ASKED, kv_transfer="50 GB/s", concurrency=()))
    counts = capacity_tables(apart)["What the load needs"]["of them prefill"]
    assert counts == [row["prefill_engines"] for row in apart.rows]
    assert min(counts) >= 1
    by_load = capacity_tables(apart)["One engine by load"]["prefill engines"]
    assert by_load == [row["prefill_engines"] for row in apart.loads]
    row = apart.rows[0]
    assert f", {row['prefill_engines']} of {row['engines']} engines for prompts: batch" in apart.text
    assert "engines for prompts" not in answer.text


def test_percentiles_are_called_by_their_number(answer):
    assert {"TPOT p95", "TTFT p95", "step gap p50"} <= set(capacity_tables(answer)["One engine: percentiles"])
    stricter = make_capacity(replace(ASKED, share=0.999, concurrency=()))
    assert {"TPOT p99.9", "TTFT p99.9"} <= set(capacity_tables(stricter)["One engine by load: percentiles"])


def test_columns_that_say_nothing_are_left_out(answer):
    drafted = capacity_tables(answer)["One engine"]["draft"]
    assert drafted[0] is None
    assert drafted[1] == answer.rows[1]["draft_length"]
    option = replace(ASKED.options[0], drafters=())
    plain = capacity_tables(make_capacity(replace(ASKED, options=(option,), acceptance=(), concurrency=())))
    assert not any({"draft", "drafter weights", "prefill engines"} & set(table) for table in plain.values())


def test_without_a_promise_what_is_carried_is_saturation(answer):
    assert "goodput requests/s" in capacity_tables(answer)["What one engine carries"]
    bare = make_capacity(replace(ASKED, rate=None, slo_tpot=None, concurrency=()))
    carried = capacity_tables(bare)["What one engine carries"]
    assert not any("goodput" in heading for heading in carried)
    assert carried["tokens/s/card"] == [row["goodput_tokens_per_s_per_card"] for row in bare.rows]
