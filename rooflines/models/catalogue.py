"""Well-known models by name: small config files that ship with the package, read like any other config."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from rooflines.errors import AmbiguousNameError, UnknownNameError
from rooflines.models.config_file import parse_json

ENDING: Final = ".json"
# Parts of Hugging Face names that say nothing about shapes.
_NOISE: Final = re.compile(r"-(hf|instruct|chat|it|base|bf16)(?=-|$)")


@cache
def list_presets() -> tuple[str, ...]:
    """Names of all presets, sorted; no file is read."""
    return names_in(_folder())


def load_preset(name: str) -> dict[str, Any]:
    """The config of a preset, reading that one file only.

    Args:
        name: a preset (``llama-3.1-70b``); capitals, the organisation before a slash and endings such as
            ``-Instruct`` or ``-hf`` do not matter.

    Raises:
        UnknownNameError: with near matches.
        AmbiguousNameError: the beginning of several presets.
    """
    found = resolve_preset(name)
    return dict(parse_json((_folder() / f"{found}{ENDING}").read_bytes(), f"preset {found}"))


def resolve_preset(name: str) -> str:
    """The preset that a name means; a version may be left off where only one is known.

    Raises:
        UnknownNameError: with near matches.
        AmbiguousNameError: the beginning of several presets.
    """
    names = list_presets()
    for candidate in (name.lower(), plain_name(name)):
        if candidate in names:
            return candidate
    longer = [known for known in names if known.startswith(f"{plain_name(name)}-v")]
    if len(longer) == 1:
        return longer[0]
    if longer:
        raise AmbiguousNameError("model", name, longer)
    raise UnknownNameError("model", name, names, "(a preset, or a path to a config.json or its folder)")


def plain_name(name: str) -> str:
    """A Hugging Face name as presets spell it: lower case, without organisation and noise."""
    plain = _NOISE.sub("", name.rpartition("/")[2].lower())
    return plain.removeprefix("meta-")


def names_in(folder: Traversable) -> tuple[str, ...]:
    """Names of the configs of a folder, sorted; no file is read."""
    entries = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(ENDING) for name in entries if name.endswith(ENDING)))


def _folder() -> Traversable:
    return files("rooflines.models") / "presets"
