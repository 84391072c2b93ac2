"""``rooflines sweep``: a whole grid into Parquet, and the best of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rooflines.cli.lazy import LazyGroup
from rooflines.cli.options import emit, format_option, output_option
from rooflines.cli.progress import progress_bar
from rooflines.output.tables import document_text, render
from rooflines.rows import as_columns

if TYPE_CHECKING:
    from rooflines.studies.sweep.run import SweepOutcome

# Command -> (where it is, its line in the help).
SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("rooflines.cli.sweep:run_command", "Price a grid; `sweep GRID.toml` means the same."),
    "best": ("rooflines.cli.sweep:best_command", "The best row of each group."),
}


class _SweepGroup(LazyGroup):
    """A group whose first command may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take what names no command as a grid."""
        named = bool(args) and (args[0] in self.table or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or not args else ["run", *args])


@click.group(cls=_SweepGroup, table=SUBCOMMANDS, noun="sweep command")
def sweep() -> None:
    """Price a grid of any size into Parquet, and ask what is best in it.

    `rooflines sweep GRID.toml --output DIR` prices every combination of what GRID.toml lists. A sweep that
    was stopped goes on when the same command is given again.
    """


@click.command("run")
@click.argument("grid", metavar="GRID.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the rows: new, empty, or of the same grid.",
)
@click.option("--workers", default=1, show_default=True, type=int, help="Processes on this machine.")
@click.option("--dask", metavar="ADDRESS", help="A dask scheduler whose workers share DIR, instead.")
@format_option
def run_command(grid: Path, folder: Path, workers: int, dask: str | None, fmt: str) -> None:
    """Price a grid; `sweep GRID.toml` means the same."""
    from rooflines.errors import InputError
    from rooflines.studies.sweep.grid import read_grid
    from rooflines.studies.sweep.run import run_sweep

    if dask is not None and workers != 1:
        raise InputError("--workers are of this machine and --dask has its own: give one of the two")
    with progress_bar("sweep", "rows") as told:
        outcome = run_sweep(read_grid(grid), folder, workers=workers, dask=dask, told=told)
    click.echo(_outcome_text(outcome, fmt))


@click.command("best")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--by", default="", metavar="COLUMN,..", help="One row for each combination of these; none: one row."
)
@click.option("--goal", default="speedup", show_default=True, metavar="COLUMN", help="What is best.")
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Only rows such as batch<=64 or drafter=ngram; repeat it, and all must hold.",
)
@click.option("--partial", is_flag=True, help="Answer from what is there of a sweep that is not finished.")
@format_option
@output_option
def best_command(
    folder: Path, by: str, goal: str, where: tuple[str, ...], partial: bool, fmt: str, output: Path | None
) -> None:
    """The best row of each group."""
    from rooflines.studies.sweep.best import best_rows

    names = tuple(filter(None, (name.strip() for name in by.split(","))))
    answer = best_rows(folder, names, goal=goal, where=where, partial=partial)
    if answer.parts_read < answer.parts:
        note = f"{answer.parts_read} of {answer.parts} parts were there"
        click.echo(f"rooflines: warning: {note}", err=True)
    if fmt == "json":
        emit(document_text(answer.document()), output)
        return
    columns = {name: [row[name] for row in answer.rows] for name in answer.columns}
    if fmt in ("text", "markdown"):
        columns = _telling(columns, {*names, goal})
    emit(render(columns, fmt), output)


def _telling(columns: dict[str, list[object]], kept: set[str]) -> dict[str, list[object]]:
    """For people: without columns that are empty or hold the same in all of several rows."""
    return {
        name: values
        for name, values in columns.items()
        if name in kept or (any(v is not None for v in values) and (len(values) < 2 or len(set(values)) > 1))  # noqa: PLR2004 - one row is no repetition
    }


def _outcome_text(outcome: SweepOutcome, fmt: str) -> str:
    """What a run did, in any of the formats."""
    if fmt == "json":
        return document_text(outcome.document())
    if fmt == "csv":
        counts = {key: [value] for key, value in outcome.document().items() if key != "refused"}
        return render(counts, fmt)
    refused = outcome.refused_by_reason()
    if not refused:
        return outcome.text
    return f"{outcome.text}\n\n{render(as_columns(refused), fmt, 'Combinations that cannot be')}"
