"""``rooflines plan``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    architecture_options,
    calibration_option,
    deployment_options,
    emit,
    format_option,
    hardware_option,
    html_option,
    output_option,
    parse_integers,
    read_document,
)

if TYPE_CHECKING:
    from rooflines.studies.plan import Plan


@click.command()
@hardware_option
@click.option("--target", required=True, metavar="NAME|PATH", help="The model that is sped up.")
@click.option(
    "--drafter",
    "drafters",
    required=True,
    multiple=True,
    metavar="KIND[:MODEL][,KEY=VALUE..]",
    help="Who drafts: independent:llama-3.2-1b, eagle3:depth=6,topk=10,nodes=59, ...; repeat it to compare.",
)
@click.option(
    "--acceptance",
    "acceptances",
    multiple=True,
    metavar="[NAME=]ALPHA|DEFINITION:VALUES",
    help="0.8, conditional:0.8,0.75, survival:..., accepted-length:3.1@5 ...; repeat it with NAME= (a "
    "drafter as written, or its kind) to give each its own.",
)
@click.option(
    "--acceptance-from",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What an engine printed: a log, metrics, a benchmark's JSON or a CSV (see `rooflines import`).",
)
@click.option("--draft-length", default="1..8", show_default=True, metavar="A..B|A,B", help="Draft lengths.")
@click.option("--verify-length", type=int, help="Drafted tokens that are verified at most (default: all).")
@click.option(
    "--adaptive-verify", is_flag=True, help="Also choose how many drafted positions of a batch to verify."
)
@click.option("--batch", default="1", show_default=True, metavar="A..B|A,B", help="Sequences in the batch.")
@click.option(
    "--context", required=True, type=click.IntRange(0, LARGEST_COUNT), help="Cached positions per sequence."
)
@click.option(
    "--cycle-overhead", default="0 s", show_default=True, help="Host time per cycle, such as '1 ms'."
)
@click.option("--memory-reserve", default=0.1, show_default=True, help="Share of the memory kept free.")
@click.option(
    "--emit", "engine", metavar="vllm|sglang|trtllm|llamacpp", help="Print that engine's settings instead."
)
@click.option("--best-tree", is_flag=True, help="Also choose size and depth of the trees that are proposed.")
@click.option(
    "--explain",
    is_flag=True,
    help="Also say where verifying stops being free, what drafting costs, what rejection loses, and what "
    "each further token adds.",
)
@click.option("--compare", type=click.Path(dir_okay=False, path_type=Path), help="An earlier answer (JSON).")
@click.option(
    "--steps",
    metavar="FILE",
    help="Measured steps of the target in place of constants: llama-bench -o json, a file of measurements or "
    "a calibration with a table; a drafter takes its own as steps=FILE.",
)
@deployment_options
@architecture_options
@calibration_option
@html_option
@format_option
@output_option
def plan(
    hardware: str,
    target: str,
    drafters: tuple[str, ...],
    acceptances: tuple[str, ...],
    acceptance_from: Path | None,
    draft_length: str,
    verify_length: int | None,
    adaptive_verify: bool,
    batch: str,
    context: int,
    cycle_overhead: str,
    memory_reserve: float,
    engine: str | None,
    best_tree: bool,
    explain: bool,
    compare: Path | None,
    steps: str | None,
    tp: int,
    weight_dtype: str | None,
    kv_dtype: str | None,
    overhead: str,
    ep: int,
    routing: str,
    encoder_positions: int | None,
    calibration: str,
    html: Path | None,
    fmt: str,
    output: Path | None,
) -> None:
    """Should I speculate, with which draft length, at which batch?"""
    from rooflines.studies.plan import PlanQuestion, make_plan

    acceptances = _acceptances(acceptances, acceptance_from)
    answer = make_plan(
        PlanQuestion(
            hardware=hardware,
            target=target,
            drafters=drafters,
            acceptance=acceptances[0] if len(acceptances) == 1 else acceptances,
            draft_lengths=parse_integers(draft_length, "draft length", 0),
            batches=parse_integers(batch, "batch", 1),
            context=context,
            tensor_parallel=tp,
            weight_dtype=weight_dtype,
            kv_dtype=kv_dtype,
            overhead=overhead,
            expert_parallel=ep,
            routing=routing,
            encoder_positions=encoder_positions,
            cycle_overhead=cycle_overhead,
            calibration=calibration,
            steps=steps,
            memory_reserve=memory_reserve,
            verify_length=verify_length,
            adaptive_verify=adaptive_verify,
            best_tree=best_tree,
            explain=explain,
        )
    )
    for note in answer.warnings:
        click.echo(f"rooflines: warning: {note}", err=True)
    if html is not None:
        from rooflines.output.page import write_page
        from rooflines.output.plan_page import plan_page

        write_page(plan_page(answer), html)
        click.echo(f"wrote {html}", err=True)
    if engine is not None:
        from rooflines.output.engine_settings import engine_settings

        emit(engine_settings(answer, engine), output)
    elif compare is not None:
        emit(_comparison(compare, answer), output)
    else:
        from rooflines.output.plan_text import plan_text

        emit(plan_text(answer, fmt), output)


def _acceptances(given: tuple[str, ...], printed: Path | None) -> tuple[str, ...]:
    """What was given on the command line, or what an engine printed; one of the two."""
    if printed is not None and not given:
        from rooflines.measurement.readers.catalogue import acceptance_text_from

        return (acceptance_text_from(printed),)
    if printed is not None or not given:
        raise click.UsageError("Give --acceptance or --acceptance-from, one of the two.")
    return given


def _comparison(path: Path, answer: Plan) -> str:
    from rooflines.studies.plan_words import compare_plans

    changes = compare_plans(read_document(path, "the earlier answer"), answer.document())
    return "\n".join(changes) if changes else "Nothing changed."
