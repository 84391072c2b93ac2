"""``rooflines validate``: hold predictions against measured times."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from rooflines.cli.lazy import LazyGroup
from rooflines.cli.options import (
    emit_answer,
    emit_rows,
    files_argument,
    format_option,
    output_option,
    rows_option,
)

# Subcommand -> (where it is, its line in the help), imported only when it runs.
SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "kernels": (
        "rooflines.cli.validate:kernels",
        "Predict every row of tables of measured kernels, without fitting to them.",
    ),
    "serving": (
        "rooflines.cli.validate_serving:serving",
        "Predict every row of tables of serving benchmarks, without fitting to them.",
    ),
    "speedups": (
        "rooflines.cli.validate_published:speedups",
        "Predict every row of tables of published speedups from facts alone.",
    ),
    "acceptance": (
        "rooflines.cli.validate_published:acceptance",
        "Hold published rates per position and accepted lengths against each other.",
    ),
}


@click.group(cls=LazyGroup, table=SUBCOMMANDS, noun="validation")
def validate() -> None:
    """Hold predictions against measured times."""


@click.command()
@files_argument
@click.option(
    "--calibration",
    default="auto",
    show_default=True,
    metavar="auto|none|textbook|NAME|FILE",
    help="auto: that of each group's own software stack where there is one.",
)
@rows_option
@format_option
@output_option
def kernels(
    files: tuple[Path, ...], calibration: str, rows_file: Path | None, fmt: str, output: Path | None
) -> None:
    """Predict every row of tables of measured kernels, without fitting to them.

    FILEs are CSV tables of products, attention, experts or all-reduces, known by their columns
    (docs/validation.md). Errors are given by device, engine, dtype, operator class and region, with the
    coverage of the 90 % intervals and the plain roofline beside them.
    """
    from rooflines.output.validation_tables import kernel_validation_text
    from rooflines.validation.judge_tables import document, row_columns, validate_kernels, verdict_columns

    found = validate_kernels(files, calibration)
    emit_rows(lambda: row_columns(found), rows_file)
    emit_answer(
        fmt,
        output,
        document=lambda: document(found),
        columns=lambda: verdict_columns(found.verdicts),
        text=lambda: kernel_validation_text(found, fmt),
    )
