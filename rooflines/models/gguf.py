"""Headers of GGUF files: metadata, and exact bytes and type of every tensor, without the data.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The header is read here rather than by the
`gguf` package, which maps every tensor and decodes every token of the vocabulary to answer the same.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rooflines.dtypes import GGUF_BLOCKS
from rooflines.errors import FileFormatError
from rooflines.models.stored import StoredTensor, StoredTensors, check_extents

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
DEFAULT_ALIGNMENT: Final = 32
_MOST_AXES: Final = 4
_LONGEST_NAME: Final = 65535

# Type numbers of tensors (enum ggml_type of ggml.h; numbers that are missing were removed there).
TENSOR_TYPES: Final = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    8: "Q8_0",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    30: "BF16",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
    40: "NVFP4",
    41: "Q1_0",
}
# (elements, bytes) of a block.
_BLOCKS: Final[dict[str, tuple[int, int]]] = {
    **{name.upper(): block[:2] for name, block in GGUF_BLOCKS.items()},
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "F64": (1, 8),
    "I8": (1, 1),
    "I16": (1, 2),
    "I32": (1, 4),
    "I64": (1, 8),
    "MXFP4": (32, 17),
    "NVFP4": (64, 36),
}
# Type numbers of metadata values (gguf.md, enum gguf_metadata_value_type), as struct codes.
_NUMBERS: Final = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING: Final = 8
_ARRAY: Final = 9
_SHARD: Final = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class Strings:
    """An array of strings, of which only the number is kept (vocabularies have hundreds of thousands)."""

    count: int


Value = int | float | bool | str | tuple[int | float | bool, ...] | Strings


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What the header of a GGUF model says.

    Attributes:
        metadata: keys and values.
        stored: all tensors.
    """

    metadata: dict[str, Value]
    stored: StoredTensors


def read_gguf(path: Path) -> GgufFile:
    """Metadata and tensors of a GGUF file, or of all parts of a split one.

    Args:
        path: the file; of a split model any part, the others are found beside it.

    Raises:
        FileFormatError: no such file, or one that is truncated, corrupt, of an unknown version or lacks
            parts; the message names it.
    """
    first = _read_file(path)
    parts = first.metadata.get("split.count", 0)
    if not isinstance(parts, int) or parts <= 1:
        return first
    return _join(path, parts)


def _join(path: Path, parts: int) -> GgufFile:
    named = _SHARD.fullmatch(path.name)
    if named is None or int(named["count"]) != parts:
        raise FileFormatError(
            f"{path}: one of {parts} parts, but its name does not end in -00001-of-{parts:05}.gguf: rename it"
        )
    files = [
        _read_file(path.with_name(f"{named['stem']}-{number:05}-of-{parts:05}.gguf"))
        for number in range(1, parts + 1)
    ]
    tensors = tuple(tensor for file in files for tensor in file.stored.tensors)
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise FileFormatError(f"{path}: a tensor occurs in two parts: the parts do not belong together")
    return GgufFile(files[0].metadata, StoredTensors(tensors))


