"""``rooflines capacity``: cards for a load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflines.cli.capacity_options import load_options, question_of, serving_options, workload_options
from rooflines.cli.options import emit_answer, format_option, html_option, output_option, parse_integers


@click.command()
@workload_options
@load_options
@serving_options
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw tokens/s per card against per user (.svg, .png, .pdf).",
)
@html_option
@format_option
@output_option
def capacity(
    rate: float | None,
    concurrency: str | None,
    slo_tpot: str | None,
    slo_ttft: str | None,
    percentile: float,
    price: float | None,
    figure: Path | None,
    html: Path | None,
    fmt: str,
    output: Path | None,
    **given: Any,  # noqa: ANN401 - what is served is passed on by name
) -> None:
    """How many cards for a load, with speculation or without?"""
    from rooflines.output.capacity_text import capacity_columns, capacity_text
    from rooflines.output.figures.style import file_type
    from rooflines.studies.capacity import make_capacity

    if figure is not None:
        file_type(figure)
    answer = make_capacity(
        question_of(
            given,
            price=price,
            concurrency=() if concurrency is None else parse_integers(concurrency, "concurrency", 1),
            rate=rate,
            slo_tpot=slo_tpot,
            slo_ttft=slo_ttft,
            share=percentile / 100.0,
        )
    )
    for note in answer.warnings:
        click.echo(f"rooflines: warning: {note}", err=True)
    if figure is not None:
        from rooflines.output.figures.pareto import write_pareto

        write_pareto(answer.question, answer.pareto, figure, answer.rows)
        click.echo(f"wrote {figure}", err=True)
    if html is not None:
        from rooflines.output.capacity_page import capacity_page
        from rooflines.output.page import write_page

        write_page(capacity_page(answer), html)
        click.echo(f"wrote {html}", err=True)
    emit_answer(
        fmt,
        output,
        document=answer.document,
        columns=lambda: capacity_columns(answer),
        text=lambda: capacity_text(answer, fmt),
    )
