"""``rooflines calibrate decode``: constants of this machine from measured passes of a model."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("decode")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--hardware",
    required=True,
    metavar="NAME|FILE",
    help="Profile of the machine that was measured; efficiencies are shares of its bandwidth and peaks.",
)
@click.option(
    "--output",
    required=True,
    metavar="CAL.toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the calibration, for --calibration.",
)
def decode_command(file: Path, hardware: str, output: Path) -> None:
    """Fit the constants of a model on this machine to its measured passes.

    FILE comes from rooflines measure decode.
    Where no form fits the kernels, or the points cannot tell bandwidth from overhead, the measured table T(n)
    is written instead. A table imported from another tool is taken as it is. Speculation is never fitted.
    """
    from rooflines.hardware.calibration_files import write_calibration
    from rooflines.hardware.catalogue import load_hardware
    from rooflines.measurement.files import read_measured
    from rooflines.validation.decode_calibration import calibrate_decode

    profile = load_hardware(hardware)
    made = calibrate_decode(read_measured(file), file.name, profile, output.stem)
    write_calibration(made.calibration, output)
    click.echo(f"{made.text}\nwrote {output}")
