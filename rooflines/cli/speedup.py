"""``rooflines speedup``: the closed form."""

from __future__ import annotations

from pathlib import Path

import click

from rooflines.cli.options import emit_answer, format_option, output_option, parse_integers
from rooflines.output.tables import render


@click.command()
@click.option(
    "--acceptance", required=True, metavar="ALPHA|DEFINITION:VALUES", help="0.8, conditional:0.8,0.75 ..."
)
@click.option("--draft-length", required=True, metavar="N|A..B|A,B", help="Tokens drafted per cycle (gamma).")
@click.option("--cost-ratio", required=True, type=float, help="Draft time per token in target steps (c).")
@click.option("--verify-cost", default=1.0, show_default=True, help="Verify pass in target steps.")
@click.option("--overhead", default=0.0, show_default=True, help="Per cycle, in target steps.")
@format_option
@output_option
def speedup(
    acceptance: str,
    draft_length: str,
    cost_ratio: float,
    verify_cost: float,
    overhead: float,
    fmt: str,
    output: Path | None,
) -> None:
    """Speedup from acceptance, draft length and cost ratio alone."""
    from rooflines.speculation.acceptance_text import parse_acceptance
    from rooflines.studies.speedup import study_speedup

    lengths = parse_integers(draft_length, "draft length", 0)
    study = study_speedup(parse_acceptance(acceptance), lengths, cost_ratio, verify_cost, overhead)
    question = {
        "acceptance": acceptance,
        "draft_lengths": list(lengths),
        "cost_ratio": cost_ratio,
        "verify_cost": verify_cost,
        "overhead": overhead,
    }
    emit_answer(
        fmt,
        output,
        document=lambda: study.document(question),
        columns=lambda: study.columns,
        text=lambda: f"{study.text}\n\n{render(study.columns, fmt)}",
    )
