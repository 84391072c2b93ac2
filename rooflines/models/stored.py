"""Tensors as files hold them: name, type, shape and exact bytes, read from headers without the data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rooflines.errors import FileFormatError


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file.

    Attributes:
        name: as the file calls it.
        kind: element type as the file calls it (``BF16``, ``F8_E4M3``, ``Q4_K``).
        shape: elements along each axis, outputs before inputs; packed tensors count their words.
        size_bytes: bytes of data.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def elements(self) -> int:
        """Elements of the shape."""
        return math.prod(self.shape)

    @property
    def module(self) -> str:
        """The module it belongs to: its name without the last component."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class StoredTensors:
    """All tensors of a checkpoint, in the order of its files."""

    tensors: tuple[StoredTensor, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors, whatever they are for (vision towers and buffers included)."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @property
    def elements(self) -> int:
        """Elements of all tensors; of packed tensors their words, so this is no parameter count there."""
        return sum(tensor.elements for tensor in self.tensors)

    def count_by_kind(self) -> dict[str, int]:
        """How many tensors of each element type there are, the commonest first."""
        return dict(Counter(tensor.kind for tensor in self.tensors).most_common())

    def module_bytes(self) -> dict[str, int]:
        """Bytes by module: a weight with its bias, scales, zero points and indices."""
        sizes: Counter[str] = Counter()
        for tensor in self.tensors:
            sizes[tensor.module] += tensor.size_bytes
        return dict(sizes)


def check_extents(extents: Iterable[tuple[int, int, str]], end: int, where: str, *, gaps: bool) -> None:
    """Check that tensors lie within a file's data and do not overlap.

    Args:
        extents: first byte, byte after the last, and name of each tensor, counted from the start of the data.
        end: bytes of data in the file.
        where: the file, for messages.
        gaps: whether bytes between tensors are allowed (alignment).

    Raises:
        FileFormatError: truncated data, overlapping tensors, or bytes that belong to none.
    """
    reached, before = 0, ""
    for first, last, name in sorted(extents):
        if first < reached:
            raise FileFormatError(f"{where}: tensors {before!r} and {name!r} overlap: the file is corrupt")
        if first > reached and not gaps:
            raise FileFormatError(
                f"{where}: {first - reached} bytes before tensor {name!r} belong to none: the file is corrupt"
            )
        reached, before = last, name
    if reached > end:
        raise FileFormatError(
            f"{where}: tensor {before!r} ends {reached - end} bytes after the file: it is truncated; "
            "download it again"
        )
    if reached < end and not gaps:
        raise FileFormatError(
            f"{where}: {end - reached} bytes after the last tensor belong to none: the file is corrupt"
        )
