"""A capacity answer as a page of its own."""

from __future__ import annotations

from dataclasses import asdict

from rooflines import __version__
from rooflines.output.capacity_text import basis_text, capacity_tables
from rooflines.output.figures.pareto import pareto_figure
from rooflines.output.figures.style import figure_style
from rooflines.output.page import Page, Picture
from rooflines.output.tables import not_modeled_text
from rooflines.studies.capacity import Capacity, ServedOption


def capacity_page(answer: Capacity) -> Page:
    """A capacity answer with the trade between users and cards."""
    question = answer.question
    with figure_style():
        figure = pareto_figure(answer.pareto, title=question.target)
    given = asdict(question) | {"options": [_option(option) for option in question.options]}
    return Page(
        title=f"Capacity for {question.target}",
        answer=answer.text,
        basis=[
            basis_text(answer),
            *(f"Note: {note}." for note in answer.warnings),
            not_modeled_text(answer.not_modeled),
        ],
        pictures=[
            Picture(figure, "Tokens per second and card against tokens per second and user, by batch.")
        ],
        tables=capacity_tables(answer),
        inputs=given,
        version=__version__,
    )


def _option(option: ServedOption) -> str:
    """An option in one line, with what was given of it."""
    price = f"{option.price_per_hour:g} an hour" if option.price_per_hour is not None else None
    return ", ".join(filter(None, (option.name, *option.drafters, price)))
