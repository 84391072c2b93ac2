"""The one-page report, in a browser."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rooflines.cli import main

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PLAN = (
    "plan --hardware a100-sxm4-80gb --target llama-2-7b --drafter independent:tinyllama-1.1b --acceptance 0.8 "
    "--batch 1,8 --context 1024 --calibration textbook"
)
CAPACITY = (
    "capacity --hardware h100-sxm5-80gb --target llama-3.1-8b --prompt-tokens 1024 --output-tokens 256 "
    "--drafter ngram --acceptance 0.5 --calibration textbook"
)


@pytest.fixture(scope="module", params=[PLAN, CAPACITY], ids=["plan", "capacity"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "page.html"
    result = CliRunner().invoke(main, [*request.param.split(), "--html", str(path)])
    assert result.exit_code == 0, result.stderr
    return path


def column(page, table, index):
    script = "(table, index) => [...table.tBodies[0].rows].map(row => row.cells[index].dataset.value)"
    return (
        page.locator("table")
        .nth(table)
        .evaluate(script.replace("(table, index)", "(table, [index])"), [index])
    )


def test_a_click_sorts_a_table_and_a_second_one_turns_it(page, file):
    page.goto(file.as_uri())
    heads = page.locator("table").first.locator("th")
    numeric = next(i for i in range(heads.count()) if "number" in (heads.nth(i).get_attribute("class") or ""))
    for index in (numeric, heads.count() - 1):
        heads.nth(index).get_by_role("button").click()
        assert heads.nth(index).get_attribute("aria-sort") == "ascending"
        rising = column(page, 0, index)
        heads.nth(index).get_by_role("button").click()
        assert heads.nth(index).get_attribute("aria-sort") == "descending"
        falling = column(page, 0, index)
        assert sorted(rising) == sorted(falling)
        known = [float(value) if index == numeric else value for value in rising if value]
        assert known == sorted(known)
        assert [value for value in falling if value] == [value for value in reversed(rising) if value] or len(
            set(rising)
        ) < len(rising)


def test_it_stands_alone(page, file):
    page.goto(file.as_uri())
    assert page.locator("svg").count() == 1
    assert all(url == file.as_uri() for url in page.asked)
    assert page.complaints == []


@pytest.mark.parametrize("width", [1280, 800])
def test_it_is_read_at_any_width_and_by_anybody(page, file, axe, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    assert [
        (one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")
    ] == []


def test_paper_holds_every_table_whole_and_unfolded(page, file):
    page.goto(file.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1032, "height": 700})  # A4 across, less its margins, at 96 dots an inch
    folded = page.locator("details")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details[open]").count() == folded.count()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1032
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].every(one => one.scrollWidth <= one.clientWidth)"
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_every_line_of_an_answer_begins_a_line(page, file):
    page.goto(file.as_uri())
    answer = page.locator(".answer")
    assert answer.inner_text().count("\n") == answer.text_content().count("\n")
