"""Well-known models by name: small config files that ship with the package, read like any other config."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from rooflines.errors import AmbiguousNameError, UnknownNameError
from rooflines.models.config_file import parse_json

ENDING: Final = ".json"
# Parts of Hugging Face names that say nothing about shapes.
_NOISE: Final = re.compile(r"-(hf|instruct|chat|it|base|bf16)(?=-|$)")
# Months of releases that share a shape: DeepSeek-V3-0324, DeepSeek-R1-0528, Qwen3-4B-Instruct-2507.
RELEASES: Final = ("2507", "0324", "0528", "0711", "0905")
_RELEASE: Final = re.compile(rf"-(?:{'|'.join(RELEASES)})$")
# Checkpoints that say their format in their name, with what to ask for.
_STORED: Final = {"fp8": "fp8", "nvfp4": "nvfp4", "fp4": "nvfp4", "awq": "int4-g128", "int4": "int4-g128"}
_REPOSITORY: Final = re.compile(r"https://huggingface\.co/([^/]+/[^/]+)/")
_CAPITAL: Final = {"instruct": "Instruct", "base": "Base"}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What to load for a model by name.

    Attributes:
        name: repository or path.
        config_of: repository whose config stands for it, where that is another; None where it is its own.
    """

    name: str
    config_of: str | None = None


@cache
def list_presets() -> tuple[str, ...]:
    """Names of all presets, sorted; no file is read."""
    return names_in(_folder())


def load_preset(name: str) -> dict[str, Any]:
    """The config of a preset, reading that one file only.

    Args:
        name: a preset (``llama-3.1-70b``); capitals, the organisation before a slash, endings such as
            ``-Instruct`` or ``-hf`` and the month of a release (``-0324``) do not matter.

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
    found = _named(name)
    if found is not None:
        return found
    longer = [known for known in names if known.startswith(f"{plain_name(name)}-v")]
    if len(longer) == 1:
        return longer[0]
    if longer:
        raise AmbiguousNameError("model", name, longer)
    raise UnknownNameError(
        "model", name, names, _in_a_format(name) or "(a preset, or a path to a config.json or its folder)"
    )


def checkpoint(name: str) -> Checkpoint | None:
    """What an engine loads for a model: a path or repository as typed, or the repository behind a preset.

    An ending that was typed beyond the repository's name is kept: ``llama-3.1-70b-instruct`` is
    ``meta-llama/Llama-3.1-70B-Instruct``, with the config of ``meta-llama/Llama-3.1-70B``.

    Returns:
        None where no repository is known.
    """
    if "/" in name or Path(name).expanduser().exists():
        return Checkpoint(name)
    try:
        found = _REPOSITORY.match(str(load_preset(name).get("_source", "")))
    except UnknownNameError:
        return None
    if found is None:
        return None
    source = found[1]
    known = source.rpartition("/")[2]
    if name.lower() == known.lower():
        return Checkpoint(source)
    if not name.lower().startswith(f"{known.lower()}-"):
        return Checkpoint(source, source)
    ending = "-".join(_CAPITAL.get(word, word) for word in name[len(known) :].split("-"))
    return Checkpoint(source + ending, source)


def _named(name: str) -> str | None:
    """The preset that a name spells in full."""
    plain = plain_name(name)
    candidates = (name.lower(), plain, _RELEASE.sub("", plain))
    return next((one for one in candidates if one in list_presets()), None)


def _in_a_format(name: str) -> str:
    """How to ask for a checkpoint whose name ends with its format; empty where its shape is not known."""
    shape, _, ending = name.rpartition("-")
    found = _named(shape) if ending.lower() in _STORED else None
    return (
        f"(for its shape and format ask for {found} and --weight-dtype {_STORED[ending.lower()]})"
        if found
        else ""
    )


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
