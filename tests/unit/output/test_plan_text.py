from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rooflines.errors import InputError
from rooflines.output.plan_text import plan_text
from rooflines.studies.plan import PlanQuestion, make_plan

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3:topk=4,nodes=16", "ngram:host=20us"),
    acceptance=("eagle3=sequoia:0.7,0.1", "ngram=0.3"),
    draft_lengths=(2, 4),
    batches=(1, 64),
    context=1024,
    calibration="textbook",
    adaptive_verify=True,
    best_tree=True,
    explain=True,
)


@pytest.fixture(scope="module")
def plan():
    return make_plan(QUESTION)


def test_tables_come_in_the_order_of_questions(plan):
    text = plan_text(plan, "text")
    headings = [
        "Basis:",
        "Memory of one device",
        "What would change the answer",
        "Draft by batch",
        "How much of a draft to verify",
        "Best tree",
        "Where a cycle goes",
        "What each further token adds",
        "Not modelled:",
    ]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)


def test_each_acceptance_is_told_beside_its_drafter(plan):
    assert "eagle3:topk=4,nodes=16 sequoia:0.7,0.1, ngram:host=20us 0.3, as given" in plan_text(plan, "text")
    alike = make_plan(replace(QUESTION, acceptance="0.5"))
    assert "Acceptance: 0.5, as given" in plan_text(alike, "text")


def test_ranges_of_batches_are_written_as_such(plan):
    lines = plan_text(plan, "markdown").split("Draft by batch")[1].split("How much")[0].splitlines()
    written = [line.split("|")[1].strip() for line in lines if line.startswith("|")][2:]
    expected = [
        str(one["first_batch"])
        if one["first_batch"] == one["last_batch"]
        else f"{one['first_batch']}..{one['last_batch']}"
        for one in plan.schedule
    ]
    assert written == expected


def test_nodes_of_a_tree_are_written_level_by_level(plan):
    widths = " ".join(str(width) for width in plan.best_trees[0]["widths"])
    assert widths in plan_text(plan, "text")


def test_json_is_the_document(plan):
    assert json.loads(plan_text(plan, "json")) == json.loads(json.dumps(plan.document()))


def test_an_unknown_format_is_refused(plan):
    with pytest.raises(InputError, match="text, markdown, csv, json"):
        plan_text(plan, "yaml")
