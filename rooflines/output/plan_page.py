"""A plan as a page of its own, to be mailed or attached to a pull request."""

from __future__ import annotations

from dataclasses import asdict

from rooflines import __version__
from rooflines.output.figures.style import figure_style
from rooflines.output.page import Page, Picture
from rooflines.output.plan_report import plan_figure
from rooflines.output.plan_text import basis_text, plan_tables
from rooflines.output.tables import not_modeled_text
from rooflines.studies.plan import Plan


def plan_page(plan: Plan) -> Page:
    """A plan with its figure, where anything of it fits in memory."""
    question = plan.question
    return Page(
        title=f"Speculating for {question.target} on {question.tensor_parallel} x {question.hardware}",
        answer=plan.text,
        basis=[basis_text(plan), *(f"Note: {note}." for note in plan.warnings)],
        pictures=_pictures(plan),
        tables=plan_tables(plan),
        folded={},
        left_out=not_modeled_text(plan.not_modeled),
        inputs=asdict(question),
        version=__version__,
    )


def _pictures(plan: Plan) -> list[Picture]:
    if all(row["speedup"] is None for row in plan.rows):
        return []
    with figure_style():
        figure = plan_figure(plan)
    caption = (
        "Speedup over plain decoding against draft length, drafter by drafter, and at the best draft length "
        "against batch."
    )
    return [Picture(figure, caption)]
