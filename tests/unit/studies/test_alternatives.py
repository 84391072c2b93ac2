"""Speculation beside what else there is: what each gains, and that gains do not multiply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.errors import InputError, UnknownNameError
from rooflines.output.alternatives_text import alternatives_text
from rooflines.studies.alternatives import (
    EXACT,
    LOSSY,
    PLAIN,
    RELAXED,
    ROUNDED,
    SPECULATE,
    AlternativesQuestion,
    compare_alternatives,
)
from rooflines.studies.plan import PlanQuestion, make_plan

QUESTION = AlternativesQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafter="eagle3",
    acceptance="0.75",
    draft_lengths=(2, 4, 6),
    batches=(1, 64),
    context=2048,
    smaller=("llama-3.2-3b",),
    lossy_acceptance="0.82",
)


@pytest.fixture(scope="module")
def answer():
    return compare_alternatives(QUESTION)


def row(answer, name, batch=1):
    return next(one for one in answer.rows if one["alternative"] == name and one["batch"] == batch)


def test_every_alternative_at_every_batch(answer):
    names = [one["alternative"] for one in answer.rows if one["batch"] == 64]
    assert names == [
        PLAIN,
        "quantise to fp8",
        "quantise to int4-g128",
        "distil to llama-3.2-3b",
        SPECULATE,
        "speculate on fp8",
        "speculate on int4-g128",
        LOSSY,
    ]
    assert len(answer.rows) == 2 * len(names)


def test_gains_are_times_per_token_over_that_of_the_model_as_it_is(answer):
    plain = row(answer, PLAIN)
    assert plain["gain"] == 1.0
    for one in answer.rows:
        base = row(answer, PLAIN, one["batch"])["time_per_token_s"]
        assert one["gain"] == pytest.approx(base / one["time_per_token_s"])


def test_speculation_is_what_a_plan_says(answer):
    plan = make_plan(
        PlanQuestion(
            hardware=QUESTION.hardware,
            target=QUESTION.target,
            drafters=(QUESTION.drafter,),
            acceptance=QUESTION.acceptance,
            draft_lengths=QUESTION.draft_lengths,
            batches=QUESTION.batches,
            context=QUESTION.context,
        )
    )
    for told in plan.recommendation:
        found = row(answer, SPECULATE, told["batch"])
        assert found["gain"] == pytest.approx(told["speedup"])
        assert found["draft_length"] == told["draft_length"]


def test_gains_do_not_multiply(answer):
    for name in ("fp8", "int4-g128"):
        for batch in (1, 64):
            both = row(answer, f"speculate on {name}", batch)
            parts = row(answer, f"quantise to {name}", batch)["gain"] * row(answer, SPECULATE, batch)["gain"]
            assert both["product_of_parts"] == pytest.approx(parts)
            assert both["gain"] < parts
            assert both["gain"] > row(answer, f"quantise to {name}", batch)["gain"]


def test_fewer_bytes_gain_less_where_arithmetic_and_cache_take_their_share(answer):
    gains = [row(answer, "quantise to int4-g128", batch)["gain"] for batch in (1, 64)]
    assert gains[0] > gains[1] > 1.0
    assert gains[0] < 16 / 4.16


def test_a_lossy_rule_gains_by_its_acceptance_alone(answer):
    exact, lossy = row(answer, SPECULATE), row(answer, LOSSY)
    assert lossy["gain"] > exact["gain"]
    assert lossy["tokens_per_cycle"] > exact["tokens_per_cycle"]
    same = compare_alternatives(replace(QUESTION, lossy_acceptance="0.75"))
    assert row(same, LOSSY)["gain"] == row(same, SPECULATE)["gain"]
    without = compare_alternatives(replace(QUESTION, lossy_acceptance=None))
    assert LOSSY not in [one["alternative"] for one in without.rows]


def test_what_each_changes(answer):
    outputs = {one["alternative"]: one["output"] for one in answer.rows}
    assert outputs[SPECULATE] == outputs[PLAIN] == EXACT
    assert outputs["speculate on fp8"] == outputs["quantise to fp8"] == ROUNDED
    assert outputs[LOSSY] == RELAXED
    assert row(answer, SPECULATE)["memory_bytes"] > row(answer, PLAIN)["memory_bytes"]
    assert row(answer, "quantise to fp8")["memory_bytes"] < row(answer, PLAIN)["memory_bytes"]
    assert row(answer, "quantise to fp8")["largest_batch"] > row(answer, PLAIN)["largest_batch"]


def test_the_answer_names_the_best_exact_and_the_fastest(answer):
    assert "At batch 1, speculate (" in answer.text
    assert "where the product of both would be" in answer.text
    text = alternatives_text(answer, "text")
    assert text.index("At batch 1") < text.index("Basis:") < text.index("quantise to fp8")


def test_a_model_that_does_not_fit_has_no_gain_but_what_fits_has_a_time():
    large = replace(
        QUESTION, target="llama-3.1-70b", smaller=("llama-3.1-8b",), lossy_acceptance=None, batches=(1,)
    )
    found = compare_alternatives(large)
    assert row(found, PLAIN)["time_per_token_s"] is None
    assert row(found, PLAIN)["fits"] is False
    assert row(found, "quantise to int4-g128")["time_per_token_s"] > 0
    assert all(one["gain"] is None for one in found.rows)
    assert "does not fit, so there is no gain over it" in found.text


def test_bad_questions():
    with pytest.raises(InputError, match="draft length of 1 or more"):
        replace(QUESTION, draft_lengths=(0,))
    with pytest.raises(InputError, match="0 or more"):
        replace(QUESTION, context=-1)
    with pytest.raises(UnknownNameError):
        compare_alternatives(replace(QUESTION, quantized=("int5",)))
