"""``rooflines validate serving``: serving benchmarks against predictions."""

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
def serving(
    files: tuple[Path, ...], calibration: str, rows_file: Path | None, fmt: str, output: Path | None
) -> None:
    """Predict every row of tables of serving benchmarks, without fitting to them.

    FILEs are CSV tables with time per token and time to first token by model, device, degree of parallelism,
    lengths and concurrency (docs/capacity.md). Errors are given by source, with the coverage of the 90 %
    intervals, and the rows that were left out.
    """
    from rooflines.output.serving_validation import (
        row_columns,
        serving_document,
        serving_text,
        verdict_columns,
    )
    from rooflines.studies.serve import make_machine
    from rooflines.validation.serving import judge_serving, predict_serving
    from rooflines.validation.serving_tables import read_serving

    rows = [row for file in files for row in read_serving(file)]
    predicted, left_out = predict_serving(
        rows,
        lambda device: make_machine(device, calibration),
        lambda device: make_machine(device, "textbook"),
    )
    emit_rows(lambda: row_columns(predicted, left_out), rows_file)
    emit_answer(
        fmt,
        output,
        document=lambda: serving_document(predicted, left_out),
        columns=lambda: verdict_columns(judge_serving(predicted)),
        text=lambda: serving_text(predicted, left_out, fmt),
    )
