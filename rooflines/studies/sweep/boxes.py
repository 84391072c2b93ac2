"""Cutting a grid into boxes of bounded size, outermost axis first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Box: TypeAlias = tuple[slice, ...]


def boxes(shape: Sequence[int], most: int) -> Iterator[Box]:
    """Cut a grid into boxes that cover every point once, in the grid's own order.

    Inner axes stay whole as long as they can: what does not depend on the innermost axes is then worked out
    once for all of their values.

    Args:
        shape: length of each axis, 1 or more.
        most: points of a box at most, 1 or more.
    """
    lengths = _lengths(shape, most)
    cuts = [
        [slice(start, min(start + length, whole)) for start in range(0, whole, length)]
        for whole, length in zip(shape, lengths, strict=True)
    ]
    yield from itertools.product(*cuts)


def box_shape(box: Box) -> tuple[int, ...]:
    """Points of a box along each axis."""
    return tuple(part.stop - part.start for part in box)


def _lengths(shape: Sequence[int], most: int) -> list[int]:
    """How long a box is along each axis; pieces of an axis that is cut are of nearly one length."""
    lengths, room = [], most
    for whole in reversed(shape):
        longest = max(1, min(whole, room))
        pieces = math.ceil(whole / longest)
        lengths.append(math.ceil(whole / pieces))
        # Once an axis is cut, those around it are taken one value at a time.
        room = room // whole if pieces == 1 else 1
    return lengths[::-1]
