"""What a check is told: on the command line, in a pyproject.toml, or by a test."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from rooflines.errors import FileFormatError, InputError, UnknownNameError
from rooflines.facts import Fact
from rooflines.hardware.calibration import Calibration
from rooflines.hardware.calibration_files import load_calibration
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.files import read_measured
from rooflines.measurement.schema import SpeculationFile
from rooflines.validation.check import CheckReport, Reference, check_speculation

DEFAULT_TOLERANCE: Final = "15%"
_PERCENT: Final = "%"


class _Table(Fact):
    """``[tool.rooflines.check]``; paths are relative to the file that says them."""

    tolerance: str | None = None
    calibration: str | None = None
    hardware: str | None = None
    baseline: str | None = None
    junit: str | None = None
    markdown: str | None = None


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What is checked against what.

    Attributes:
        tolerance: as written, ``15%``; None for the default.
        calibration: name or file; None checks the composition alone.
        hardware: name or file of the profile; None for the one that the calibration names.
        baseline: file of an accepted run; None for none.
        junit: where to write JUnit XML; None for nowhere.
        markdown: where to write a summary; None for nowhere.
    """

    tolerance: str | None = None
    calibration: str | None = None
    hardware: str | None = None
    baseline: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None

    def over(self, other: CheckSettings) -> CheckSettings:
        """These settings, with those of `other` where these say nothing."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in given.items() if value is not None})


def read_settings(folder: Path) -> CheckSettings:
    """The settings of the pyproject.toml in a folder; none where there is no such file or table.

    Raises:
        FileFormatError: the file is no TOML, or the table has an unknown key.
    """
    file = folder / "pyproject.toml"
    if not file.is_file():
        return CheckSettings()
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, not TOML
        raise FileFormatError(f"{file} cannot be read: {error}") from None
    table: Any = content.get("tool", {}).get("rooflines", {}).get("check", {})
    if not isinstance(table, dict):
        raise FileFormatError(f"{file}: [tool.rooflines.check] is not a table")
    return settings_of(table, folder, f"{file} [tool.rooflines.check]")


def settings_of(
    table: Mapping[str, Any], folder: Path, where: str = "settings of the check"
) -> CheckSettings:
    """Settings out of a table of texts; what ends as a file does is relative to a folder.

    Raises:
        FileFormatError: an unknown key, or a value that is no text.
    """
    said = _Table.read(table, where)

    def path(text: str | None) -> Path | None:
        return None if text is None else folder / text

    def name_or_file(text: str | None) -> str | None:
        return str(folder / text) if text and text.endswith(".toml") else text

    return CheckSettings(
        tolerance=said.tolerance,
        calibration=name_or_file(said.calibration),
        hardware=name_or_file(said.hardware),
        baseline=path(said.baseline),
        junit=path(said.junit),
        markdown=path(said.markdown),
    )


def parse_tolerance(text: str) -> float:
    """Read ``15%`` or ``0.15``.

    Raises:
        InputError: no number, or not above 0 and below 100 %.
    """
    number = text.strip().removesuffix(_PERCENT)
    try:
        value = float(number) / (100.0 if text.strip().endswith(_PERCENT) else 1.0)
    except ValueError:
        raise InputError(f"tolerance {text!r} is no number: write 15% or 0.15") from None
    if not 0 < value < 1:
        raise InputError(f"tolerance {text!r} must lie between 0 and 100%: write 15% or 0.15")
    return value


def run_check(file: Path, settings: CheckSettings) -> CheckReport:
    """Read a file of speculation and judge it.

    Raises:
        RooflinesError: a file that is missing or of another kind, or settings that do not fit together.
    """
    return check_speculation(
        read_runs(file),
        file.name,
        tolerance=parse_tolerance(settings.tolerance or DEFAULT_TOLERANCE),
        reference=_reference(settings),
        baseline=read_runs(settings.baseline) if settings.baseline else None,
    )


def read_runs(file: Path) -> SpeculationFile:
    """A file of speculation.

    Raises:
        InputError: a file of another kind.
        FileFormatError: no file of measurements.
    """
    found = read_measured(file)
    if not isinstance(found, SpeculationFile):
        raise InputError(
            f"{file} holds {found.kind} measurements: a check judges speculation (rooflines measure "
            "speculation)"
        )
    return found


def _reference(settings: CheckSettings) -> Reference | None:
    if settings.calibration is None:
        if settings.hardware is not None:
            raise InputError(
                f"hardware {settings.hardware} was given without a calibration: add --calibration, made by "
                "rooflines calibrate decode"
            )
        return None
    calibration = load_calibration(settings.calibration)
    if settings.hardware is not None:
        profile = load_hardware(settings.hardware)
    else:
        profile = _profile_of(calibration, Path(settings.calibration).expanduser().parent)
    if profile.id != calibration.device:
        raise InputError(
            f"calibration {calibration.name} belongs to {calibration.device}, not to {profile.id}: its "
            "constants are shares of that profile's bandwidth and peaks"
        )
    return Reference(profile, calibration)


def _profile_of(calibration: Calibration, folder: Path) -> HardwareProfile:
    """The profile that a calibration names: of the catalogue, or a file beside the calibration."""
    try:
        return load_hardware(calibration.device)
    except UnknownNameError:
        for file in sorted(folder.glob("*.toml")):
            if f'id = "{calibration.device}"' in file.read_text(encoding="utf-8").splitlines():
                return load_hardware(file)
    raise InputError(
        f"calibration {calibration.name} belongs to {calibration.device}, which no profile in {folder} or in "
        "the catalogue describes: name its file with --hardware"
    )
