from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from rooflines.errors import InputError
from rooflines.output.figures.style import figure_style, new_figure
from rooflines.output.page import Page, Picture, page_html, write_page

VOID = {"meta", "br", "use", "path", "stop", "link"}


class _Reader(HTMLParser):
    """Collects text, identifiers and addresses, and fails on tags that do not close."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.references, self.addresses, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag, attrs):  # noqa: ARG002 - the parser's signature
        self._attributes(attrs)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def _attributes(self, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("src", "href", "xlink:href", "action"):
                self.addresses.append(value)
            if value:
                self.references += re.findall(r"url\(#([^)]+)\)", value)


def picture(caption="Speedup & batch"):
    with figure_style():
        figure, (axis,) = new_figure(3, 2)
        axis.plot([1, 2], [1.0, 2.0])
    return Picture(figure, caption)


def page(**changes):
    given = {
        "title": "Plan <b>",
        "answer": 'Draft 4 & win "1.9x"',
        "basis": ["calibrated"],
        "pictures": [picture(), picture()],
        "tables": {"Rows": {"drafter": ["a<script>", "b"], "speedup": [1.23456789, None]}},
        "folded": {"By load": {"load": [1.5]}},
        "left_out": "Not modelled: queues.",
        "inputs": {"hardware": "h100", "batches": (1, 8), "kv_dtype": None},
        "version": "0.1.0",
    }
    return Page(**{**given, **changes})


def read(html):
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def test_a_page_closes_what_it_opens_and_escapes_what_it_is_given():
    html = page_html(page())
    reader = read(html)
    text = " ".join(reader.text)
    assert "a<script>" in text
    assert 'Draft 4 & win "1.9x"' in text
    assert "<b>" not in html
    assert "1, 8" in text
    assert "not given" in text


def test_nothing_comes_from_outside():
    reader = read(page_html(page()))
    assert [address for address in reader.addresses if not address.startswith("#")] == []
    assert "default-src 'none'" in page_html(page())


def test_two_figures_share_no_identifier_and_find_their_own():
    reader = read(page_html(page()))
    assert len(reader.ids) == len(set(reader.ids))
    wanted = reader.references + [address.removeprefix("#") for address in reader.addresses]
    assert wanted
    assert set(wanted) <= set(reader.ids)


def test_numbers_are_shown_short_and_sorted_in_full():
    html = page_html(page())
    assert 'data-value="1.23456789">1.235</td>' in html
    assert 'class="number" data-value=""></td>' in html


def test_lines_of_an_answer_stay_lines():
    html = page_html(page(answer="First.\nSecond."))
    assert '<p class="answer">First.\nSecond.</p>' in html
    assert re.search(r"\.answer \{[^}]*white-space: pre-line", html)


def test_what_was_asked_without_a_value_was_not_given():
    html = page_html(page(inputs={"a": None, "b": (), "c": ("", ""), "d": 0, "e": ("", "log.txt")}))
    shown = dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", html))
    assert shown == {"a": "not given", "b": "not given", "c": "not given", "d": "0", "e": "log.txt"}


def test_folded_tables_come_after_those_that_are_open():
    html = page_html(page())
    assert html.index("<h2>Rows</h2>") < html.index("<details><summary><h2>By load</h2></summary>")
    assert html.index("By load") < html.index("Not modelled: queues.") < html.index("<h2>Asked</h2>")


def test_long_texts_may_be_broken_and_numbers_may_not():
    html = page_html(page(tables={"Rows": {"drafter": ["x" * 60, "short"], "speedup": [1.5, 2.5]}}))
    assert f'<td class="long" data-value="{"x" * 60}">' in html
    assert '<td data-value="short">' in html
    assert re.search(r"^td \{ white-space: nowrap", html, re.MULTILINE)


def test_the_same_page_is_the_same_text():
    assert page_html(page()) == page_html(page())


def test_a_page_is_a_file_that_ends_in_html(tmp_path):
    write_page(page(), tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(InputError, match=r"\.html"):
        write_page(page(), tmp_path / "plan.txt")
    with pytest.raises(InputError, match="cannot write"):
        write_page(page(), tmp_path / "none" / "plan.html")
