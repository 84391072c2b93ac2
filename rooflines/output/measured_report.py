"""The report of what was measured, remade from the stored JSON that lies beside it.

Raw medians and T(n) of every file; the calibration fitted to passes of a model; speculation held against it,
which was fitted to none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from rooflines.errors import InputError
from rooflines.hardware.calibration import Calibration
from rooflines.hardware.calibration_files import calibration_text
from rooflines.hardware.catalogue import read_profile
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.files import AnyFile, read_measured
from rooflines.measurement.schema import DecodeFile, MachineFile, SpeculationFile, StepsFile
from rooflines.output.check_report import check_columns, check_text
from rooflines.output.figures.steps import steps_figure
from rooflines.output.figures.style import figure_style, save_figure
from rooflines.output.tables import Columns, render
from rooflines.studies.measured import curves, machine_table, sample_table, step_table
from rooflines.validation.check import Reference, check_speculation
from rooflines.validation.decode_calibration import calibrate_decode

# The profile of the machine that everything in the folder was measured on.
PROFILE: Final = "machine.toml"
# What was measured: the same weights in the same dtype.
Model = tuple[str | None, str | None]


def write_measured(folder: Path) -> list[Path]:
    """Remake the tables, figures, calibrations and checks of the measurements in a folder.

    Raises:
        InputError: no measurements lie there, or one has too few points to draw or to fit.
        FileFormatError: a JSON file that holds none, or a broken profile.
    """
    files = {path: read_measured(path) for path in sorted(folder.glob("*.json"))}
    if not files:
        raise InputError(
            f"no measurements lie in {folder}: measure there first, such as rooflines measure decode "
            f"--output {folder / 'decode.json'}"
        )
    written = [path for source, file in files.items() for path in _raw(source, file)]
    profile_file = folder / PROFILE
    if profile_file.is_file():
        profile = read_profile(profile_file)
        fitted: dict[Model, Calibration] = {}
        for source, file in files.items():
            if isinstance(file, DecodeFile):
                made = calibrate_decode(file, source.name, profile, f"{source.stem}-calibration")
                fitted.setdefault(_model(file), made.calibration)
                stem = f"{source.stem}-calibration"
                written.append(_text(folder / f"{stem}.toml", calibration_text(made.calibration)))
                written.append(_text(folder / f"{stem}.txt", made.text))
        written += _checks(files, profile, fitted)
    return written


def _checks(
    files: Mapping[Path, AnyFile], profile: HardwareProfile, fitted: Mapping[Model, Calibration]
) -> Iterator[Path]:
    for source, file in files.items():
        if isinstance(file, SpeculationFile):
            calibration = fitted.get(_model(file))
            reference = None if calibration is None else Reference(profile, calibration)
            report = check_speculation(file, source.name, reference=reference)
            yield _text(source.with_name(f"{source.stem}-check.csv"), render(check_columns(report), "csv"))
            yield _text(source.with_name(f"{source.stem}-check.md"), check_text(report, "markdown"))


def _raw(path: Path, file: AnyFile) -> Iterator[Path]:
    """Medians as CSV and Markdown, and T(n) as SVG."""
    columns = _table(file)
    if columns is None:
        return
    yield _text(path.with_suffix(".csv"), render(columns, "csv"))
    yield _text(path.with_suffix(".md"), render(columns, "markdown", _title(file)))
    if isinstance(file, DecodeFile):
        with figure_style():
            save_figure(steps_figure(curves(file), _title(file)), path.with_suffix(".svg"))
        yield path.with_suffix(".svg")


def _table(file: AnyFile) -> Columns | None:
    if isinstance(file, MachineFile):
        return machine_table(file)
    if isinstance(file, DecodeFile):
        return sample_table(file)
    return step_table(file) if isinstance(file, StepsFile) else None


def _model(file: DecodeFile | SpeculationFile) -> Model:
    return (file.inputs.weights, file.inputs.dtype)


def _title(file: AnyFile) -> str:
    if isinstance(file, StepsFile):
        return f"{file.source}, {file.created[:10]}"
    machine = file.machine
    threads = f"{machine.threads} thread{'s' if machine.threads > 1 else ''}"
    torch = file.versions.get("torch")
    parts = [
        f"{Path(file.inputs.model).name} in {file.inputs.dtype}" if file.inputs.model else None,
        machine.device,
        threads if machine.kind == "cpu" else None,
        f"torch {torch}" if torch else None,
        file.created[:10],
    ]
    return ", ".join(filter(None, parts)) + ("" if file.stability.stable else "; UNSTABLE")


def _text(path: Path, text: str) -> Path:
    path.write_text(text + "\n", encoding="utf-8")
    return path
