"""``rooflines plot``: rooflines, verify costs, speedup curves and Pareto curves."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    calibration_option,
    deployment_options,
    figure_option,
    parse_integers,
)
from rooflines.cli.plan_options import (
    acceptance_from_option,
    acceptances_option,
    drafters_option,
    plan_question,
    serving_options,
    speculation_options,
)
from rooflines.cli.plot_pareto import pareto_command
from rooflines.cli.plot_verify import verify_command

if TYPE_CHECKING:
    from rooflines.studies.roofline import PlotPhase


@click.group()
def plot() -> None:
    """Draw rooflines, verify costs, speedup curves and Pareto curves."""


@plot.command("roofline")
@click.option(
    "--hardware", required=True, multiple=True, metavar="NAME|FILE", help="Device; repeat for several."
)
@click.option("--model", required=True, multiple=True, metavar="NAME|PATH", help="Model; repeat for several.")
@click.option(
    "--phase",
    "phases",
    default=("decode", "prefill"),
    show_default=True,
    multiple=True,
    type=click.Choice(["decode", "prefill", "verify"]),
    help="Pass; repeat for several.",
)
@click.option("--batch", default="1", show_default=True, metavar="A..B|A,B", help="Sequences in the batch.")
@click.option(
    "--context",
    required=True,
    type=click.IntRange(1, LARGEST_COUNT),
    help="Cached positions (prefill: prompt).",
)
@click.option(
    "--draft-length", default=4, show_default=True, type=click.IntRange(0, LARGEST_COUNT), help="Of a verify."
)
@deployment_options
@calibration_option
@figure_option
def roofline_command(
    hardware: tuple[str, ...],
    model: tuple[str, ...],
    phases: tuple[PlotPhase, ...],
    batch: str,
    context: int,
    draft_length: int,
    tp: int,
    weight_dtype: str | None,
    kv_dtype: str | None,
    overhead: str,
    calibration: str,
    output: Path,
) -> None:
    """Draw the operators of passes under the roofs of devices."""
    from rooflines.output.figures.roofline import roofline_figure
    from rooflines.output.figures.style import figure_style, file_type, save_figure
    from rooflines.studies.roofline import roofline_points, roofs
    from rooflines.studies.serve import make_deployment, make_machine

    file_type(output)
    batches = parse_integers(batch, "batch", 1)
    above, points = [], []
    for device, name in product(hardware, model):
        machine = make_machine(device, calibration, overhead)
        served = make_deployment(
            name, machine, weight_dtype=weight_dtype, kv_dtype=kv_dtype, tensor=tp, routing="uniform"
        )
        above += [roof for roof in roofs(served, phases) if roof not in above]
        for phase in dict.fromkeys(phases):
            cached, new = (0, context) if phase == "prefill" else (context, draft_length + 1)
            points += roofline_points(served, phase, batches, cached, new)
    with figure_style():
        save_figure(roofline_figure(above, points, title=f"{', '.join(model)}, context {context}"), output)
    click.echo(f"wrote {output}")


@plot.command("speedup")
@speculation_options(drafters_option, acceptances_option, acceptance_from_option, batch="1,8,64")
@serving_options
@figure_option
def speedup_command(
    acceptances: tuple[str, ...],
    acceptance_files: tuple[str, ...],
    output: Path,
    **given: Any,  # noqa: ANN401 - the question is passed on by name
) -> None:
    """Draw speedup against draft length and against batch."""
    from rooflines.output.figures.style import file_type
    from rooflines.output.plan_report import draw_plan
    from rooflines.studies.plan import make_plan

    file_type(output)
    plan = make_plan(plan_question(acceptances, acceptance_files, given))
    for note in plan.warnings:
        click.echo(f"rooflines: warning: {note}", err=True)
    draw_plan(plan, output)
    click.echo(f"wrote {output}")


plot.add_command(pareto_command)
plot.add_command(verify_command)
