"""Text, JSON and JSON lines, read so that a mistake names the file and the field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rooflines.errors import FileFormatError

Record: TypeAlias = Mapping[str, Any]


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        FileFormatError: it cannot be read, or is not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FileFormatError(f"{path} cannot be read: {reason}") from None


def json_of(text: str, where: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a text.

    Raises:
        FileFormatError: not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(f"{where} is not JSON") from None


def record_of(text: str, where: str) -> Record:
    """The JSON object of a text.

    Raises:
        FileFormatError: not JSON, or no object.
    """
    value = json_of(text, where)
    if not isinstance(value, dict):
        raise FileFormatError(f"{where} is not a JSON object")
    return value


def records_of(text: str, where: str) -> list[Record]:
    """The JSON objects of a text, one a line; a single object or a list of objects will do too.

    Raises:
        FileFormatError: a line is no JSON object, or there is none.
    """
    if text.lstrip().startswith("["):
        values: list[Any] = json_of(text, where)
    else:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            values = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            values = [json_of(text, where)]  # one object over several lines
    if not values or not all(isinstance(value, dict) for value in values):
        raise FileFormatError(f"{where} holds no JSON objects, one a line")
    return values


def require(record: Record, fields: Iterable[str], where: str, tool: str) -> None:
    """Refuse a record that lacks what every known version of the tool writes.

    Raises:
        FileFormatError: with the fields that are missing and the versions that are known.
    """
    missing = [field for field in fields if field not in record]
    if missing:
        raise FileFormatError(
            f"{where} is no result of {tool} in a known form: it lacks {', '.join(missing)}"
        )


def number(record: Record, field: str, where: str) -> float:
    """A number of a record.

    Raises:
        FileFormatError: missing, or no finite number of 0 or more.
    """
    value = record.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise FileFormatError(f"{where}: {field} is {value!r}, which is no number of 0 or more")
    return float(value)


def optional_number(record: Record, field: str, where: str) -> float | None:
    """A number of a record, None where the field is missing or null.

    Raises:
        FileFormatError: no finite number of 0 or more.
    """
    return None if record.get(field) is None else number(record, field, where)


def decimals(text: str, where: str) -> tuple[float, ...]:
    """Numbers as a log prints them, separated by commas.

    Raises:
        FileFormatError: one is no number.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise FileFormatError(f"{where}: {text.strip()!r} are no numbers") from None


def require_version(version: object, known: tuple[str, ...], where: str, tool: str) -> str:
    """The version, refused unless it begins as one of the known ones.

    Raises:
        FileFormatError: another version, by its name.
    """
    text = str(version)
    if not text.startswith(known):
        raise FileFormatError(
            f"{where} was written by {tool} {text}, whose format is not known: known are "
            f"{', '.join(f'{prefix}x' for prefix in known)}"
        )
    return text
