from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.errors import InputError
from rooflines.models.readers import read_model
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.workload import Workload
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity
from rooflines.studies.capacity_notes import beyond_positions

ALONE = ServedOption("h100-sxm5-80gb", price_per_hour=2.0)
ASKED = CapacityQuestion(
    options=(ALONE,),
    target="llama-3.1-8b",
    prompt_tokens="1024",
    output_tokens="256",
    rate=60.0,
    calibration="textbook",
)


@pytest.mark.parametrize(
    ("prompt", "noted"), [("130816", False), ("130817", True), ("uniform:100..140000", True)]
)
def test_requests_longer_than_the_model_are_noted(prompt, noted):
    # Llama-3.1-8B's config.json: max_position_embeddings 131072; the output takes 256 of them.
    answer = make_capacity(replace(ASKED, prompt_tokens=prompt, rate=None, options=(ServedOption("h200"),)))
    found = [note for note in answer.warnings if "131,072" in note]
    assert len(found) == noted


def test_a_model_that_states_no_length_is_not_judged_by_it():
    model = read_model("llama-3.1-8b")
    workload = Workload.independent(parse_lengths("130000", "prompt"), parse_lengths("2000", "output"))
    assert beyond_positions(model, workload)
    assert not beyond_positions(model.model_copy(update={"max_positions": None}), workload)


def test_options_without_a_price_are_named_where_others_have_one():
    bare = replace(ALONE, hardware="b200-sxm-180gb", price_per_hour=None)
    answer = make_capacity(replace(ASKED, options=(ALONE, bare)))
    (note,) = [note for note in answer.warnings if "cost" in note]
    assert "no price is given for 1 x b200-sxm-180gb:" in note
    for prices in ((2.0, 4.0), (None, None)):
        options = tuple(
            replace(one, price_per_hour=price) for one, price in zip((ALONE, bare), prices, strict=True)
        )
        answer = make_capacity(replace(ASKED, options=options))
        assert not any("cost" in note for note in answer.warnings)


def test_a_price_without_a_load_or_a_promise_is_noted():
    quiet = make_capacity(replace(ASKED, rate=None))
    assert any("no cost follows" in note for note in quiet.warnings)
    promised = make_capacity(replace(ASKED, rate=None, slo_tpot="20 ms"))
    assert not any("cost" in note for note in promised.warnings)
    assert promised.rows[0]["price_per_million_tokens"] > 0


def test_a_device_is_shown_by_the_name_of_the_catalogue():
    answer = make_capacity(replace(ASKED, options=(replace(ALONE, hardware="H100 SXM"),)))
    assert {row["option"] for row in (*answer.rows, *answer.loads)} == {"1 x h100-sxm5-80gb"}
    assert answer.question.options[0].hardware == "H100 SXM"


def test_a_device_by_two_names_is_one_option():
    with pytest.raises(InputError, match="1 x h100-sxm5-80gb is given twice, under two names"):
        make_capacity(replace(ASKED, options=(ALONE, replace(ALONE, hardware="H100 SXM"))))
