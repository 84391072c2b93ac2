"""Files of measurements: written once, read strictly, and continued where a run was killed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from rooflines.errors import FileFormatError, InputError
from rooflines.facts import render_mistakes
from rooflines.measurement.schema import DecodeFile, Header, MachineFile, SpeculationFile, StepsFile

AnyFile = MachineFile | DecodeFile | SpeculationFile | StepsFile
_READER: Final[TypeAdapter[AnyFile]] = TypeAdapter(Annotated[AnyFile, Field(discriminator="kind")])


def read_measured(path: Path) -> AnyFile:
    """Read a file of measurements of any kind.

    Raises:
        FileFormatError: missing, not JSON, or not what `rooflines.measurement.schema` describes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FileFormatError(f"measurements {path} cannot be read: {reason}") from None
    try:
        return _READER.validate_json(text)
    except ValidationError as mistakes:
        raise FileFormatError(f"measurements {path}: {render_mistakes(mistakes)}") from None


def measured_schema() -> dict[str, Any]:
    """JSON Schema of a file of measurements of any kind."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_READER.json_schema()}


def write_measured(file: Header, path: Path) -> None:
    """Write a file of measurements; one that exists is never replaced.

    Raises:
        InputError: the file exists or cannot be written.
    """
    refuse_to_replace(path)
    _write_whole(path, json.dumps(file.model_dump(mode="json"), allow_nan=False) + "\n")


def refuse_to_replace(path: Path) -> None:
    """Say so before hours are spent on measuring into a file that exists.

    Raises:
        InputError: the file exists, or its folder does not.
    """
    if path.exists():
        raise InputError(f"{path} exists, and measurements are never replaced: name another file")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder: make it first, or name another")


@dataclass(slots=True)
class Journal:
    """Finished parts of a run that may be killed, in ``FILE.partial`` beside the file to be.

    The first line says what is measured; a journal of anything else is refused. A line that was cut by the
    kill is dropped, and its part measured again.

    Attributes:
        path: of the journal.
        parts: finished parts by name, in the order they were finished.
    """

    path: Path
    parts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, target: Path, question: Mapping[str, Any]) -> Journal:
        """Begin a journal for `target`, or continue the one that a killed run left.

        Args:
            target: the file that the whole run writes.
            question: everything that the numbers depend on (JSON values); a journal with another is refused.

        Raises:
            InputError: `target` exists, or the journal there answers another question.
        """
        refuse_to_replace(target)
        journal = cls(target.with_name(target.name + ".partial"))
        asked = json.loads(json.dumps(question))
        if not journal.path.exists():
            journal._append({"question": asked})
            return journal
        whole = _whole_lines(journal.path)
        if not whole or whole[0].get("question") != asked:
            raise InputError(
                f"{journal.path} holds parts of a run with other inputs "
                f"({_differences(whole[0].get('question') if whole else None, asked)}): "
                "finish that run with its own, remove the file, or name another output"
            )
        journal.parts = {line["part"]: line["data"] for line in whole[1:]}
        _write_whole(journal.path, "".join(json.dumps(line) + "\n" for line in whole))
        return journal

    def add(self, part: str, data: Any) -> None:  # noqa: ANN401 - any JSON value
        """Keep a finished part; it survives a kill from here on."""
        self._append({"part": part, "data": data})
        self.parts[part] = data

    def finish(self, file: Header, target: Path) -> None:
        """Write the whole file and remove the journal."""
        write_measured(file, target)
        self.path.unlink()

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line, allow_nan=False) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from None


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            break  # cut by the kill; nothing was written behind it
        if not isinstance(line, dict) or not ({"question"} <= set(line) or {"part", "data"} <= set(line)):
            raise FileFormatError(f"{path} is no journal of measurements: remove it, or name another output")
        lines.append(line)
    return lines


def _differences(earlier: object, now: Mapping[str, Any]) -> str:
    if not isinstance(earlier, Mapping):
        return "it does not say which"
    keys = [key for key in {**earlier, **now} if earlier.get(key) != now.get(key)]
    return "different: " + ", ".join(keys)


def _write_whole(path: Path, text: str) -> None:
    """Write beside the file and rename, so that no reader ever sees half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
