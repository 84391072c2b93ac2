"""``rooflines compare``: what else makes decoding faster."""

from __future__ import annotations

from pathlib import Path

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    calibration_option,
    deployment_options,
    emit,
    format_option,
    hardware_option,
    output_option,
    parse_integers,
)


@click.command()
@hardware_option
@click.option("--target", required=True, metavar="NAME|PATH", help="The model as it is.")
@click.option(
    "--drafter", required=True, metavar="KIND[:MODEL][,KEY=VALUE..]", help="Who would draft for it."
)
@click.option(
    "--acceptance", required=True, metavar="ALPHA|DEFINITION:VALUES", help="Of its drafts: 0.8, survival:..."
)
@click.option(
    "--lossy-acceptance",
    metavar="ALPHA|DEFINITION:VALUES",
    help="Of the same drafts under a lossy rule, such as typical acceptance; left out without it.",
)
@click.option(
    "--quantize",
    "quantized",
    default="fp8,int4-g128",
    show_default=True,
    metavar="DTYPE,..",
    help="Formats to quantise the target to.",
)
@click.option("--smaller", multiple=True, metavar="NAME|PATH", help="A model to distil to; repeat it.")
@click.option("--draft-length", default="1..8", show_default=True, metavar="A..B|A,B", help="Draft lengths.")
@click.option("--batch", default="1", show_default=True, metavar="A..B|A,B", help="Sequences in the batch.")
@click.option(
    "--context", required=True, type=click.IntRange(0, LARGEST_COUNT), help="Cached positions per sequence."
)
@deployment_options
@calibration_option
@format_option
@output_option
def compare(
    hardware: str,
    target: str,
    drafter: str,
    acceptance: str,
    lossy_acceptance: str | None,
    quantized: str,
    smaller: tuple[str, ...],
    draft_length: str,
    batch: str,
    context: int,
    tp: int,
    weight_dtype: str | None,
    kv_dtype: str | None,
    overhead: str,
    calibration: str,
    fmt: str,
    output: Path | None,
) -> None:
    """Speculate, quantise or distil: what gains how much?"""
    from rooflines.output.alternatives_text import alternatives_text
    from rooflines.output.tables import document_text, render
    from rooflines.studies.alternatives import AlternativesQuestion, compare_alternatives

    answer = compare_alternatives(
        AlternativesQuestion(
            hardware=hardware,
            target=target,
            drafter=drafter,
            acceptance=acceptance,
            draft_lengths=parse_integers(draft_length, "draft length", 0),
            batches=parse_integers(batch, "batch", 1),
            context=context,
            quantized=tuple(part.strip() for part in quantized.split(",") if part.strip()),
            smaller=smaller,
            lossy_acceptance=lossy_acceptance,
            tensor_parallel=tp,
            weight_dtype=weight_dtype,
            kv_dtype=kv_dtype,
            overhead=overhead,
            calibration=calibration,
        )
    )
    if fmt == "json":
        emit(document_text(answer.document()), output)
    elif fmt == "csv":
        emit(render({name: [row[name] for row in answer.rows] for name in answer.rows[0]}, fmt), output)
    else:
        emit(alternatives_text(answer, fmt), output)
