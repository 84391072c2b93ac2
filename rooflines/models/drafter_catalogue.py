"""Drafter heads by name: config files that ship with the package, a path, or the usual shape."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.catalogue import ENDING, names_in, plain_name
from rooflines.models.config_file import parse_json
from rooflines.models.config_view import ConfigView
from rooflines.models.drafter_readers import drafting_method, read_drafter
from rooflines.models.drafters import DrafterSpec, Method
from rooflines.models.readers import open_config
from rooflines.models.spec import ModelSpec
from rooflines.models.standard_drafters import standard_drafter


@cache
def list_drafter_presets() -> tuple[str, ...]:
    """Names of all shipped heads, sorted."""
    return names_in(_folder())


def find_drafter(source: str | None, method: Method, target: ModelSpec) -> DrafterSpec:
    """The head that a text means.

    Args:
        source: a preset (``yuhuili/EAGLE3-LLaMA3.1-Instruct-8B``; capitals, organisation and endings such as
            ``-Instruct`` do not matter), a config.json or its folder; None for the usual shape.
        method: how it drafts.
        target: the model it drafts for.

    Raises:
        UnknownNameError: no such preset or file, with near matches.
        ConfigError: the config says that it drafts in another way, or lacks something.
        FileFormatError: a file that is no JSON object.
    """
    if source is None:
        return standard_drafter(method, target)
    config, name = _config(source)
    stated = drafting_method(ConfigView(config, name))
    if stated is not None and stated != method:
        raise ConfigError(f"{name} is a {stated} head, not {method}: write {stated}:{source}")
    return read_drafter(config, method, target, name)


def _config(source: str) -> tuple[dict[str, Any], str]:
    path = Path(source)
    if path.is_file() or (path / "config.json").is_file():
        config, name = open_config(path)
        return dict(config), name
    for candidate in (source.lower(), plain_name(source)):
        if candidate in list_drafter_presets():
            raw = (_folder() / f"{candidate}{ENDING}").read_bytes()
            return dict(parse_json(raw, f"preset {candidate}")), candidate
    raise UnknownNameError(
        "drafter head", source, list_drafter_presets(), "(a preset, or a path to a config.json or its folder)"
    )


def _folder() -> Traversable:
    return files("rooflines.models") / "presets" / "drafters"
