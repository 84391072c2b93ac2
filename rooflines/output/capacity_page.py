"""A capacity answer as a page of its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from rooflines import __version__
from rooflines.output.capacity_text import basis_text, capacity_tables
from rooflines.output.figures.pareto import capacity_figure
from rooflines.output.figures.style import figure_style
from rooflines.output.page import Page, Picture
from rooflines.output.tables import Columns, not_modeled_text
from rooflines.studies.capacity import Capacity, ServedOption

# Titles of the table that answers, whichever there is.
_NEEDED: Final = ("What the load needs", "One engine at goodput")

_CAPTION: Final = (
    "Tokens per second and card against tokens per second and user, by batch (B). Stars: under the load of "
    "the answer. Upright: the promised time per token."
)


def capacity_page(answer: Capacity) -> Page:
    """A capacity answer with the trade between users and cards."""
    question = answer.question
    with figure_style():
        figure = capacity_figure(question, answer.pareto, answer.rows)
    needed, details = _in_order(capacity_tables(answer))
    given = asdict(question) | {"options": [_option(option) for option in question.options]}
    return Page(
        title=f"Capacity for {question.target}",
        answer=answer.text,
        basis=[basis_text(answer), *(f"Note: {note}." for note in answer.warnings)],
        pictures=[Picture(figure, _CAPTION)],
        tables=needed,
        folded=details,
        left_out=not_modeled_text(answer.not_modeled),
        inputs=given,
        version=__version__,
    )


def _in_order(tables: dict[str, Columns]) -> tuple[dict[str, Columns], dict[str, Columns]]:
    """What the load needs before what stands behind it, and apart from both what is tabled by load."""
    by_load = {title: columns for title, columns in tables.items() if title.startswith("One engine by ")}
    needed = {title: columns for title, columns in tables.items() if title in _NEEDED}
    return needed | {title: tables[title] for title in tables if title not in by_load}, by_load


def _option(option: ServedOption) -> str:
    """An option in one line, with what was given of it."""
    price = f"{option.price_per_hour:g} an hour" if option.price_per_hour is not None else None
    return ", ".join(filter(None, (option.name, *option.drafters, price)))
