"""Pricing many points of one target, drafter and device: dense grids, and points that lie anywhere.

What makes it fast is that few parts of an answer depend on everything. Linear layers depend on the positions
of a pass alone, attention on batch, context and width, and acceptance enters only through the tokens of a
cycle and the chance of a catch-up. Arrays of a grid keep an axis of length 1 for what a part does not depend
on, so each part is worked out once for all values of the others; points that lie anywhere are first sorted
into such a grid. Nothing is interpolated: every number is computed in float64 for its point alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.speculation.cycle import CycleTimes, Yield, cycle_times, cycle_with, cycle_yield
from rooflines.speculation.drafters.base import Draft
from rooflines.studies.sweep.asked import Axes, Served, part_of
from rooflines.studies.sweep.boxes import Box, boxes
from rooflines.studies.sweep.columns import (
    COLUMNS,
    Outputs,
    Piece,
    empty_where_it_varies,
    write_before_acceptance,
    write_extrapolated,
    write_piece,
)
from rooflines.timing.step_times import StepSeconds

# Points whose arrays stay in a core's own cache: 2^15 float64 are 256 KiB, of 1 to 2 MiB on server cores.
_CACHED_POINTS: Final = 2**15
# Points of (batch, context, draft length) whose times are priced at once: many enough to forget what building
# passes costs, few enough for memory.
_PRICED_POINTS: Final = 2**19


def price_grid(
    served: Served,
    axes: Axes,
    columns: Sequence[str] = COLUMNS,
    out: Outputs | None = None,
    *,
    dtype: DTypeLike = float,
) -> Outputs:
    """Price every point of a dense grid.

    Args:
        served: what is swept.
        axes: of the grid.
        columns: names out of `COLUMNS`.
        out: arrays to write into, as `empty` makes them for these columns and this shape, so that a loop
            over grids uses the same memory again. None makes new arrays.
        dtype: of the numbers of new arrays; float32 halves the memory that they take, and with it much of
            the time, since fresh memory takes the system longer than pricing what is written into it.

    Returns:
        Column -> array of shape `axes.shape`; ``fits`` is of booleans, ``verify_bound`` of places in
        `rooflines.timing.roofline.BOUNDS`. Without `out`, columns that do not vary along an axis hold their
        values once and are views that repeat them, which cannot be written to. Speeds of points that do not
        fit are those that they would have; ends of intervals are NaN where constants state no errors.

    Raises:
        UnknownNameError: a column that does not exist.
        InputError: `out` has other columns or shapes.
        RooflinesError: see `cycle_times`.
    """
    written = empty_where_it_varies(columns, axes.shape, dtype) if out is None else out
    if out is not None and (
        list(out) != list(columns) or any(array.shape != axes.shape for array in out.values())
    ):
        raise InputError(f"out must hold {', '.join(columns)}, each of shape {axes.shape}, and holds another")
    for timed in boxes(axes.shape[:-1], _PRICED_POINTS):
        box = (*timed, slice(0, axes.shape[-1]))
        _price_box(served, axes.cut(box), {name: part_of(whole, box) for name, whole in written.items()})
    return out or {name: np.broadcast_to(array, axes.shape) for name, array in written.items()}


def _price_box(served: Served, axes: Axes, out: Outputs) -> None:
    """Price a box: its times once, then what acceptance makes of them in pieces that stay in the cache."""
    batch, context = axes.batch[:, None, None, None], axes.context[None, :, None, None]
    length = axes.draft_length[None, None, :, None]
    times = cycle_times(served.target, served.drafter, batch, context, length, host=served.host)
    moments = write_before_acceptance(served, times, batch, context, out)
    write_extrapolated(times, axes.rates, out)
    yields = cycle_yield(times, axes.rates)
    for box in boxes(axes.shape, _CACHED_POINTS):
        outcome = cycle_with(
            _cut_times(times, box),
            Yield(_cut(yields.tokens_per_cycle, box), _cut(yields.all_accepted, box)),
        )
        piece = Piece(outcome, _cut(batch, box), None if moments is None else moments.cut(box))
        write_piece(piece, {name: part_of(whole, box) for name, whole in out.items()})


def _cut_times(times: CycleTimes, box: Box) -> CycleTimes:
    """The times of a box."""
    draft = times.draft
    return CycleTimes(
        target=StepSeconds(_cut(times.target.seconds, box), ""),
        verify=StepSeconds(_cut(times.verify.seconds, box), ""),
        draft=Draft(
            _cut(draft.seconds, box),
            _cut(draft.catch_up_s, box),
            _cut(draft.verify_width, box),
            tree=draft.tree,
        ),
        overhead_s=_cut(times.overhead_s, box),
        draft_length=_cut(times.draft_length, box),
        verify_length=_cut(times.verify_length, box),
    )


def _cut(values: Number, box: Box) -> Number:
    """The part of an array in a box; axes of length 1 hold for the whole of theirs."""
    array = np.asarray(values, dtype=float)
    return part_of(array, box) if array.ndim else float(array)
