"""``rooflines report``: remake the reports of this repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from rooflines.errors import UnknownNameError


def _plan(folder: Path) -> list[Path]:
    from rooflines.output.plan_report import DEFAULT_QUESTION, write_plan
    from rooflines.output.plan_text import plan_text

    return write_plan(DEFAULT_QUESTION, folder, lambda plan: plan_text(plan, "text"))


def _medusa_fig9(folder: Path) -> list[Path]:
    from rooflines.output.reports import write_medusa_fig9

    return write_medusa_fig9(folder)


def _magnitudes(folder: Path) -> list[Path]:
    from rooflines.output.reports import write_magnitudes

    return write_magnitudes(folder)


def _gallery(folder: Path) -> list[Path]:
    from rooflines.output.gallery import write_gallery

    return write_gallery(folder)


def _measured(folder: Path) -> list[Path]:
    from rooflines.output.measured_report import write_measured

    return write_measured(folder)


def _accuracy(folder: Path, data: Path) -> list[Path]:
    from rooflines.output.accuracy_report import write_accuracy

    return write_accuracy(folder, data)


def _published(folder: Path, data: Path) -> list[Path]:
    from rooflines.output.published_report import write_published

    return write_published(folder, data)


# Report -> what writes it into a folder.
REPORTS: Final[dict[str, Callable[[Path], list[Path]]]] = {
    "plan": _plan,
    "medusa-fig9": _medusa_fig9,
    "magnitudes": _magnitudes,
    "gallery": _gallery,
}


# This one is remade from measurements that lie in its own folder, so it is made where they lie only.
MEASURED: Final = ("measured", "measurements")
# And this one from tables of measured kernels, which do not ship with the project.
ACCURACY: Final = "accuracy"
# And this one from tables of published speedups and acceptance.
PUBLISHED: Final = "published"


@click.command()
@click.argument("name", metavar="plan|medusa-fig9|magnitudes|gallery|measured|accuracy|published|all")
@click.option(
    "--output",
    default="reports",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder; each report gets one of its own in it.",
)
@click.option(
    "--data",
    envvar="ROOFLINES_DATA",
    default="../shared/data",
    show_default="ROOFLINES_DATA, else ../shared/data",
    type=click.Path(path_type=Path),
    help="Folder with tables of measured kernels, or one that has them in silicon/, and published speedups.",
)
def report(name: str, output: Path, data: Path) -> None:
    """Remake the reports.

    measured is remade from the JSON in the folder measurements/, accuracy from tables of measured kernels,
    published from tables of speedups and acceptance; each is left out of all where there are none.
    """
    known = (*REPORTS, MEASURED[0], ACCURACY, PUBLISHED, "all")
    if name not in known:
        raise UnknownNameError("report", name, known, f"(known: {', '.join(known)})")
    for one, write in REPORTS.items():
        if name in (one, "all"):
            for path in write(output / one):
                click.echo(f"wrote {path}")
    stored = output / MEASURED[1]
    if name == MEASURED[0] or (name == "all" and stored.is_dir()):
        for path in _measured(stored):
            click.echo(f"wrote {path}")
    tables = data / "silicon" if (data / "silicon").is_dir() else data
    from_data = (
        (ACCURACY, _accuracy, tables, tables),
        (PUBLISHED, _published, data, data / "speedups"),
    )
    for one, write_from, source, needed in from_data:
        if name == one or (name == "all" and needed.is_dir()):
            for path in write_from(output / one, source):
                click.echo(f"wrote {path}")
