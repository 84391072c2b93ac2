"""``rooflines measure speculation``: a real speculative loop beside plain decoding."""

from __future__ import annotations

from pathlib import Path

import click

from rooflines.cli.measure import device_options
from rooflines.cli.options import parse_integers
from rooflines.cli.progress import progress_bar


@click.command("speculation")
@click.option("--model", required=True, metavar="PATH|HUB ID|PRESET", help="A preset gets random weights.")
@click.option(
    "--output",
    required=True,
    metavar="FILE.json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Every cycle; a killed run continues when it is started again.",
)
@click.option(
    "--drafter",
    "drafters",
    multiple=True,
    default=("prompt-lookup", "int4"),
    show_default=True,
    metavar="KIND[:PARAMETERS]",
    help="prompt-lookup, int4, early-exit:LAYERS, independent:MODEL, forced:ALPHA[:DRAFTER]; repeatable.",
)
@click.option(
    "--draft-length", default="1,2,4,6", show_default=True, metavar="A,B|A..B", help="Tokens per draft."
)
@click.option(
    "--prompts",
    default="chat,copying",
    show_default=True,
    metavar="KIND|NAME,...",
    help="chat, copying, code, or random:LENGTH for random weights.",
)
@click.option("--per-kind", type=click.IntRange(1), help="Take so many prompts of a kind (default: all).")
@click.option("--tokens", default=64, show_default=True, type=click.IntRange(1, 10**6), help="Of each run.")
@click.option("--sampling", default="greedy", show_default=True, metavar="greedy|temperature:T")
@click.option("--dtype", default="bf16", show_default=True, metavar="bf16|fp32|fp16", help="Of the weights.")
@device_options
@click.option(
    "--int4-group",
    default="32",
    show_default=True,
    type=click.Choice(["32", "64", "128", "256"]),
    help="Inputs that share a scale in the int4 copy.",
)
@click.option(
    "--lean/--no-lean", default=True, show_default=True, help="Our forward pass, or transformers' own."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all random choices.")
def speculation_command(
    model: str,
    output: Path,
    drafters: tuple[str, ...],
    draft_length: str,
    prompts: str,
    per_kind: int | None,
    tokens: int,
    sampling: str,
    dtype: str,
    device: str,
    threads: int,
    int4_group: str,
    lean: bool,
    seed: int,
) -> None:
    """Real speculation: draft, verify, accept, roll back, with plain decoding beside it.

    Both decode the same prompt in turns, token by token, so that what slows the machine down slows both.
    Every drafter runs with every draft length and prompt; what is finished survives a kill.
    """
    from rooflines.measurement.files import refuse_to_replace
    from rooflines.measurement.models import load_model
    from rooflines.measurement.speculation.choices import parse_drafter
    from rooflines.measurement.speculation.prompts import choose_prompts
    from rooflines.measurement.speculation.sampling import Sampling
    from rooflines.measurement.speculation.session import Question, measure_speculation
    from rooflines.measurement.speculation.summary import agreement, table
    from rooflines.output.tables import render

    refuse_to_replace(output)
    question = Question(
        drafters=tuple({choice.label: choice for choice in map(parse_drafter, drafters)}.values()),
        draft_lengths=parse_integers(draft_length, "draft length", 1),
        prompts=choose_prompts(prompts.split(","), per_kind),
        tokens=tokens,
        sampling=Sampling.parse(sampling),
        threads=threads,
        seed=seed,
        group_size=int(int4_group),
    )
    loaded = load_model(model, dtype, device, seed, lean=lean)
    with progress_bar("speculation") as progress:
        file = measure_speculation(loaded, question, output, progress)
    click.echo(render(table(file.runs), "text"))
    click.echo(f"\n{agreement(file)}\nwrote {output}")
    click.echo(f"{'stable' if file.stability.stable else 'UNSTABLE'}: {file.stability.advice}")
