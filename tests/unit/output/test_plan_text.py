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


MANY = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3", "ngram", "independent:llama-3.2-1b"),
    acceptance="0.7",
    draft_lengths=tuple(range(1, 9)),
    batches=(1, 8, 32, 64, 100_000),
    context=2048,
)


@pytest.fixture(scope="module")
def many():
    return make_plan(MANY)


def table(text, heading):
    """Cells of the Markdown table under a heading."""
    lines = text.split(heading)[1].strip().splitlines()
    lines = lines[next(index for index, line in enumerate(lines) if line.startswith("|")) :]
    end = next((index for index, line in enumerate(lines) if not line.startswith("|")), len(lines))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]
    return rows[0], rows[2:]


def best(plan, drafter, batch):
    rows = [row for row in plan.rows if (row["drafter"], row["batch"]) == (drafter, batch)]
    return max(rows, key=lambda row: (row["speedup"], -row["draft_length"]))


def test_several_drafters_stand_side_by_side_at_their_best(many):
    heads, rows = table(plan_text(many, "markdown"), "Speedup of each drafter")
    assert heads == ["drafter", *(f"batch {batch}" for batch in MANY.batches)]
    assert [row[0] for row in rows] == list(MANY.drafters)
    for row in rows:
        for batch, cell in zip(MANY.batches[:-1], row[1:-1], strict=True):
            wanted = best(many, row[0], batch)
            assert cell == f"{wanted['speedup']:.2f} ({wanted['draft_length']})"
        assert row[-1] == "does not fit"


def test_of_many_cycles_the_best_of_each_drafter_are_shown_and_csv_has_all(many):
    assert len(many.rows) == 120
    text = plan_text(many, "markdown")
    assert "(--format csv has all 120 rows)" in text
    heads, rows = table(text, "Cycles of the best draft length")
    assert len(rows) == 3 * 5
    for row in rows[:4]:
        cells = dict(zip(heads, row, strict=True))
        assert int(cells["draft"]) == best(many, cells["drafter"], int(cells["batch"]))["draft_length"]
    assert len(plan_text(many, "csv").splitlines()) == 121


def test_one_drafter_or_few_rows_are_shown_whole():
    one = make_plan(replace(MANY, drafters=("eagle3",), batches=tuple(range(1, 11))))
    text = plan_text(one, "markdown")
    assert "of the best draft length" not in text
    assert "Speedup of each" not in text
    assert len(table(text, "as given.")[1]) == len(one.rows) == 80
    assert "Cycles" not in text
    few = make_plan(replace(MANY, draft_lengths=(2, 4)))
    assert len(table(plan_text(few, "markdown"), "**Cycles**")[1]) == len(few.rows) == 30


def test_of_many_memories_that_of_the_largest_batch_is_shown(many):
    assert "Memory of one device\n" in plan_text(many, "text")
    wide = make_plan(replace(MANY, batches=tuple(range(1, 10)), draft_lengths=(2,)))
    _, rows = table(plan_text(wide, "markdown"), "Memory of one device at batch 9")
    assert [row[0] for row in rows] == list(MANY.drafters)


def test_what_would_change_the_answer_names_who_drafts(many):
    heads, rows = table(plan_text(many, "markdown"), "What would change the answer")
    assert [row[heads.index("drafter")] for row in rows[:-1]] == [
        entry["drafter"] for entry in many.recommendation[:-1]
    ]


def test_rows_beyond_what_was_measured_are_marked_where_there_are_any(many):
    short = make_plan(replace(MANY, acceptance="conditional:0.9,0.9", drafters=("eagle3",), batches=(1,)))
    heads, rows = table(plan_text(short, "markdown"), "as given.")
    told = {row[heads.index("draft")]: row[heads.index("extrapolated")] for row in rows}
    assert told == {str(length): "yes" if length > 2 else "no" for length in MANY.draft_lengths}
    assert short.recommendation[0]["measured_length"] == 2
    assert "(beyond the 2 positions measured)" in short.text
    assert "extrapolated" not in plan_text(many, "text")
