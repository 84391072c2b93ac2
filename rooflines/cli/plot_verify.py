"""``rooflines plot verify``: what verifying costs, against the positions verified."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    architecture_options,
    calibration_option,
    deployment_options,
    emit_rows,
    figure_option,
    parse_integers,
    rows_option,
)
from rooflines.errors import InputError

# Of a figure that is read.
_MOST_PANELS: Final = 8


@click.command("verify")
@click.option(
    "--hardware", required=True, multiple=True, metavar="NAME|FILE", help="Device; repeat for several."
)
@click.option("--model", required=True, metavar="NAME|PATH", help="Model: see `rooflines models list`.")
@click.option(
    "--batch", default="1,32", show_default=True, metavar="A..B|A,B", help="Sequences; a panel each."
)
@click.option(
    "--positions",
    default="1..64",
    show_default=True,
    metavar="A..B|A,B",
    help="Positions verified per sequence: of a chain, the draft length and one more.",
)
@click.option(
    "--context", required=True, type=click.IntRange(0, LARGEST_COUNT), help="Cached positions per sequence."
)
@deployment_options
@architecture_options
@calibration_option
@rows_option
@figure_option
def verify_command(
    hardware: tuple[str, ...],
    model: str,
    batch: str,
    positions: str,
    context: int,
    tp: int,
    weight_dtype: str | None,
    kv_dtype: str | None,
    overhead: str,
    ep: int,
    routing: str,
    encoder_positions: int | None,
    calibration: str,
    rows_file: Path | None,
    output: Path,
) -> None:
    """Draw the time of a verify pass in plain steps against its positions."""
    from rooflines.output.figures.style import figure_style, file_type, save_figure
    from rooflines.output.figures.verify_cost import verify_cost_figure
    from rooflines.rows import as_columns
    from rooflines.studies.serve import make_deployment, make_machine
    from rooflines.studies.verify_cost import verify_rows

    file_type(output)
    batches, widths = parse_integers(batch, "batch", 1), parse_integers(positions, "positions", 1)
    if len(batches) > _MOST_PANELS:
        raise InputError(f"--batch {batch}: {len(batches)} panels are too many; give {_MOST_PANELS} at most")
    rows = []
    for device in dict.fromkeys(hardware):
        target = make_deployment(
            model,
            make_machine(device, calibration, overhead),
            weight_dtype=weight_dtype,
            kv_dtype=kv_dtype,
            tensor=tp,
            expert=ep,
            routing=routing,
            encoder_positions=encoder_positions,
        )
        rows += verify_rows(target, batches, context, widths)
    served = model if tp == 1 else f"{model} on {tp} devices"
    with figure_style():
        save_figure(verify_cost_figure(rows, f"Verifying for {served}, context {context}"), output)
    emit_rows(lambda: as_columns(rows), rows_file)
    click.echo(f"wrote {output}")
