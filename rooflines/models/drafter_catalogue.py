"""Drafter heads by name: config files that ship with the package, a path, or the usual shape."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.catalogue import ENDING, RELEASES, names_in, plain_name
from rooflines.models.config_file import parse_json
from rooflines.models.config_view import ConfigView
from rooflines.models.drafter_readers import drafting_method, read_drafter
from rooflines.models.drafters import DrafterSpec, Method
from rooflines.models.readers import open_config
from rooflines.models.spec import ModelSpec
from rooflines.models.standard_drafters import standard_drafter

# Words of repositories that say who trained a head, and for which release of its target, not its shape.
_NOISE: Final = frozenset({"sglang", "specforge", *RELEASES})
_BLOCK: Final = re.compile(r"b(?:lock)?(\d+)")


@cache
def list_drafter_presets() -> tuple[str, ...]:
    """Names of all shipped heads, sorted."""
    return names_in(_folder())


@cache
def drafter_preset_method(name: str) -> Method:
    """How a shipped head drafts; configs of EAGLE-1 look like a Llama of one layer and do not say it."""
    return drafting_method(ConfigView(_preset(name), name)) or "eagle"


def drafter_preset(name: str) -> tuple[DrafterSpec, str]:
    """A shipped head beside no target, and where its config was read."""
    config = _preset(name)
    return read_drafter(config, drafter_preset_method(name), None, name), str(config["_source"])


def find_drafter(source: str | None, method: Method, target: ModelSpec) -> DrafterSpec:
    """The head that a text means.

    Args:
        source: a preset or the repository of such a head (``yuhuili/EAGLE3-LLaMA3.1-Instruct-8B``,
            ``z-lab/Qwen3-8B-DFlash-b16``; capitals, organisation, order of the words and endings such as
            ``-Instruct`` do not matter), a config.json or its folder; None for the usual shape.
        method: how it drafts.
        target: the model it drafts for.

    Raises:
        UnknownNameError: no such preset or file, with near matches and the presets that draft so.
        ConfigError: the config says that it drafts in another way, or lacks something.
        FileFormatError: a file that is no JSON object.
    """
    if source is None:
        return standard_drafter(method, target)
    config, name = _config(source, method)
    stated = drafting_method(ConfigView(config, name))
    if stated is not None and stated != method:
        raise ConfigError(f"{name} is a {stated} head, not {method}: write {stated}:{source}")
    return read_drafter(config, method, target, name)


def _config(source: str, method: Method) -> tuple[dict[str, Any], str]:
    path = Path(source)
    if path.is_file() or (path / "config.json").is_file():
        config, name = open_config(path)
        return dict(config), name
    found = _named(source)
    if found is not None:
        return _preset(found), found
    alike = [name for name in list_drafter_presets() if drafter_preset_method(name) == method]
    shipped = f"presets of {method}: {', '.join(alike)}" if alike else f"no preset is a head of {method}"
    raise UnknownNameError(
        "drafter head", source, alike, f"({shipped}; or a path to a config.json or its folder)"
    )


def _named(source: str) -> str | None:
    """The preset of that name, or of the same words and block."""
    for candidate in (source.lower(), plain_name(source)):
        if candidate in list_drafter_presets():
            return candidate
    words, blocks = _words(source)
    for name in list_drafter_presets():
        if _words(name)[0] == words and blocks <= {_preset(name).get("block_size")}:
            return name
    return None


def _words(name: str) -> tuple[frozenset[str], frozenset[int]]:
    """Words of a name that tell one head from another, and the block that it states, if it does."""
    words = set(re.split(r"[-_]", plain_name(name))) - _NOISE
    blocks = {word: int(found[1]) for word in words if (found := _BLOCK.fullmatch(word))}
    return frozenset(words - blocks.keys()), frozenset(blocks.values())


def _preset(name: str) -> dict[str, Any]:
    return dict(parse_json((_folder() / f"{name}{ENDING}").read_bytes(), f"preset {name}"))


def _folder() -> Traversable:
    return files("rooflines.models") / "presets" / "drafters"
