"""Headers of safetensors checkpoints: exact bytes and shape of every tensor, without the data.

Format: eight bytes with the header's length (little endian), a JSON header, the data
(https://github.com/huggingface/safetensors, section "Format"). Shards are listed in
``model.safetensors.index.json``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeGuard

from rooflines.errors import FileFormatError
from rooflines.models.stored import StoredTensor, StoredTensors, check_extents

# The reference implementation refuses longer headers (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
LONGEST_HEADER_BYTES: Final = 100_000_000
INDEX_NAME: Final = "model.safetensors.index.json"
SINGLE_NAME: Final = "model.safetensors"
_LENGTH_BYTES: Final = 8
_MOST_AXES: Final = 32

# Bits per element (safetensors/src/tensor.rs, Dtype).
_BITS: Final = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}


def read_safetensors(path: Path) -> StoredTensors:
    """Every tensor of a checkpoint.

    Args:
        path: a ``.safetensors`` file, an index file, or a folder that holds either.

    Raises:
        FileFormatError: no such file, or one that is truncated, corrupt or contradicts its index; the message
            names it.
    """
    if path.is_dir():
        path = _in_folder(path)
    if path.name.endswith(".json"):
        return _read_shards(path)
    return StoredTensors(_read_file(path))


def _in_folder(folder: Path) -> Path:
    """The file to read in a folder, in the order of transformers: one file, then an index."""
    for name in (SINGLE_NAME, INDEX_NAME):
        if (folder / name).is_file():
            return folder / name
    found = sorted(folder.glob("*.safetensors"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise FileFormatError(f"{folder}: no .safetensors file in this folder")
    raise FileFormatError(
        f"{folder}: {len(found)} .safetensors files without {INDEX_NAME}: name one of them, or add the index"
    )


def _read_shards(index: Path) -> StoredTensors:
    """Tensors of all shards, which must hold exactly what the index says."""
    try:
        text = index.read_bytes()
    except OSError as problem:
        raise FileFormatError(f"{index}: {problem.strerror}") from None
    content = _json_object(text, str(index))
    weight_map = content.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise FileFormatError(f"{index}: no weight_map: it must map tensor names to files")
    listed: dict[str, set[str]] = {}
    for name, file in weight_map.items():
        if not isinstance(file, str) or not file or Path(file).name != file:
            raise FileFormatError(f"{index}: tensor {name!r} lies in {file!r:.60}: it must be a file name")
        listed.setdefault(file, set()).add(name)
    tensors: list[StoredTensor] = []
    for file, names in sorted(listed.items()):
        held = _read_file(index.parent / file)
        missing = names - {tensor.name for tensor in held}
        if missing:
            raise FileFormatError(
                f"{index.parent / file}: tensor {min(missing)!r} is missing, but {index.name} lists it"
            )
        unlisted = {tensor.name for tensor in held} - names
        if unlisted:
            raise FileFormatError(
                f"{index.parent / file}: holds {min(unlisted)!r}, which {index.name} does not list there"
            )
        tensors += held
    return StoredTensors(tuple(tensors))


def _read_file(path: Path) -> tuple[StoredTensor, ...]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            header, length = _read_header(file, size, str(path))
    except OSError as problem:
        raise FileFormatError(f"{path}: {problem.strerror}") from None
    tensors, extents = [], []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        tensor, first = _tensor(name, entry, str(path))
        tensors.append(tensor)
        extents.append((first, first + tensor.size_bytes, name))
    check_extents(extents, size - _LENGTH_BYTES - length, str(path), gaps=False)
    return tuple(tensors)


def _read_header(file: BinaryIO, size: int, where: str) -> tuple[dict[str, Any], int]:
    start = file.read(_LENGTH_BYTES)
    if len(start) < _LENGTH_BYTES:
        raise FileFormatError(f"{where}: {size} bytes are no safetensors file; download it again")
    if start == b"version ":
        raise FileFormatError(f"{where}: this is a Git LFS pointer, not the file: run 'git lfs pull'")
    length = int.from_bytes(start, "little")
    if length > LONGEST_HEADER_BYTES:
        raise FileFormatError(
            f"{where}: its header would take {length} bytes (at most {LONGEST_HEADER_BYTES}): this is no "
            "safetensors file"
        )
    if length > size - _LENGTH_BYTES:
        raise FileFormatError(
            f"{where}: its header takes {length} bytes, the file only {size}: it is truncated; download it "
            "again"
        )
    return _json_object(file.read(length), where), length


def _json_object(text: bytes, where: str) -> dict[str, Any]:
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=lambda pairs: _unique(pairs, where))
    except (ValueError, RecursionError):
        raise FileFormatError(f"{where}: the header is no valid JSON: the file is corrupt") from None
    if not isinstance(content, dict):
        raise FileFormatError(f"{where}: the header is no JSON object: the file is corrupt")
    return content


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise FileFormatError(f"{where}: a name occurs twice in the header: the file is corrupt")
    return content


def _tensor(name: str, entry: object, where: str) -> tuple[StoredTensor, int]:
    """One tensor out of its header entry, and where its data begins."""
    if not isinstance(entry, Mapping):
        raise FileFormatError(f"{where}: tensor {name!r}: {entry!r:.60} is no object")
    kind, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(kind, str) or kind not in _BITS:
        raise FileFormatError(
            f"{where}: tensor {name!r} has the unknown dtype {kind!r:.40}: known are {', '.join(_BITS)}"
        )
    if not _are_sizes(shape):
        raise FileFormatError(f"{where}: tensor {name!r}: shape {shape!r:.60} is no list of whole numbers")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:  # noqa: PLR2004 - begin, end
        raise FileFormatError(
            f"{where}: tensor {name!r}: data_offsets {offsets!r:.60} are no pair [begin, end]"
        )
    size_bytes = offsets[1] - offsets[0]
    expected = math.ceil(math.prod(shape) * _BITS[kind] / 8)
    if size_bytes != expected:
        raise FileFormatError(
            f"{where}: {name!r} has {size_bytes} bytes, but {kind} of shape {shape!r:.60} needs {expected}"
        )
    return StoredTensor(name, kind, tuple(shape), size_bytes), offsets[0]


def _are_sizes(values: object) -> TypeGuard[list[int]]:
    """Whether `values` is a short list of whole numbers that fit in 63 bits."""
    return (
        isinstance(values, list)
        and len(values) <= _MOST_AXES
        and all(
            isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 for value in values
        )
    )
