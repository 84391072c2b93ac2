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
    acceptances_option,
    drafters_option,
    host_option,
    plan_question,
    serving_options,
    speculation_options,
)

if TYPE_CHECKING:
    from rooflines.studies.plan import Plan

_acceptance_from_option = click.option(
    "--acceptance-from",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What an engine printed: a log, metrics, a benchmark's JSON or a CSV (see `rooflines import`).",
)


@click.command()
@speculation_options(drafters_option, acceptances_option, _acceptance_from_option, batch="1")
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
    acceptance_from: Path | None,
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
    answer = make_plan(plan_question(_acceptances(acceptances, acceptance_from), given))
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


def _acceptances(given: tuple[str, ...], printed: Path | None) -> tuple[str, ...]:
    """What was given on the command line, or what an engine printed; one of the two."""
    if printed is not None and not given:
        from rooflines.measurement.readers.catalogue import acceptance_text_from

        return (acceptance_text_from(printed),)
    if printed is not None or not given:
        raise click.UsageError("Give --acceptance or --acceptance-from, one of the two.")
    return given


def _comparison(earlier: dict[str, Any], answer: Plan) -> str:
    from rooflines.studies.plan_words import compare_plans

    changes = compare_plans(earlier, answer.document())
    return "\n".join(changes) if changes else "Nothing changed."
