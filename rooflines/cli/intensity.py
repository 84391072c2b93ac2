"""``rooflines intensity``: a pass, operator by operator."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    calibration_option,
    counting_options,
    deployment_options,
    emit_answer,
    format_option,
    hardware_option,
    output_option,
)
from rooflines.errors import InputError
from rooflines.output.tables import render
from rooflines.units import format_quantity


def _count(least: int) -> click.IntRange:
    return click.IntRange(least, LARGEST_COUNT)


@click.command()
@hardware_option
@click.option("--model", required=True, metavar="NAME|PATH", help="Model: see `rooflines models list`.")
@click.option(
    "--phase", required=True, type=click.Choice(["decode", "prefill", "verify"]), help="Which pass."
)
@click.option("--batch", default=1, show_default=True, type=_count(1), help="Sequences.")
@click.option(
    "--context", required=True, type=_count(0), help="Positions cached per sequence (prefill: prompt length)."
)
@click.option("--new-tokens", type=_count(1), help="New positions per sequence.")
@click.option("--draft-length", type=_count(0), help="Of a verify: new positions less one.")
@deployment_options
@counting_options
@calibration_option
@format_option
@output_option
def intensity(
    hardware: str,
    model: str,
    phase: str,
    batch: int,
    context: int,
    new_tokens: int | None,
    draft_length: int | None,
    tp: int,
    weight_dtype: str | None,
    kv_dtype: str | None,
    overhead: str,
    ep: int,
    routing: str,
    encoder_positions: int | None,
    calibration: str,
    fmt: str,
    output: Path | None,
) -> None:
    """Cost, intensity and time of a pass, operator by operator."""
    from rooflines.studies.intensity import study_intensity
    from rooflines.studies.serve import make_deployment, make_machine

    if draft_length is not None:
        if phase != "verify" or new_tokens is not None:
            raise InputError("--draft-length goes with --phase verify, in place of --new-tokens")
        new_tokens = draft_length + 1
    machine = make_machine(hardware, calibration, overhead)
    deployment = make_deployment(
        model,
        machine,
        weight_dtype=weight_dtype,
        kv_dtype=kv_dtype,
        tensor=tp,
        expert=ep,
        routing=routing,
        encoder_positions=encoder_positions,
    )
    study = study_intensity(deployment, phase, batch, context, new_tokens)
    question = {
        "hardware": machine.profile.id,
        "model": deployment.model.name,
        "phase": phase,
        "batch": batch,
        "context": context,
        "new_tokens": new_tokens,
        "tensor_parallel": tp,
        "expert_parallel": ep,
        "routing": routing,
        "encoder_positions": encoder_positions,
        "weight_dtype": weight_dtype,
        "kv_dtype": kv_dtype,
        "calibration": calibration,
    }
    emit_answer(
        fmt,
        output,
        document=lambda: study.document(question),
        columns=lambda: study.columns,
        text=lambda: f"{study.text}\nBasis: {study.basis}.\n\n{render(_readable(study.columns), fmt)}",
    )


_TIMES: Final = {"time_s": "time", "time_low_s": "from", "time_high_s": "to"}


def _readable(columns: dict[str, list[object]]) -> dict[str, list[object]]:
    """The table for people: quantities with prefixes, empty columns left out."""
    shown: dict[str, list[object]] = {}
    for name, values in columns.items():
        if all(not value for value in values):
            continue
        if name == "flops":
            shown["FLOPs"] = [_quantity(value, "FLOP") for value in values]
        elif name.endswith("_bytes"):
            shown[name.removesuffix("_bytes")] = [_quantity(value, "byte") for value in values]
        elif name == "attainable_flop_per_s":
            shown["attainable"] = [_quantity(value, "FLOP/s") for value in values]
        elif name == "intensity_flop_per_byte":
            shown["FLOP/B"] = values
        elif name in _TIMES:
            shown[_TIMES[name]] = [_quantity(value, "s") for value in values]
        elif name == "share":
            shown["share"] = [f"{100 * float(str(value)):.1f} %" for value in values]
        else:
            shown[name] = values
    return shown


def _quantity(value: object, dimension: str) -> str:
    return format_quantity(float(str(value)), dimension) if value else ""  # type: ignore[arg-type]  # a literal
