"""``rooflines check``: does measured speculation follow from what is known?"""

from __future__ import annotations

from pathlib import Path

import click

from rooflines.cli.options import emit, emit_answer, format_option, output_option

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=_FILE)
@click.option(
    "--calibration", metavar="NAME|FILE", help="Adds the roofline layer: rooflines calibrate decode."
)
@click.option("--hardware", metavar="NAME|FILE", help="Profile that the calibration belongs to.")
@click.option("--tolerance", metavar="15%", help="Largest difference of speedups that passes (default: 15%).")
@click.option("--baseline", metavar="FILE", type=_FILE, help="An accepted run, to be no slower than.")
@click.option("--junit", metavar="FILE", type=_FILE, help="Also write JUnit XML.")
@click.option("--markdown", metavar="FILE", type=_FILE, help="Also write a summary in Markdown.")
@click.option("--annotations", is_flag=True, help="Also print GitHub annotations.")
@format_option
@output_option
def check(
    file: Path,
    calibration: str | None,
    hardware: str | None,
    tolerance: str | None,
    baseline: Path | None,
    junit: Path | None,
    markdown: Path | None,
    annotations: bool,
    fmt: str,
    output: Path | None,
) -> int:
    """Does measured speculation follow from what is known?

    Two predictions of its speedup are held against it: from its parts, and from the roofline beneath.

    FILE comes from rooflines measure speculation. Exit code 0: all cases agree; 1: some disagree, and the
    part at fault is named; 3: too noisy to tell. What is not given here is read from [tool.rooflines.check]
    of ./pyproject.toml.
    """
    from rooflines.output.check_report import (
        check_columns,
        check_document,
        check_text,
        github_annotations,
        junit_text,
    )
    from rooflines.validation.check_settings import CheckSettings, read_settings, run_check

    given = CheckSettings(tolerance, calibration, hardware, baseline, junit, markdown)
    settings = given.over(read_settings(Path()))
    report = run_check(file, settings)
    emit_answer(
        fmt,
        output,
        document=lambda: check_document(report),
        columns=lambda: check_columns(report),
        text=lambda: check_text(report, fmt),
    )
    if settings.junit:
        emit(junit_text(report), settings.junit)
    if settings.markdown:
        emit(check_text(report, "markdown"), settings.markdown)
    lines = github_annotations(report) if annotations else ""
    if lines:
        click.echo(lines)
    return report.exit_code
