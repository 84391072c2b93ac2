from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rooflines import __version__
from rooflines.output.capacity_page import capacity_page
from rooflines.output.page import page_html
from rooflines.output.plan_page import plan_page
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity
from rooflines.studies.plan import PlanQuestion, make_plan

PLAN = PlanQuestion(
    hardware="a100-sxm4-80gb",
    target="llama-2-7b",
    drafters=("independent:tinyllama-1.1b", "ngram"),
    acceptance=("independent=0.8", "ngram=0.3"),
    draft_lengths=(2, 4),
    batches=(1, 16),
    context=1024,
    calibration="textbook",
)


@pytest.fixture(scope="module")
def plan():
    return make_plan(PLAN)


@pytest.fixture(scope="module")
def capacity():
    option = ServedOption("h100-sxm5-80gb", drafters=("ngram",), price_per_hour=2.5)
    return make_capacity(
        CapacityQuestion(
            options=(option,),
            target="llama-3.1-8b",
            prompt_tokens="1024",
            output_tokens="256",
            rate=20.0,
            acceptance=("0.5",),
            calibration="textbook",
        )
    )


def cells(html, heading):
    """Exact values of the column under a heading, in the first table that has it."""
    table = next(part for part in html.split("<table>")[1:] if f">{heading}</button>" in part)
    names = re.findall(r'<button type="button">(.*?)</button>', table)
    rows = [re.findall(r'data-value="(.*?)"', row) for row in table.split("<tr>")[2:]]
    return [row[names.index(heading)] for row in rows]


def test_a_page_of_a_plan_holds_its_answer_its_inputs_and_every_row(plan):
    html = page_html(plan_page(plan))
    assert plan.text in html
    assert plan.basis in html
    assert f"rooflines {__version__}" in html
    assert html.count("<svg") == 1
    assert [float(cell) for cell in cells(html, "speedup")] == [row["speedup"] for row in plan.rows]


def test_times_are_shown_with_their_unit_and_sorted_in_seconds(plan):
    html = page_html(plan_page(plan))
    assert [float(cell) for cell in cells(html, "verify time")] == [row["verify_s"] for row in plan.rows]
    assert re.search(r'<td class="number" data-value="0\.0\d+">[\d.]+ ms</td>', html)


def test_a_plan_that_fits_nowhere_has_a_page_without_a_figure():
    html = page_html(
        plan_page(make_plan(replace(PLAN, target="llama-3.1-405b", drafters=("ngram",), acceptance="0.3")))
    )
    assert "<svg" not in html
    assert "fit in memory" in html


def test_what_is_odd_about_a_question_is_on_its_page():
    odd = make_plan(replace(PLAN, acceptance="conditional:0.8,0.7"))
    assert odd.warnings
    html = page_html(plan_page(odd))
    assert all(note in html for note in odd.warnings)


def test_a_page_of_a_capacity_answer_holds_its_loads_and_its_options(capacity):
    html = page_html(capacity_page(capacity))
    assert capacity.text in html
    assert html.count("<svg") == 1
    assert "1 x h100-sxm5-80gb, ngram, 2.5 an hour" in html
    shown = [float(cell) for cell in cells(html, "requests/s")]
    assert shown == pytest.approx([row["rate_requests_per_s"] for row in capacity.loads])


def test_what_the_load_needs_is_read_first_and_tables_by_load_are_folded(capacity):
    html = page_html(capacity_page(capacity))
    open_part, *folded = html.split("<details>")
    assert re.findall("<h2>(.*?)</h2>", open_part)[0] == "What the load needs"
    assert "What one engine carries" in open_part
    assert any("One engine by load" in part for part in folded)
    assert html.count("<h2>What the load needs</h2>") == 1


def test_what_is_not_modelled_is_said_after_the_numbers(plan, capacity):
    for html in (page_html(plan_page(plan)), page_html(capacity_page(capacity))):
        assert html.rindex("</table>") < html.index("Not modelled: ") < html.index("<h2>Asked</h2>")
