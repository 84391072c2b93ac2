"""Finds, reads and writes calibrations: those shipped, those of the user, or a file by path.

One writer makes every file, so that the same rows give the same bytes. Times are quoted quantities under keys
without a unit (``overhead = "4.1 us"``); inside they are seconds.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from rooflines.errors import FileFormatError, UnitError, UnknownNameError
from rooflines.hardware.calibration import Calibration, StepTime
from rooflines.hardware.catalogue import catalogue_folders, data_folder, read_profile
from rooflines.hardware.constants import Constants
from rooflines.hardware.profile import HardwareProfile
from rooflines.units import format_quantity, parse_quantity

FOLDER: Final = "calibrations"
TRANSFERABLE: Final = "transferable"
_WORDS: Final = ("auto", "none", "textbook")
# Where a device was measured with several stacks, the first of these is taken unless another is named.
_PREFERRED: Final = ("vllm", "sglang", "trtllm")
_DIGITS: Final = 4
_TIMES: Final = tuple(
    name
    for name in (
        *(field.name for field in fields(Constants)),
        *Calibration.model_fields,
        *StepTime.model_fields,
    )
    if name.endswith("_s")
)
_WRITTEN: Final = {name: name.removesuffix("_s") for name in _TIMES}
_READ: Final = {written: name for name, written in _WRITTEN.items()}


def load_calibration(name: str | Path) -> Calibration:
    """Load one calibration.

    Args:
        name: as `list_calibrations` gives it, or the path of a TOML file (it ends in ``.toml``).

    Raises:
        UnknownNameError: no such name, with near matches.
        FileFormatError: the file is missing, is no calibration, or breaks a rule of calibrations.
    """
    if isinstance(name, Path) or name.endswith(".toml"):
        return read_calibration(Path(name).expanduser())
    listed = _listed()
    if name not in listed:
        raise UnknownNameError(
            "calibration", name, (*listed, *_WORDS), "(use auto, none or textbook, a name, or a .toml file)"
        )
    return read_calibration(listed[name])


@cache
def transferable_calibration() -> Calibration:
    """The medians over measured devices that ship with the profiles."""
    return read_calibration(data_folder() / FOLDER / f"{TRANSFERABLE}.toml")


def list_calibrations() -> tuple[str, ...]:
    """The names of all calibrations that `load_calibration` finds, sorted."""
    return tuple(sorted(_listed()))


def calibrations_of(device: str) -> tuple[Calibration, ...]:
    """Calibrations measured on a device, the one to prefer first.

    Args:
        device: id of its profile.
    """
    return tuple(map(read_calibration, _files(device, "device")))


def calibration_of(profile: HardwareProfile) -> Calibration | None:
    """What a device is given where nothing is asked for: its own calibration, else one of its class.

    Those of the user go before those that ship. Constants are shares of what a profile states, so those that
    ship are not for a profile of the same id that states other bandwidths or peaks.

    Args:
        profile: of the device.

    Returns:
        None where neither exists; the transferable defaults serve then.
    """
    found = [*_files(profile.id, "device"), *_files(profile.id, "stands_for")]
    if not _as_shipped(profile):
        shipped = _shipped_names()
        found = [file for file in found if file.name not in shipped]
    return read_calibration(found[0]) if found else None


def _as_shipped(profile: HardwareProfile) -> bool:
    """Whether no profile of this id ships, or one with the same bandwidths and peaks."""
    file = data_folder() / f"{profile.id}.toml"
    return not file.is_file() or read_profile(file).rates == profile.rates


def _shipped_names() -> set[str]:
    return {file.name for file in _toml_files(data_folder())}


def _files(device: str, field: str) -> list[Traversable]:
    """Files whose `field` names a device, the one to prefer first."""
    shipped = _shipped_names()
    found = []
    for file in _listed().values():
        head = _head(file)
        named = head.get(field, ())
        if device == named or (isinstance(named, list) and device in named):
            own = file.name not in shipped
            found.append((not own, *_preference(str(head.get("stack", "")), file.name), file))
    return [one[-1] for one in sorted(found, key=lambda one: one[:-1])]


def _head(file: Traversable) -> Mapping[str, Any]:
    """The keys of the top level, which precede the first table in TOML: the rest need not be parsed."""
    return _parsed_head(_text(file).split("\n[", 1)[0], f"calibration {file}")


@lru_cache(maxsize=512)
def _parsed_head(text: str, where: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{where} is not valid TOML: {error}") from None


def preference(calibration: Calibration) -> tuple[int, int, tuple[int, ...], str]:
    """What to sort calibrations of a device by: engine, then its own kernels, then the newest version."""
    return _preference(calibration.stack, calibration.name)


def _preference(stack: str, name: str) -> tuple[int, int, tuple[int, ...], str]:
    words = stack.split(" ")
    rank = _PREFERRED.index(words[0]) if words[0] in _PREFERRED else len(_PREFERRED)
    newest = tuple(-int(number) for number in re.findall(r"\d+", "".join(words[1:2])))
    return rank, len(words), newest, name


def _listed() -> dict[str, Traversable]:
    """Files by name; a user's folder hides a shipped calibration of the same name."""
    found: dict[str, Traversable] = {}
    for folder in catalogue_folders():
        for file in _toml_files(folder):
            found.setdefault(file.name.removesuffix(".toml"), file)
    return found


