"""JSON objects from files: strict about keys given twice, lenient about NaN and Infinity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rooflines.errors import ConfigError, FileFormatError

_JSON_KINDS: Final = {
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def load_json(path: Path) -> Mapping[str, Any]:
    """A JSON object from a file.

    Raises:
        FileFormatError: not readable, not UTF-8, not JSON, or not an object.
        ConfigError: a key given twice with different values.
    """
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise FileFormatError(f"{path}: cannot be read ({problem.strerror})") from None
    return parse_json(content, str(path))


def parse_json(content: bytes, where: str) -> Mapping[str, Any]:
    """A JSON object from bytes; NaN and Infinity are accepted, as Python's writers emit them.

    Raises:
        FileFormatError: not UTF-8, not JSON, or not an object; the message names `where`.
        ConfigError: a key given twice with different values.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{where}: this is no text file (a config is JSON in UTF-8)") from None
    if not text.strip():
        raise FileFormatError(f"{where}: the file is empty")
    try:
        data = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, where))
    except RecursionError:
        raise FileFormatError(f"{where}: nested too deeply for a config") from None
    except ValueError as problem:
        raise FileFormatError(f"{where}: not JSON ({problem})") from None
    if not isinstance(data, dict):
        found = _JSON_KINDS.get(type(data), "null")
        raise FileFormatError(f"{where}: holds {found}, not an object")
    return data


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ConfigError(f"{where}: {key} is given twice with different values: keep one")
        found[key] = value
    return found
