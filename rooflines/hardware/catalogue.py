"""Finds and loads hardware profiles: those shipped, those in `ROOFLINES_HARDWARE`, or a file by path.

A name is looked for as a file ``<id>.toml`` first, so that loading one profile reads one file. Only a name
that is no id makes the catalogue read what precedes the first table of every file, for its aliases.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from rooflines.errors import AmbiguousNameError, FileFormatError, UnknownNameError, bare
from rooflines.hardware.profile import HardwareProfile

ENVIRONMENT: Final = "ROOFLINES_HARDWARE"
_LIST: Final = "(rooflines hardware list shows all; a path to a .toml file works too)"


@dataclass(frozen=True, slots=True)
class _Listed:
    """A profile that exists, not yet read."""

    id: str
    file: Traversable


def load_hardware(name: str | Path) -> HardwareProfile:
    """Load one device.

    Args:
        name: an id (``h100-sxm5-80gb``), an alias in any spelling (``H100 SXM``), or the path of a TOML
            file (it ends in ``.toml``).

    Raises:
        UnknownNameError: no such name, with near matches.
        AmbiguousNameError: several devices have that name (``h100``).
        FileFormatError: the file is missing, is no profile, or breaks a rule of profiles.
    """
    # A name may have a slash too (Workstation/Server), so a slash alone makes no path.
    if (
        isinstance(name, Path)
        or name.endswith(".toml")
        or ({"/", os.sep} & set(name) and Path(name).exists())
    ):
        return read_profile(Path(name).expanduser())
    listed = _listed()
    wanted = bare(name)
    for profile in listed:
        if bare(profile.id) == wanted:
            return read_profile(profile.file)
    return read_profile(_by_alias(name, listed).file)


def list_hardware() -> tuple[str, ...]:
    """The ids of all profiles that `load_hardware` finds by name, sorted."""
    return tuple(sorted(profile.id for profile in _listed()))


def data_folder() -> Traversable:
    """The folder of the shipped profiles; in an editable install it lies beside the package."""
    shipped = files("rooflines") / "hardware_profiles"
    return shipped if shipped.is_dir() else Path(__file__).parents[2] / "hardware_profiles"


def hardware_files() -> tuple[Traversable, ...]:
    """The files of all profiles that `load_hardware` finds by name, sorted by id."""
    return tuple(profile.file for profile in sorted(_listed(), key=lambda profile: profile.id))


def read_profile(file: Traversable | Path) -> HardwareProfile:
    """Read a profile from a TOML file.

    Raises:
        FileFormatError: the file is missing or a folder, is no TOML, or breaks a rule of profiles.
    """
    return _profile(_text(file), f"hardware profile {file}")


@lru_cache(maxsize=256)
def _profile(text: str, where: str) -> HardwareProfile:
    """What a text says; the same text is parsed once."""
    content = _parse(text, where)
    if not content:
        raise FileFormatError(
            f'{where}: the file is empty; a profile has at least id = "..." and name = "..."'
        )
    return HardwareProfile.read(content, where)


def _text(file: Traversable | Path) -> str:
    where = f"hardware profile {file}"
    if file.is_dir():
        raise FileFormatError(f"{where} is a folder: name one TOML file, or set {ENVIRONMENT} to the folder")
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FileFormatError(f"{where} does not exist {_LIST}") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{where} is not a text file: a profile is TOML in UTF-8") from None
    except OSError as error:
        raise FileFormatError(f"{where} cannot be read: {error.strerror}") from None


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{where} is not valid TOML: {error}") from None
    except RecursionError:
        raise FileFormatError(f"{where} is not a profile: its values are nested too deeply") from None


def _listed() -> tuple[_Listed, ...]:
    """One entry an id; a user's folder hides a shipped profile of the same id."""
    found: dict[str, _Listed] = {}
    for folder in catalogue_folders():
        for file in folder.iterdir():
            if file.name.endswith(".toml") and file.is_file():
                profile_id = file.name.removesuffix(".toml")
                found.setdefault(profile_id, _Listed(profile_id, file))
    return tuple(found.values())


def catalogue_folders() -> Iterator[Traversable]:
    """Folders that profiles and calibrations are looked for in: those of the user first.

    Raises:
        FileFormatError: ROOFLINES_HARDWARE names what is no folder.
    """
    for given in filter(None, os.environ.get(ENVIRONMENT, "").split(os.pathsep)):
        folder = Path(given).expanduser()
        if not folder.is_dir():
            raise FileFormatError(f"{ENVIRONMENT} names {given!r}, which is not a folder")
        yield folder
    yield data_folder()


def _by_alias(name: str, listed: tuple[_Listed, ...]) -> _Listed:
    wanted = bare(name)
    spellings = [profile.id for profile in listed]
    matches = []
    for profile in listed:
        names = _other_names(profile)
        spellings += names
        if wanted and wanted in map(bare, names):
            matches.append(profile)
    if len(matches) == 1:
        return matches[0]
    candidates = sorted(profile.id for profile in matches) or _family(name, listed)
    if len(candidates) > 1:
        raise AmbiguousNameError("hardware", name, candidates)
    raise UnknownNameError("hardware", name, candidates or spellings, _LIST)


def _other_names(profile: _Listed) -> tuple[str, ...]:
    where = f"hardware profile {profile.file}"
    # In TOML the keys of the top level precede the first table, so the rest need not be parsed.
    head = re.split(r"(?m)^\[", _text(profile.file), maxsplit=1)[0]
    content = _parse(head, where)
    names = [content.get("name"), *content.get("aliases", ())]
    return tuple(other for other in names if isinstance(other, str))


def _family(name: str, listed: tuple[_Listed, ...]) -> list[str]:
    """Ids that have every word of the name (``h100``: SXM, PCIe and NVL)."""
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    return sorted(profile.id for profile in listed if words and words <= set(profile.id.split("-")))