def _read_file(path: Path) -> GgufFile:
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) == 0:
                raise FileFormatError(f"{path}: the file is empty; download it again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return _Header(view, str(path)).read()
    except OSError as problem:
        raise FileFormatError(f"{path}: {problem.strerror}") from None


class _Header:
    """A position in a file's bytes that moves forward as fields are read."""

    def __init__(self, view: mmap.mmap, where: str) -> None:
        self.view = view
        self.where = where
        self.at = 0

    def read(self) -> GgufFile:
        self._check_start()
        tensors, keys = self.number("Q"), self.number("Q")
        metadata: dict[str, Value] = {}
        for _ in range(keys):
            key = self.text("a metadata key")
            if key in metadata:
                raise self.corrupt(f"metadata key {key!r} occurs twice")
            metadata[key] = self.value(self.number("I"), key)
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment <= 0 or alignment % 8:
            raise self.corrupt(f"general.alignment is {alignment!r}, not a multiple of 8")
        found, extents = [], []
        for _ in range(tensors):
            tensor, first = self.tensor(alignment)
            found.append(tensor)
            extents.append((first, first + tensor.size_bytes, tensor.name))
        if len({tensor.name for tensor in found}) < len(found):
            raise self.corrupt("a tensor name occurs twice")
        data = math.ceil(self.at / alignment) * alignment
        check_extents(extents, max(len(self.view) - data, 0), self.where, gaps=True)
        return GgufFile(metadata, StoredTensors(tuple(found)))

    def _check_start(self) -> None:
        magic = bytes(self.view[:4])
        if magic != MAGIC:
            if bytes(self.view[:8]) == b"version ":
                raise FileFormatError(
                    f"{self.where}: this is a Git LFS pointer, not the file: run 'git lfs pull'"
                )
            raise FileFormatError(f"{self.where}: begins with {magic!r}, not {MAGIC!r}: this is no GGUF file")
        self.at = 4
        version = self.number("I")
        if version not in VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            if swapped in VERSIONS:
                raise FileFormatError(
                    f"{self.where}: big-endian GGUF is not read: convert it to little endian with gguf's "
                    "gguf-convert-endian"
                )
            raise FileFormatError(
                f"{self.where}: GGUF version {version} is not read (known: 2 and 3): convert the model again"
            )

    def take(self, size: int, what: str) -> int:
        """Move over `size` bytes; where they begin."""
        start = self.at
        if size > len(self.view) - start:
            raise FileFormatError(
                f"{self.where}: {what} ends after the file: it is truncated or corrupt; download it again"
            )
        self.at = start + size
        return start

    def number(self, code: str) -> int:
        start = self.take(struct.calcsize(f"<{code}"), "the header")
        value: int = struct.unpack_from(f"<{code}", self.view, start)[0]
        return value

    def text(self, what: str, longest: int = _LONGEST_NAME) -> str:
        length = self.number("Q")
        if length > longest:
            raise self.corrupt(f"{what} of {length} bytes")
        start = self.take(length, what)
        try:
            return self.view[start : start + length].decode("utf-8")
        except UnicodeDecodeError:
            raise self.corrupt(f"{what} is no UTF-8") from None

    def value(self, kind: int, key: str) -> Value:
        if kind == _STRING:
            return self.text(f"metadata {key!r}", longest=len(self.view))
        if kind == _ARRAY:
            return self.array(key)
        if kind not in _NUMBERS:
            raise self.corrupt(f"metadata {key!r} has the unknown type {kind}")
        return self.number(_NUMBERS[kind])

    def array(self, key: str) -> Value:
        kind, count = self.number("I"), self.number("Q")
        if kind == _STRING:
            return self.strings(count, key)
        if kind not in _NUMBERS:
            raise self.corrupt(f"metadata {key!r} is an array of the unknown type {kind}")
        code = _NUMBERS[kind]
        start = self.take(count * struct.calcsize(f"<{code}"), f"metadata {key!r}")
        return struct.unpack_from(f"<{count}{code}", self.view, start)

    def strings(self, count: int, key: str) -> Strings:
        what = f"metadata {key!r}"
        if count * 8 > len(self.view) - self.at:
            self.take(count * 8, what)
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            (length,) = unpack(self.view, self.take(8, what))
            self.take(length, what)
        return Strings(count)

    def tensor(self, alignment: int) -> tuple[StoredTensor, int]:
        """One entry of the list of tensors, and where its data begins."""
        name = self.text("a tensor name")
        axes = self.number("I")
        if axes > _MOST_AXES:
            raise self.corrupt(f"tensor {name!r} has {axes} axes")
        # GGUF lists the fastest axis first: inputs before outputs.
        shape = tuple(self.number("Q") for _ in range(axes))[::-1]
        number, offset = self.number("I"), self.number("Q")
        kind = TENSOR_TYPES.get(number)
        if kind is None:
            raise FileFormatError(
                f"{self.where}: tensor {name!r} has type number {number}, which is not known "
                f"(known: {', '.join(TENSOR_TYPES.values())})"
            )
        elements, size_bytes = _BLOCKS[kind]
        row = shape[-1] if shape else 1
        if row % elements:
            raise self.corrupt(
                f"tensor {name!r}: rows of {row} elements are no whole {kind} blocks of {elements}"
            )
        if offset % alignment:
            raise self.corrupt(f"tensor {name!r} begins at {offset}, no multiple of {alignment}")
        return StoredTensor(name, kind, shape, math.prod(shape) // elements * size_bytes), offset

    def corrupt(self, what: str) -> FileFormatError:
        return FileFormatError(f"{self.where}: {what}: the file is corrupt")
