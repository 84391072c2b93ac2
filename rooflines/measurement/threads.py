"""How many threads torch computes with, for as long as something is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rooflines.errors import InputError


@contextmanager
def computing_threads(count: int) -> Iterator[None]:
    """Compute with `count` threads, and afterwards with as many as before.

    Raises:
        InputError: less than one.
    """
    import torch

    if count < 1:
        raise InputError(f"{count} threads cannot compute: name one or more")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
