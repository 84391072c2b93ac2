"""The tensors that lie beside a config: whichever kind of checkpoint a path leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rooflines.models.gguf import read_gguf
from rooflines.models.safetensors import INDEX_NAME, read_safetensors
from rooflines.models.stored import StoredTensors

_GGUF: Final = ".gguf"
_SAFETENSORS: Final = ".safetensors"


def read_stored(path: Path) -> StoredTensors | None:
    """Every tensor of a checkpoint with its exact bytes, or None where there is no checkpoint.

    Args:
        path: a GGUF or safetensors file, an index of shards, a config.json with the weights beside it, or
            the folder that holds them.

    Raises:
        FileFormatError: a checkpoint that is truncated, corrupt or contradicts its index.
    """
    if path.suffix == _GGUF:
        return read_gguf(path).stored
    if path.suffix == _SAFETENSORS or path.name == INDEX_NAME:
        return read_safetensors(path)
    folder = path if path.is_dir() else path.parent
    if (folder / INDEX_NAME).is_file() or any(folder.glob(f"*{_SAFETENSORS}")):
        return read_safetensors(folder)
    return None
