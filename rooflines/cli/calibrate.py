"""``rooflines calibrate``: fit constants to what was measured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rooflines.cli.lazy import LazyGroup
from rooflines.cli.options import emit, files_argument, format_option, output_option
from rooflines.errors import InputError

if TYPE_CHECKING:
    from rooflines.hardware.calibration import Calibration

# Subcommand -> (where it is, its line in the help), imported only when it runs.
SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "kernels": (
        "rooflines.cli.calibrate:kernels",
        "Fit the constants of a device and a software stack to tables of measured kernels.",
    ),
    "decode": (
        "rooflines.cli.calibrate_decode:decode_command",
        "Fit the constants of a model on this machine to its measured passes.",
    ),
}


@click.group(cls=LazyGroup, table=SUBCOMMANDS, noun="calibration")
def calibrate() -> None:
    """Fit constants to what was measured."""


@click.command()
@files_argument
@click.option("--device", metavar="NAME", help="Fit this device only (default: every device of the tables).")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one TOML file for each device and software stack into this folder.",
)
@click.option(
    "--transferable",
    is_flag=True,
    help="Also fit the medians over devices that unmeasured devices get, as transferable.toml.",
)
@click.option("--source", multiple=True, help="Where the rows are from (default: the names of the files).")
@click.option("--created", metavar="DATE", help="ISO date that the files bear (default: today).")
@format_option
@output_option
def kernels(
    files: tuple[Path, ...],
    device: str | None,
    folder: Path | None,
    transferable: bool,
    source: tuple[str, ...],
    created: str | None,
    fmt: str,
    output: Path | None,
) -> None:
    """Fit the constants of a device and a software stack to tables of measured kernels.

    FILEs are CSV tables of products, attention, experts or all-reduces, known by their columns
    (docs/calibration.md). Three weight shapes at six sizes are enough for products. The errors given are
    those of shapes held out from the fit. Rows that measured something else than the kernel are named.
    Exit code 3: the rows cannot separate any constants.
    """
    from rooflines.hardware.catalogue import load_hardware
    from rooflines.output.calibration_tables import calibration_report, document
    from rooflines.output.tables import document_text
    from rooflines.validation.calibrate import calibrate as fit
    from rooflines.validation.kernel_tables import read_kernel_table
    from rooflines.validation.transferable import transferable as medians

    tables = [read_kernel_table(file) for file in files]
    wanted = load_hardware(device).id if device is not None else None
    date = created or datetime.now(tz=UTC).date().isoformat()
    found = fit(tables, date, source or [file.name for file in files], wanted)
    listed = [*found.calibrations, *([medians(found.calibrations, tables)] if transferable else [])]
    if folder is not None:
        _write(listed, folder)
    if fmt == "json":
        emit(document_text(document(listed, found)), output)
    else:
        emit(calibration_report(listed, found, fmt), output)


def _write(listed: list[Calibration], folder: Path) -> None:
    from rooflines.hardware.calibration_files import write_calibration

    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: make it first")
    for one in listed:
        write_calibration(one, folder / f"{one.name}.toml")
