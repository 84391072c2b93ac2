"""What a plan says where nothing fits, and where the context leaves the model's positions."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rooflines.output.plan_text import plan_tables, plan_text
from rooflines.studies.plan import PlanQuestion, make_plan

QUESTION = PlanQuestion(
    hardware="b200-sxm-180gb",
    target="deepseek-v3",
    drafters=("mtp",),
    acceptance="0.7",
    draft_lengths=(1, 2),
    batches=(1, 2, 3, 4),
    context=4096,
)


@pytest.fixture(scope="module")
def misfit():
    return make_plan(QUESTION)


def test_nothing_that_fits_is_said_once_and_why(misfit):
    assert misfit.text.count("not fit") == 1
    assert (
        "Batches 1-4 do not fit in memory (no batch does). A card would hold 673 GB of weights" in misfit.text
    )
    assert "for one sequence of 4,096 positions" in misfit.text


def test_the_degree_advised_holds_it_and_half_of_it_does_not(misfit):
    degree = int(re.search(r"tensor parallelism (\d+) holds it", misfit.text)[1])
    assert make_plan(replace(QUESTION, tensor_parallel=degree)).recommendation[0]["fits"]
    assert not make_plan(replace(QUESTION, tensor_parallel=degree // 2)).recommendation[0]["fits"]


def test_no_table_of_blanks_is_shown_and_the_rows_are_kept(misfit):
    assert list(plan_tables(misfit)) == ["Memory of one device"]
    assert "tokens/cycle" not in plan_text(misfit, "markdown")
    assert len(misfit.rows) == 8


def test_advice_is_left_out_where_some_batch_fits():
    plan = make_plan(replace(QUESTION, target="llama-3.1-8b", drafters=("ngram",), batches=(1, 100_000)))
    assert "tensor parallelism" not in plan.text
    assert re.search(r"Batch 100000 does not fit in memory \(the largest batch that does is \d+\)", plan.text)


@pytest.mark.parametrize(("context", "warned"), [(131_072 - 3, False), (131_072 - 2, True), (200_000, True)])
def test_a_context_beyond_the_positions_of_the_model_is_warned_of(context, warned):
    """llama-3.1-8b: max_position_embeddings 131072; two drafted positions and one more stand behind it."""
    plan = make_plan(replace(QUESTION, target="llama-3.1-8b", drafters=("ngram",), context=context))
    assert (
        any("131,072 positions that the config of llama-3.1-8b states" in note for note in plan.warnings)
        is warned
    )
