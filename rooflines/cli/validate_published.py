"""``rooflines validate speedups`` and ``validate acceptance``: published numbers against ours."""

from __future__ import annotations

from pathlib import Path

import click

from rooflines.cli.options import calibration_option, document_text, emit, format_option, output_option

_FILES = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(dir_okay=False, path_type=Path)
)
_ROWS = click.option(
    "--rows",
    "rows_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every row with its prediction to this CSV file.",
)


@click.command()
@_FILES
@calibration_option
@_ROWS
@format_option
@output_option
def speedups(
    files: tuple[Path, ...], calibration: str, rows_file: Path | None, fmt: str, output: Path | None
) -> None:
    """Predict every row of tables of published speedups from facts alone.

    FILEs are CSV tables of published or reported speedups (docs/published.md). Errors are given by source,
    with rows that are impossible, rows that were left out, and what was assumed.
    """
    from rooflines.output.published_tables import speedups_text
    from rooflines.output.tables import render
    from rooflines.studies.serve import make_machine
    from rooflines.validation.published.judge import (
        document,
        row_columns,
        validate_speedups,
        verdict_columns,
    )

    found = validate_speedups(files, lambda device: make_machine(device, calibration))
    if rows_file is not None:
        emit(render(row_columns(found.predicted), "csv"), rows_file)
    if fmt == "json":
        emit(document_text(document(found)), output)
    elif fmt == "csv":
        emit(render(verdict_columns(found.verdicts), fmt), output)
    else:
        emit(speedups_text(found, fmt), output)


@click.command()
@_FILES
@_ROWS
@format_option
@output_option
def acceptance(files: tuple[Path, ...], rows_file: Path | None, fmt: str, output: Path | None) -> None:
    """Hold published rates per position and accepted lengths against each other.

    FILEs are CSV tables of rates by position with the length printed beside them, or of accepted lengths by
    draft length (docs/published.md).
    """
    from rooflines.output.published_tables import acceptance_document, acceptance_text
    from rooflines.output.tables import render
    from rooflines.validation.published.acceptance import (
        acceptance_columns,
        source_columns,
        validate_acceptance,
    )

    found = validate_acceptance(files)
    if rows_file is not None:
        emit(render(acceptance_columns(found.judged), "csv"), rows_file)
    if fmt == "json":
        emit(document_text(acceptance_document(found)), output)
    elif fmt == "csv":
        emit(render(source_columns(found.judged), fmt), output)
    else:
        emit(acceptance_text(found, fmt), output)
