"""``rooflines measure``: time this machine and what it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from rooflines.cli.lazy import LazyGroup
from rooflines.cli.options import emit, parse_integers, together
from rooflines.cli.progress import progress_bar
from rooflines.errors import InputError
from rooflines.units import parse_quantity

# Command -> (where it is, its line in the help); each is imported only to run it.
SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "machine": ("rooflines.cli.measure:machine_command", "Bandwidth, products and launches of this machine."),
    "decode": (
        "rooflines.cli.measure:decode_command",
        "Passes of a model: decode, verify, prefill, head, draft.",
    ),
    "speculation": (
        "rooflines.cli.measure_speculation:speculation_command",
        "Real speculation: draft, verify, accept, roll back, with plain decoding beside it.",
    ),
}


@click.group(cls=LazyGroup, table=SUBCOMMANDS, noun="measurement")
def measure() -> None:
    """Time this machine and what runs on it."""


device_options: Final = together(
    click.option("--device", default="cpu", show_default=True, metavar="cpu|cuda", help="Where to compute."),
    click.option(
        "--threads", default=1, show_default=True, type=click.IntRange(1, 4096), help="Threads that compute."
    ),
)


@click.command("machine")
@click.option(
    "--output",
    required=True,
    metavar="FILE.toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The profile; the raw times go into FILE.json beside it.",
)
@device_options
@click.option(
    "--stream", metavar="SIZE", help="Array that is read, such as '512 MiB' (default: 8 x last cache)."
)
@click.option(
    "--gemm",
    "gemm_side",
    type=click.IntRange(16, 65536),
    help="Side of square products (default: 1024 or 8192).",
)
@click.option("--dtype", "dtypes", multiple=True, metavar="fp32|bf16|fp16|int8", help="Products; repeatable.")
@click.option(
    "--rounds", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Times of each."
)
def machine_command(
    output: Path,
    device: str,
    threads: int,
    stream: str | None,
    gemm_side: int | None,
    dtypes: tuple[str, ...],
    rounds: int,
) -> None:
    """Bandwidth, products and launches of this machine.

    Writes a hardware profile that every command takes as --hardware FILE: read and copy bandwidth beyond the
    last cache, rate of square products by dtype, cost of a launch.
    """
    from rooflines.measurement.files import refuse_to_replace
    from rooflines.measurement.memory import fitting_memory
    from rooflines.measurement.models import require_torch
    from rooflines.measurement.probe import MachineQuestion, measure_machine
    from rooflines.measurement.profile_toml import profile_text

    if output.suffix != ".toml":
        raise InputError(f"{output} is no name of a profile: end it with .toml")
    refuse_to_replace(output)
    question = MachineQuestion(
        device=device,
        threads=threads,
        dtypes=dtypes or None,
        stream_bytes=None if stream is None else int(parse_quantity(stream, "byte")),
        gemm_side=gemm_side,
        rounds=rounds,
    )
    raw = output.with_suffix(".json")
    there = raw.exists()
    require_torch()
    with fitting_memory(), progress_bar("machine") as progress:
        file = measure_machine(question, raw, progress)
    emit(profile_text(file, raw.name), output)
    if there:
        click.echo(f"{raw} was there, measured {file.created}: the profile is made of it", err=True)
    _tell(file.stability.stable, file.stability.advice, output, raw)


@click.command("decode")
@click.option("--model", required=True, metavar="PATH|HUB ID|PRESET", help="A preset gets random weights.")
@click.option(
    "--output",
    required=True,
    metavar="FILE.json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The raw times; a killed run continues when it is started again.",
)
@click.option("--dtype", default="bf16", show_default=True, metavar="bf16|fp32|fp16", help="Of the weights.")
@device_options
@click.option("--batch", default="1,2,4,8,16", show_default=True, metavar="A,B|A..B", help="Sequences.")
@click.option(
    "--positions",
    default="1,2,3,4,5,6,8,9,12,16,24,32",
    show_default=True,
    metavar="A,B|A..B",
    help="New positions per sequence: 1 decodes, more verify.",
)
@click.option("--context", default="16,128,512,1024", show_default=True, help="Positions cached before.")
@click.option("--depth", help="Layers to run, such as 1,10,20 (default: all, half and a few).")
@click.option(
    "--prefill", default="16,64,128,256,512", show_default=True, help="Lengths of prompts; 0 for none."
)
@click.option("--cross", is_flag=True, help="Every combination instead of each axis alone.")
@click.option(
    "--int4-group",
    default="32",
    show_default=True,
    type=click.Choice(["0", "32", "64", "128", "256"]),
    help="0: no int4 copy.",
)
@click.option(
    "--rounds", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Times of each."
)
@click.option("--graphs/--no-graphs", default=True, show_default=True, help="CUDA graphs, on a GPU.")
@click.option(
    "--lean/--no-lean", default=True, show_default=True, help="Our forward pass, or transformers' own."
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Of weights, tokens, order."
)
def decode_command(
    model: str,
    output: Path,
    dtype: str,
    device: str,
    threads: int,
    batch: str,
    positions: str,
    context: str,
    depth: str | None,
    prefill: str,
    cross: bool,
    int4_group: str,
    rounds: int,
    graphs: bool,
    lean: bool,
    seed: int,
) -> None:
    """Passes of a model: decode, verify, prefill, head, draft.

    Times T(batch, new positions, context, depth) over a static cache, in interleaved rounds, on the CPU time
    of the thread or between events of a GPU. Each axis is varied alone from the first value of the others,
    and widths at the first and the last context.
    """
    from rooflines.measurement.cases import Grid
    from rooflines.measurement.decode import DecodeQuestion, measure_decode
    from rooflines.measurement.files import refuse_to_replace
    from rooflines.measurement.memory import fitting_memory
    from rooflines.measurement.models import load_model, require_torch

    refuse_to_replace(output)
    batches, widths = parse_integers(batch, "batch", 1), parse_integers(positions, "positions", 1)
    contexts, prompts = parse_integers(context, "context", 0), parse_integers(prefill, "prefill", 0)
    depths = () if depth is None else parse_integers(depth, "depth", 1)
    require_torch()
    with fitting_memory():
        loaded = load_model(model, dtype, device, seed, lean=lean)
    grid = Grid(
        batches=batches,
        positions=widths,
        contexts=contexts,
        depths=depths
        if depth or loaded.runner.name == "transformers"
        else _default_depths(loaded.runner.depth),
        prefills=tuple(length for length in prompts if length),
        cross=cross,
    )
    question = DecodeQuestion(
        grid=grid,
        threads=threads,
        rounds=rounds,
        group_size=int(int4_group) or None,
        graphs=graphs,
        seed=seed,
    )
    with fitting_memory(), progress_bar("decode") as progress:
        file = measure_decode(loaded, question, output, progress)
    _tell(file.stability.stable, file.stability.advice, output)


def _default_depths(layers: int) -> tuple[int, ...]:
    """One layer, a third, two thirds: enough to tell what a layer costs from what a pass costs."""
    return tuple(sorted({1, max(layers // 3, 1), max(2 * layers // 3, 1)}))


def _tell(stable: bool, advice: str, *written: Path) -> None:
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"{'stable' if stable else 'UNSTABLE'}: {advice}")
