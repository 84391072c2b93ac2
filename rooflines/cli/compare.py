"""``rooflines compare``: what else makes decoding faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflines.cli.options import emit_answer, format_option, output_option, routing_option
from rooflines.cli.plan_options import (
    acceptance_option,
    drafter_option,
    points,
    serving_options,
    speculation_options,
)


@click.command()
@speculation_options(
    drafter_option,
    acceptance_option,
    click.option(
        "--lossy-acceptance",
        metavar="ALPHA|DEFINITION:VALUES",
        help="Of the same drafts under a lossy rule, such as typical acceptance; left out without it.",
    ),
    click.option(
        "--quantize",
        "quantized",
        default="fp8,int4-g128",
        show_default=True,
        metavar="DTYPE,..",
        help="Formats to quantise the target to.",
    ),
    click.option("--smaller", multiple=True, metavar="NAME|PATH", help="A model to distil to; repeat it."),
    batch="1",
)
@serving_options
@routing_option
@format_option
@output_option
def compare(
    quantized: str,
    fmt: str,
    output: Path | None,
    **given: Any,  # noqa: ANN401 - the question is passed on by name
) -> None:
    """Speculate, quantise or distil: what gains how much?"""
    from rooflines.output.alternatives_text import alternatives_text
    from rooflines.rows import as_columns
    from rooflines.studies.alternatives import AlternativesQuestion, compare_alternatives

    formats = tuple(part.strip() for part in quantized.split(",") if part.strip())
    answer = compare_alternatives(AlternativesQuestion(quantized=formats, **points(given), **given))
    emit_answer(
        fmt,
        output,
        document=answer.document,
        columns=lambda: as_columns(answer.rows),
        text=lambda: alternatives_text(answer, fmt),
    )
