"""Pricing points that lie anywhere: sorted into rows of a grid, and priced like one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.studies.sweep.asked import Floats, Served, arrays_of, with_arrays
from rooflines.studies.sweep.boxes import boxes
from rooflines.studies.sweep.columns import (
    COLUMNS,
    Outputs,
    Piece,
    empty,
    write_before_acceptance,
    write_extrapolated,
    write_piece,
)

# Points that are priced at once: many enough to forget what building a pass costs, few enough that their
# arrays (1 MiB each) stay in a shared cache.
_POINTS_AT_ONCE: Final = 2**17
# Pricing what all points of a row share costs about this many points: some 16 operators beside the one of
# attention, which each point has to itself.
_POINTS_PER_ROW: Final = 12


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one target and drafter, each field of shape (N,).

    Attributes:
        batch: B sequences.
        context: S cached positions per sequence.
        draft_length: gamma; of a tree, its depth.
        rates: acceptance, of arrays of shape (N,) or of numbers that hold for all points.
    """

    batch: Floats
    context: Floats
    draft_length: Floats
    rates: Rates

    def __post_init__(self) -> None:
        arrays = [array for array in arrays_of(self.rates) if array.ndim]
        shapes = [np.shape(array) for array in (self.batch, self.context, self.draft_length, *arrays)]
        if set(shapes) != {(np.size(self.batch),)}:
            raise InputError(f"points have shapes {shapes}: each array needs one value a point")


def price_points(served: Served, points: Points, columns: Sequence[str] = COLUMNS) -> Outputs:
    """Price points that lie anywhere.

    Points of equal batch and draft length share a row of a grid, whose linear layers are priced once.

    Args:
        served: what is swept.
        points: in any order.
        columns: names out of `COLUMNS`.

    Returns:
        Column -> array of shape (N,).

    Raises:
        UnknownNameError: a column that does not exist.
        RooflinesError: see `cycle_times`.
    """
    out = empty(columns, points.batch.shape)
    if not len(points.batch):
        return out
    rows = _Rows.of(points.batch, points.draft_length)
    batch, length = rows.shared(points.batch), rows.shared(points.draft_length)
    context, rates = rows.spread(points.context), with_arrays(points.rates, rows.spread)
    grid = empty(columns, context.shape)
    for box in boxes(context.shape, _POINTS_AT_ONCE):
        here = {name: whole[box] for name, whole in grid.items()}
        _price_rows(
            served, batch[box[0]], context[box], length[box[0]], with_arrays(rates, itemgetter(box)), here
        )
    for name, whole in grid.items():
        out[name][rows.order] = whole.ravel()[rows.place]
    return out


def _price_rows(  # noqa: PLR0917 - four axes, what is served and where it is written
    served: Served, batch: Floats, context: Floats, length: Floats, rates: Rates, out: Outputs
) -> None:
    """Price some rows into columns."""
    times = cycle_times(served.target, served.drafter, batch, context, length, host=served.host)
    moments = write_before_acceptance(served, times, batch, context, out)
    write_extrapolated(times, rates, out)
    write_piece(Piece(cycle(times, rates), batch, moments), out)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Points as rows of equal batch and draft length, filled up to one width.

    Attributes:
        order: points, sorted, shape (N,).
        place: where each of the sorted points lies in the flat grid of rows, shape (N,).
        first: the point that each row takes what it shares from, shape (rows,).
        width: points of a row.
    """

    order: NDArray[np.intp]
    place: NDArray[np.intp]
    first: NDArray[np.intp]
    width: int

    @classmethod
    def of(cls, batch: Floats, draft_length: Floats) -> _Rows:
        """Sort points into rows, as wide as balances what rows share against what filling them up costs."""
        order = np.argsort(_key(batch, draft_length), kind="stable")
        sorted_batch, sorted_length = batch[order], draft_length[order]
        new = (sorted_batch[1:] != sorted_batch[:-1]) | (sorted_length[1:] != sorted_length[:-1])
        starts = np.concatenate([[0], np.flatnonzero(new) + 1])
        counts = np.diff(starts, append=len(order))
        width = max(1, int(np.sqrt(2 * _POINTS_PER_ROW * (counts.mean() - 1.0))))
        needed = -(-counts // width)
        ends = np.cumsum(needed)
        shift = (ends - needed) * width - starts
        place = np.arange(len(order)) + np.repeat(shift, counts)
        return cls(order, place, np.repeat(order[starts], needed), width)

    def shared(self, values: Floats) -> Floats:
        """What points of a row have in common, shape (rows, 1)."""
        return values[self.first][:, None]

    def spread(self, values: Floats) -> Floats:
        """Values of all points, shape (rows, width); places that are left hold 0."""
        flat = np.zeros(len(self.first) * self.width)
        flat[self.place] = values[self.order]
        return flat.reshape(-1, self.width)


def _key(batch: Floats, draft_length: Floats) -> NDArray[np.float64] | NDArray[np.uint16]:
    """What points are sorted by; of 16 bits where that tells all apart, since those are sorted by radix."""
    key: Floats = batch * (draft_length.max() + 1.0) + draft_length
    if key.max() <= np.iinfo(np.uint16).max and np.all(batch == np.floor(batch)):
        return np.asarray(key, dtype=np.uint16)
    return key
