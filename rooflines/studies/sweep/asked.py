"""What is swept: a target with its drafter, and values along four axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rooflines.serving.memory import DEFAULT_RESERVE
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import Rates
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.studies.sweep.boxes import Box
from rooflines.timing.deployment import Deployment

Floats: TypeAlias = NDArray[np.float64]
_Array = TypeVar("_Array", bound=NDArray[Any])


@dataclass(frozen=True, slots=True)
class Served:
    """What is swept: a target and who drafts for it.

    Attributes:
        target: the model that is sped up, as it is served.
        drafter: who proposes.
        host: what it adds to passes and cycles.
        memory_reserve: share of the memory kept free.
    """

    target: Deployment
    drafter: Drafter
    host: CycleHost = DEVICE_ALONE
    memory_reserve: float = DEFAULT_RESERVE


@dataclass(frozen=True, slots=True)
class Axes:
    """Values along each axis of a dense grid, each of shape (values,).

    Attributes:
        batch: B sequences.
        context: S cached positions per sequence.
        draft_length: gamma; of a tree, its depth.
        rates: acceptance. An array of constant rates is the fourth axis; any other model has one value there.
    """

    batch: Floats
    context: Floats
    draft_length: Floats
    rates: Rates

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Values along (batch, context, draft length, acceptance)."""
        arrays = [array for array in arrays_of(self.rates) if array.ndim]
        return len(self.batch), len(self.context), len(self.draft_length), max(map(len, arrays), default=1)

    def cut(self, box: Box) -> Axes:
        """The part of the grid in a box."""
        batch, context, length, rate = box
        rates = with_arrays(self.rates, lambda array: array[rate])
        return Axes(self.batch[batch], self.context[context], self.draft_length[length], rates)


def arrays_of(rates: Rates) -> tuple[Floats, ...]:
    """What an acceptance holds, as arrays; branch rates are plain numbers."""
    if not isinstance(rates, Acceptance):
        return ()
    return tuple(np.asarray(value, dtype=float) for value in (*rates.listed, rates.decay))


def with_arrays(rates: Rates, change: Callable[[Floats], Floats]) -> Rates:
    """An acceptance whose arrays are changed, and whose plain numbers stay."""
    if not isinstance(rates, Acceptance):
        return rates
    *listed, decay = (change(array) if array.ndim else float(array) for array in arrays_of(rates))
    return replace(rates, listed=tuple(listed), decay=decay)


def part_of(array: _Array, box: Box) -> _Array:
    """The part of an array in a box; axes of length 1 hold for the whole of theirs."""
    ends = box[len(box) - array.ndim :]
    kept = (slice(None) if length == 1 else part for length, part in zip(array.shape, ends, strict=True))
    return array[tuple(kept)]  # type: ignore[return-value]  # slices give an array of the same kind
