"""``rooflines plot pareto``: what an engine gives each user against what a card gives all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflines.cli.capacity_options import question_of, serving_options, workload_options
from rooflines.cli.options import figure_option


@click.command("pareto")
@workload_options
@click.option(
    "--slo-tpot", metavar="TIME", help="Promised time per output token, such as '30 ms': an upright."
)
@serving_options
@figure_option
def pareto_command(
    slo_tpot: str | None,
    output: Path,
    **given: Any,  # noqa: ANN401 - what is served is passed on by name
) -> None:
    """Draw tokens/s per card against tokens/s per user, batch by batch."""
    from rooflines.output.figures.pareto import write_pareto
    from rooflines.output.figures.style import file_type
    from rooflines.studies.capacity import make_pareto

    file_type(output)
    question = question_of(given, slo_tpot=slo_tpot)
    write_pareto(question, make_pareto(question), output)
    click.echo(f"wrote {output}")
