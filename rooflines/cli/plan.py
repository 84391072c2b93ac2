"""``rooflines plan``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    architecture_options,
    calibration_option,
    deployment_options,
    document_text,
    emit,
    format_option,
    hardware_option,
    output_option,
    parse_integers,
    read_document,
)
from rooflines.errors import InputError
from rooflines.output.tables import render
from rooflines.units import format_quantity

if TYPE_CHECKING:
    from rooflines.studies.plan import Plan

_SHOWN: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
    "verify_width": "verify",
    "tokens_per_cycle": "tokens/cycle",
    "target_step_s": "target step",
    "draft_s": "draft time",
    "verify_s": "verify time",
    "cycle_cost": "cycle cost",
    "cost_ratio": "cost ratio",
    "speedup": "speedup",
    "leviathan_speedup": "Leviathan",
    "tokens_per_s": "tokens/s",
    "verify_bound": "verify bound",
}


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
@deployment_options
@architecture_options
@calibration_option
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
            memory_reserve=memory_reserve,
            verify_length=verify_length,
            adaptive_verify=adaptive_verify,
            best_tree=best_tree,
            explain=explain,
        )
    )
    for note in answer.warnings:
        click.echo(f"rooflines: warning: {note}", err=True)
    if engine is not None:
        from rooflines.output.engine_settings import engine_settings

        emit(engine_settings(answer, engine), output)
    elif compare is not None:
        emit(_comparison(compare, answer), output)
    else:
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


def plan_text(answer: Plan, fmt: str) -> str:
    """A plan in any of the formats.

    Raises:
        InputError: an unknown format.
    """
    if fmt == "json":
        return document_text(answer.document())
    if fmt == "csv":
        return render(answer.columns(), fmt)
    if fmt not in ("text", "markdown"):
        raise InputError(f"unknown format {fmt!r}; known: text, markdown, csv, json")
    parts = [
        answer.text,
        f"Basis: {answer.basis}. Acceptance: {_acceptance(answer)}, as given.",
        render(_readable(answer), fmt),
        render(_memory(answer), fmt, "Memory of one device"),
        render(_break_even(answer), fmt, "What would change the answer"),
        *([render(_schedule(answer), fmt, "Draft by batch")] if answer.schedule else ()),
        *_asked_for(answer, fmt),
        "Not modelled: " + "; ".join(answer.not_modeled) + ".",
    ]
    return "\n\n".join(parts)


def _acceptance(answer: Plan) -> str:
    texts = {entry["acceptance"] for entry in answer.acceptances}
    if len(texts) == 1:
        return texts.pop()
    return ", ".join(f"{entry['drafter']} {entry['acceptance']}" for entry in answer.acceptances)


def _schedule(answer: Plan) -> dict[str, list[object]]:
    several = len(answer.question.drafters) > 1
    return {
        "batch": [
            f"{entry['first_batch']}..{entry['last_batch']}"
            if entry["last_batch"] > entry["first_batch"]
            else entry["first_batch"]
            for entry in answer.schedule
        ],
        **({"drafter": [entry["drafter"] or "none" for entry in answer.schedule]} if several else {}),
        "draft": [entry["draft_length"] for entry in answer.schedule],
        "speedup at least": [entry["speedup"] for entry in answer.schedule],
    }


_BUDGET: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
    "verify_length": "verified",
    "verify_positions": "positions",
    "tokens_per_cycle": "tokens/cycle",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_all_verified": "tokens/s, all verified",
    "speedup": "speedup",
}
_TREES: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "depth": "depth",
    "nodes": "nodes",
    "widths": "nodes by level",
    "tokens_per_cycle": "tokens/cycle",
    "cycle_cost": "cycle cost",
    "speedup": "speedup",
}
_REALITIES: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "draft_length": "draft",
    "memory_bound_width": "memory binds to width",
    "memory_bound_positions": "positions",
    "verify_cost": "verify cost",
    "draft_cost": "draft cost",
    "draft_share": "draft share",
    "accepted": "accepted",
    "lost_to_prefix": "lost to prefix",
    "wrong": "wrong",
}
_MARGINAL: Final = {
    "drafter": "drafter",
    "batch": "batch",
    "position": "token",
    "tokens": "tokens it adds",
    "cost": "steps it costs",
    "speedup": "speedup with it",
    "speedup_gain": "gain",
}


def _asked_for(answer: Plan, fmt: str) -> list[str]:
    tables = (
        (answer.verify_budget, _BUDGET, "How much of a draft to verify"),
        (_spaced(answer.best_trees), _TREES, "Best tree"),
        (answer.realities, _REALITIES, "Where a cycle goes (in plain decode steps, and in drafted tokens)"),
        (answer.marginal, _MARGINAL, "What each further token adds"),
    )
    return [
        render({title: [row[name] for row in rows] for name, title in titles.items()}, fmt, heading)
        for rows, titles, heading in tables
        if rows
    ]


def _spaced(trees: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "widths": " ".join(map(str, row["widths"]))} for row in trees]


def _readable(answer: Plan) -> dict[str, list[object]]:
    columns = answer.columns()
    if len(set(columns["drafter"])) == 1:
        columns.pop("drafter")
    return {
        title: [
            format_quantity(float(str(value)), "s") if name.endswith("_s") and value is not None else value
            for value in columns[name]
        ]
        if name != "tokens_per_s"
        else columns[name]
        for name, title in _SHOWN.items()
        if name in columns
    }


def _memory(answer: Plan) -> dict[str, list[object]]:
    names = {
        "batch": "batch",
        "weights_bytes": "weights",
        "drafter_weights_bytes": "drafter",
        "kv_bytes": "KV",
        "drafter_kv_bytes": "drafter KV",
        "reserve_bytes": "reserve",
        "capacity_bytes": "capacity",
        "fits": "fits",
        "largest_batch": "largest batch",
    }
    shown: dict[str, list[object]] = {}
    if len({row["drafter"] for row in answer.memory}) > 1:
        shown["for"] = [row["drafter"] for row in answer.memory]
    for key, title in names.items():
        shown[title] = [
            format_quantity(row[key], "byte") if key.endswith("_bytes") else row[key] for row in answer.memory
        ]
    return shown


def _break_even(answer: Plan) -> dict[str, list[object]]:
    return {
        "batch": [entry["batch"] for entry in answer.recommendation],
        "draft": [entry["draft_length"] for entry in answer.recommendation],
        "speedup": [entry["speedup"] for entry in answer.recommendation],
        "break-even acceptance": [entry["break_even_acceptance"] for entry in answer.recommendation],
        "break-even cost ratio": [entry["break_even_cost_ratio"] for entry in answer.recommendation],
    }
