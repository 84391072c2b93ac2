"""A result as one self-contained HTML page, to be mailed or attached to a pull request.

Nothing comes from outside the file: figures are inline SVG, tables are sorted by a few lines of script, and a
content policy forbids every request, so that a page shows the same on a machine without a network.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import figure_style
from rooflines.output.tables import Columns, plain, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_IDENTIFIER: Final = re.compile(r'(\bid="|url\(#|href="#)')
_STYLE: Final = """
:root { color-scheme: light; --ink: #1a1a1a; --quiet: #555; --line: #d0d0d0; --accent: #0b5394; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: #fff; margin: 0; }
main { max-width: 84rem; margin: 0 auto; padding: 1.5rem; }
p, dl, figure { max-width: 68rem; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.answer { font-size: 1.15rem; border-left: 4px solid var(--accent); padding: .25rem 1rem;
  white-space: pre-line; }
.basis, figcaption, footer { color: var(--quiet); font-size: .9rem; }
figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; background:
  linear-gradient(to left, #fff 30%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, #0003, transparent) right / 1rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .8rem; line-height: 1.35; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: left; }
th { vertical-align: bottom; }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 11rem; }
td.number, th.number { text-align: right; }
th button { font: inherit; font-weight: 600; border: 0; background: none; color: var(--accent); padding: 0;
  cursor: pointer; }
th[aria-sort=ascending] button::after { content: " \\25B2"; }
th[aria-sort=descending] button::after { content: " \\25BC"; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
summary { cursor: pointer; margin: 2rem 0 .5rem; }
summary h2 { display: inline; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; background: none; }
  table { font-size: 7pt; }
  th, td { padding: .1rem .3rem; }
  td.long { min-width: 6rem; }
  th button { color: inherit; }
  th button::after { content: "" !important; }
  h2, summary { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  figure svg { max-height: 165mm; }
}
"""
_SCRIPT: Final = """
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const rising = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const key = (row) => row.cells[head.cellIndex].dataset.value;
    const numeric = head.classList.contains("number");
    const rows = [...body.rows].sort((a, b) => {
      const left = key(a), right = key(b);
      if (left === "" || right === "") return (left === "") - (right === "");
      const order = numeric ? Number(left) - Number(right) : left.localeCompare(right);
      return rising ? order : -order;
    });
    body.append(...rows);
  });
}
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});
"""
# Letters of a cell that is broken into lines where it must be.
_LONG: Final = 34


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of a page.

    Attributes:
        figure: drawn in the house style.
        caption: what it shows; also read out to those who cannot see it.
    """

    figure: Figure
    caption: str


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says, in the order of its reading.

    Attributes:
        title: one line.
        answer: the answer in words.
        basis: what it rests on, and what is odd about it: a paragraph each.
        pictures: figures.
        tables: caption -> columns; numbers are shown with a few digits and sorted by all of them.
        folded: further tables, which a click or printing unfolds.
        left_out: what is not modelled.
        inputs: what was asked, by name.
        version: of this package.
    """

    title: str
    answer: str
    basis: Sequence[str]
    pictures: Sequence[Picture]
    tables: Mapping[str, Columns]
    folded: Mapping[str, Columns]
    left_out: str
    inputs: Mapping[str, object]
    version: str


def write_page(page: Page, path: Path) -> None:
    """Write a page.

    Raises:
        InputError: the file does not end in .html, or cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a page is written as .html")
    try:
        path.write_text(page_html(page), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def page_html(page: Page) -> str:
    """A page as HTML; the same question gives the same text in one environment."""
    title = escape(page.title)
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
        f'<h1>{title}</h1>\n<p class="answer">{escape(page.answer)}</p>',
        *(f'<p class="basis">{escape(line)}</p>' for line in page.basis),
        *(_picture(picture, number) for number, picture in enumerate(page.pictures, 1)),
        *(f"{_heading(caption)}\n{_table(caption, columns)}" for caption, columns in page.tables.items()),
        *(_folded(caption, columns) for caption, columns in page.folded.items()),
        f'<p class="basis">{escape(page.left_out)}</p>',
        f"{_heading('Asked')}\n<dl>{_inputs(page.inputs)}</dl>",
        f"<footer><p>rooflines {escape(page.version)}</p></footer>\n</main>",
        f"<script>{_SCRIPT}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _picture(picture: Picture, number: int) -> str:
    caption = escape(picture.caption)
    return (
        f'<figure role="img" aria-label="{caption}">\n{inline_svg(picture.figure, f"figure{number}")}\n'
        f"<figcaption>{caption}</figcaption>\n</figure>"
    )


def inline_svg(figure: Figure, prefix: str) -> str:
    """A figure as an SVG element whose identifiers start with `prefix`, since a page holds several."""
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return _IDENTIFIER.sub(rf"\g<1>{prefix}-", text[text.index("<svg") :]).strip()


def _heading(words: str) -> str:
    return f"<h2>{escape(words)}</h2>"


def _folded(caption: str, columns: Columns) -> str:
    return f"<details><summary>{_heading(caption)}</summary>\n{_table(caption, columns)}\n</details>"


def _table(caption: str, columns: Columns) -> str:
    numeric = {name: _is_numeric(values) for name, values in columns.items()}
    kinds = {name: "number" if number else "" for name, number in numeric.items()}
    heads = "".join(
        f'<th scope="col"{_class(kinds[name])}><button type="button">{escape(name)}</button></th>'
        for name in columns
    )
    rows = "\n".join(
        "<tr>"
        + "".join(_cell(value, number=numeric[name]) for name, value in zip(columns, row, strict=True))
        + "</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(caption)}"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n'
        "</tbody></table></div>"
    )


def _is_numeric(values: Sequence[object]) -> bool:
    known = [plain(value) for value in values]
    return all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in known
    )


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _cell(value: object, *, number: bool) -> str:
    exact, shown = plain(value), readable(value)
    kind = "number" if number else "long" if len(shown) > _LONG else ""
    return (
        f'<td{_class(kind)} data-value="{escape("" if exact is None else str(exact))}">{escape(shown)}</td>'
    )


def _inputs(inputs: Mapping[str, object]) -> str:
    return "".join(
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(_shown(value))}</dd>"
        for name, value in inputs.items()
    )


def _shown(value: object) -> str:
    items = value if isinstance(value, list | tuple) else [value]
    return ", ".join(str(item) for item in items if item not in (None, "")) or "not given"
