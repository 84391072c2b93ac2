"""``rooflines plan``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflines.cli.options import (
    architecture_options,
    emit,
    format_option,
    html_option,
    output_option,
    read_document,
)
from rooflines.cli.plan_options import (
    acceptance_from_option,
    acceptances_option,
    drafters_option,
    host_option,
    plan_question,
    serving_options,
    speculation_options,
)

if TYPE_CHECKING:
    from rooflines.studies.plan import Plan


@click.command()
@speculation_options(drafters_option, acceptances_option, acceptance_from_option, batch="1")
@click.option("--verify-length", type=int, help="Drafted tokens that are verified at most (default: all).")
@click.option(
    "--adaptive-verify", is_flag=True, help="Also choose how many drafted positions of a batch to verify."
)
@host_option
@click.option("--memory-reserve", default=0.1, show_default=True, help="Share of the memory kept free.")
@click.option(
    "--emit", "engine", metavar="vllm|sglang|trtllm|llamacpp", help="Print that engine's settings instead."
)
@click.option("--best-tree", is_flag=True, help="Also choose size and depth of the trees that are proposed.")
@click.option(
    "--explain",
    is_flag=True,
    help="Also say where verifying stops being free, what drafting costs, what rejection loses, and what "
    "each further token adds.",
)
@click.option("--compare", type=click.Path(dir_okay=False, path_type=Path), help="An earlier answer (JSON).")
@click.option(
    "--steps",
    metavar="FILE",
    help="Measured steps of the target in place of constants: llama-bench -o json, a file of measurements or "
    "a calibration with a table; a drafter takes its own as steps=FILE.",
)
@serving_options
@architecture_options
@html_option
@format_option
@output_option
def plan(
    acceptances: tuple[str, ...],
    acceptance_files: tuple[str, ...],
    engine: str | None,
    compare: Path | None,
    html: Path | None,
    fmt: str,
    output: Path | None,
    **given: Any,  # noqa: ANN401 - the question is passed on by name
) -> None:
    """Should I speculate, with which draft length, at which batch?"""
    from rooflines.studies.plan import make_plan

    earlier = None if compare is None else read_document(compare, "the earlier answer")
    answer = make_plan(plan_question(acceptances, acceptance_files, given))
    for note in answer.warnings:
        click.echo(f"rooflines: warning: {note}", err=True)
    if html is not None:
        from rooflines.output.page import write_page
        from rooflines.output.plan_page import plan_page

        write_page(plan_page(answer), html)
        click.echo(f"wrote {html}", err=True)
    if engine is not None:
        from rooflines.output.engine_settings import engine_settings

        emit(engine_settings(answer, engine), output)
    elif earlier is not None:
        emit(_comparison(earlier, answer), output)
    else:
        from rooflines.output.plan_text import plan_text

        emit(plan_text(answer, fmt), output)


def _comparison(earlier: dict[str, Any], answer: Plan) -> str:
    from rooflines.studies.plan_words import compare_plans

    changes = compare_plans(earlier, answer.document())
    return "\n".join(changes) if changes else "Nothing changed."
