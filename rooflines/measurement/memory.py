"""Models and caches that do not fit are bad input, not a crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rooflines.errors import InputError

# What torch says on a CPU, where it raises a plain RuntimeError (c10/core/impl/alloc_cpu.cpp).
_CPU_WORDS = "can't allocate memory"


@contextmanager
def fitting_memory() -> Iterator[None]:
    """Say what to do where the memory ends.

    Raises:
        InputError: torch found no memory for a tensor.
    """
    import torch

    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and _CPU_WORDS not in str(error):
            raise
        raise InputError(
            "the model and its caches do not fit into memory: name a smaller --batch, --context or --model, "
            "or a smaller --stream"
        ) from None
