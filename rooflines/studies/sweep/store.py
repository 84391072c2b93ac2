"""The folder of a sweep: a manifest, and one Parquet file a part that is either whole or not there.

A part is written under a name that readers pass over (it starts with a dot), and then renamed, which file
systems do at once. So a sweep that was killed has lost the part it was at and nothing else, a part that two
workers priced is one file, and who reads while the sweep goes on sees whole parts only.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rooflines import __version__
from rooflines.errors import FileFormatError, InputError
from rooflines.studies.sweep.columns import VERIFY_BOUND
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.parts import Part, Refusal
from rooflines.studies.sweep.table import part_table

SCHEMA_VERSION: Final = 1
# Readers of Parquet folders pass over names that start with an underscore or a dot.
MANIFEST: Final = "_sweep.json"
_MARK: Final = b"rooflines.sweep"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds, or will.

    Attributes:
        fingerprint: of the grid and the version that prices it.
        rows: of each part.
        grid: as it was given.
        refused: combinations that cannot be, each with its reason.
    """

    fingerprint: str
    rows: tuple[int, ...]
    grid: dict[str, Any]
    refused: tuple[dict[str, Any], ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Name of each part."""
        return tuple(part_file(number) for number in range(len(self.rows)))


def part_file(number: int) -> str:
    """Name of a part."""
    return f"part-{number:06d}.parquet"


def open_folder(folder: Path, grid: SweepGrid, parts: Sequence[Part], refused: Sequence[Refusal]) -> Manifest:
    """Begin a sweep in a new or empty folder, or go on with the same one.

    Raises:
        InputError: the folder holds another sweep or other files, or cannot be made.
    """
    manifest = Manifest(
        grid.fingerprint(),
        tuple(part.rows for part in parts),
        grid.model_dump(mode="json"),
        tuple({**asdict(one.case), "reason": one.reason} for one in refused),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(file.name for file in folder.iterdir())
    except OSError as error:
        raise InputError(f"cannot use the folder {folder}: {error.strerror}") from None
    if MANIFEST in names:
        if read_manifest(folder).fingerprint != manifest.fingerprint:
            raise InputError(
                f"{folder} holds the sweep of another grid, or of another version of rooflines: name another "
                "folder, or remove this one"
            )
        remove_half_written(folder)
        return manifest
    if names:
        raise InputError(f"{folder} holds other files ({names[0]}, ...): name a new or empty folder")
    document = {"schema_version": SCHEMA_VERSION, "version": __version__, **asdict(manifest)}
    _write_whole(folder / MANIFEST, json.dumps(document, indent=1).encode())
    return manifest


def remove_half_written(folder: Path) -> None:
    """Remove what runs or workers left that died while they wrote; no reader looks at it."""
    for left in folder.glob(".part-*"):
        left.unlink(missing_ok=True)


def read_manifest(folder: Path) -> Manifest:
    """What a folder holds.

    Raises:
        FileFormatError: it holds no sweep, or one of an unknown format.
    """
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema_version"] != SCHEMA_VERSION:
            raise FileFormatError(
                f"{path} has format {data['schema_version']}, and {SCHEMA_VERSION} is known"
            )
        return Manifest(
            data["fingerprint"], tuple(map(int, data["rows"])), data["grid"], tuple(data["refused"])
        )
    except OSError as error:
        raise FileFormatError(f"{folder} holds no sweep: {path.name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):  # ValueError: not UTF-8, not JSON
        raise FileFormatError(f"{path} is no manifest of a sweep") from None


def write_part(folder: Path, part: Part, grid: SweepGrid, fingerprint: str) -> int:
    """Price a part and write it, unless it is there.

    Returns:
        Its rows.

    Raises:
        InputError: it cannot be written.
    """
    import pyarrow.parquet as pq

    path = folder / part_file(part.number)
    if is_whole(path, part.rows, fingerprint):
        return part.rows
    table = part_table(part, grid)
    dictionaries = [name for name in table.column_names if name not in grid.columns or name == VERIFY_BOUND]
    hidden = folder / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}"
    try:
        # Computed numbers seldom repeat, so looking for repetitions in them would be in vain.
        pq.write_table(
            table.replace_schema_metadata({_MARK: fingerprint, b"rooflines.version": __version__}),
            hidden,
            use_dictionary=dictionaries,
        )
        hidden.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        hidden.unlink(missing_ok=True)
    return part.rows


def is_whole(path: Path, rows: int, fingerprint: str) -> bool:
    """Whether a part is there, belongs to this sweep, and ends as it should."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return found.num_rows == rows and (found.metadata or {}).get(_MARK) == fingerprint.encode()


def _write_whole(path: Path, content: bytes) -> None:
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        hidden.write_bytes(content)
        hidden.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
