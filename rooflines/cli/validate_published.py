"""``rooflines validate speedups`` and ``validate acceptance``: published numbers against ours."""

from __future__ import annotations

from pathlib import Path

import click

from rooflines.cli.options import (
    calibration_option,
    emit_answer,
    emit_rows,
    files_argument,
    format_option,
    output_option,
    rows_option,
)


@click.command()
@files_argument
@calibration_option
@rows_option
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
    from rooflines.studies.serve import make_machine
    from rooflines.validation.published.judge import (
        document,
        row_columns,
        validate_speedups,
        verdict_columns,
    )

    found = validate_speedups(
        files, lambda device, own: make_machine(device, own if calibration == "auto" else calibration)
    )
    emit_rows(lambda: row_columns(found), rows_file)
    emit_answer(
        fmt,
        output,
        document=lambda: document(found),
        columns=lambda: verdict_columns(found.verdicts),
        text=lambda: speedups_text(found, fmt),
    )


@click.command()
@files_argument
@rows_option
@format_option
@output_option
def acceptance(files: tuple[Path, ...], rows_file: Path | None, fmt: str, output: Path | None) -> None:
    """Hold published rates per position and accepted lengths against each other.

    FILEs are CSV tables of rates by position with the length printed beside them, or of accepted lengths by
    draft length (docs/published.md).
    """
    from rooflines.output.published_tables import acceptance_document, acceptance_text
    from rooflines.validation.published.acceptance import (
        row_columns,
        source_columns,
        validate_acceptance,
    )

    found = validate_acceptance(files)
    emit_rows(lambda: row_columns(found), rows_file)
    emit_answer(
        fmt,
        output,
        document=lambda: acceptance_document(found),
        columns=lambda: source_columns(found.judged),
        text=lambda: acceptance_text(found, fmt),
    )