def _toml_files(folder: Traversable) -> list[Traversable]:
    inner = folder / FOLDER
    if not inner.is_dir():
        return []
    return [file for file in inner.iterdir() if file.name.endswith(".toml") and file.is_file()]


def read_calibration(file: Traversable | Path) -> Calibration:
    """Read a calibration from a TOML file.

    Raises:
        FileFormatError: missing, no TOML, or no calibration.
    """
    return _parsed(_text(file), f"calibration {file}")


@lru_cache(maxsize=128)
def _parsed(text: str, where: str) -> Calibration:
    """What a text says; the same text is parsed once, since every group of rows asks for its calibration."""
    try:
        return Calibration.read(_inside(tomllib.loads(text)), where)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(f"{where} is not valid TOML: {error}") from None
    except UnitError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _text(file: Traversable | Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"calibration {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"calibration {file} is not a text file: it must be TOML in UTF-8") from None


def write_calibration(calibration: Calibration, file: Path) -> None:
    """Write a calibration; the same calibration gives the same bytes.

    Raises:
        FileFormatError: the file cannot be written.
    """
    try:
        file.write_text(calibration_text(calibration), encoding="utf-8")
    except OSError as error:
        raise FileFormatError(f"calibration {file} cannot be written: {error.strerror}") from None


def calibration_text(calibration: Calibration) -> str:
    """A calibration as TOML, numbers to four digits, what is empty or default left out."""
    head = calibration.model_dump(exclude={"operators", "steps"}, exclude_defaults=True)
    lines = _lines({"schema_version": calibration.schema_version, **head})
    for entry in calibration.operators:
        own = entry.model_dump(exclude={"constants", "provenance", "residuals"})
        lines += ["", "[[operators]]", *_lines(own)]
        if entry.residuals:
            stated = (one.model_dump(exclude_none=True) for one in entry.residuals)
            lines += ["residuals = [", *(f"  {_inline(one)}," for one in stated), "]"]
        lines += ["", "[operators.constants]", *_lines(_not_textbook(entry.constants))]
        lines += ["", "[operators.provenance]", *_lines(entry.provenance.model_dump(exclude_defaults=True))]
    for step in calibration.steps:
        lines += ["", "[[steps]]", *_lines(step.model_dump())]
    return "\n".join(lines) + "\n"


def _not_textbook(constants: Constants) -> dict[str, float]:
    textbook = Constants()
    values = {field.name: getattr(constants, field.name) for field in fields(Constants)}
    return {name: value for name, value in values.items() if value != getattr(textbook, name)}


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_WRITTEN.get(name, name)} = {_value(value, name)}" for name, value in table.items()]


def _inline(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(_lines(table)) + " }"


def _value(value: object, name: str = "") -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if name in _WRITTEN:
            return json.dumps(format_quantity(value, "s", _DIGITS))
        return "inf" if math.isinf(value) else repr(float(f"{value:.{_DIGITS}g}"))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return _inline(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return str(value)


def _inside(content: object) -> Any:  # noqa: ANN401 - whatever TOML holds
    """Content of a file with the names and numbers that are used inside."""
    if isinstance(content, list):
        return [_inside(one) for one in content]
    if not isinstance(content, dict):
        return content
    return {
        _READ.get(key, key): parse_quantity(value, "s") if key in _READ else _inside(value)
        for key, value in content.items()
    }
