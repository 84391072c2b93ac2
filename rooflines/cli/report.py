"""``rooflines report``: remake the reports of this repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from rooflines.errors import UnknownNameError


def _plan(folder: Path) -> list[Path]:
    from rooflines.cli.plan import plan_text
    from rooflines.output.plan_report import DEFAULT_QUESTION, write_plan

    return write_plan(DEFAULT_QUESTION, folder, lambda plan: plan_text(plan, "text"))


def _medusa_fig9(folder: Path) -> list[Path]:
    from rooflines.output.reports import write_medusa_fig9

    return write_medusa_fig9(folder)


def _magnitudes(folder: Path) -> list[Path]:
    from rooflines.output.reports import write_magnitudes

    return write_magnitudes(folder)


# Report -> what writes it into a folder.
REPORTS: Final[dict[str, Callable[[Path], list[Path]]]] = {
    "plan": _plan,
    "medusa-fig9": _medusa_fig9,
    "magnitudes": _magnitudes,
}


@click.command()
@click.argument("name", metavar="plan|medusa-fig9|magnitudes|all")
@click.option(
    "--output",
    default="reports",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder; each report gets one of its own in it.",
)
def report(name: str, output: Path) -> None:
    """Remake the reports."""
    if name != "all" and name not in REPORTS:
        raise UnknownNameError("report", name, [*REPORTS, "all"], f"(known: {', '.join(REPORTS)}, all)")
    for one, write in REPORTS.items():
        if name in (one, "all"):
            for path in write(output / one):
                click.echo(f"wrote {path}")
