"""Pricing many points of one target, drafter and device: dense grids, and points that lie anywhere.

What makes it fast is that few parts of an answer depend on everything. Linear layers depend on the positions
of a pass alone, attention on batch, context and width, and acceptance enters only through the tokens of a
cycle and the chance of a catch-up. Arrays of a grid keep an axis of length 1 for what a part does not depend
on, so each part is worked out once for all values of the others; points that lie anywhere are first sorted
into such a grid. Nothing is interpolated or rounded: every number is the float64 of its point alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError, UnknownNameError
from rooflines.serving.memory import DEFAULT_RESERVE, MemoryFit, memory_fit
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import (
    Cycle,
    CycleTimes,
    Yield,
    cycle_times,
    cycle_with,
    cycle_yield,
)
from rooflines.speculation.drafters.base import Draft, Drafter
from rooflines.studies.sweep.boxes import Box, boxes
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepSeconds

Floats: TypeAlias = NDArray[np.float64]
Outputs: TypeAlias = dict[str, NDArray[np.float64] | NDArray[np.bool_]]
# Points whose arrays stay in a core's own cache: 2^15 float64 are 256 KiB, of 1 to 2 MiB on server cores.
_CACHED_POINTS: Final = 2**15
# Points that are priced at once: many enough to forget what building a pass costs, few enough for memory.
_PRICED_POINTS: Final = 2**21

OF_MEMORY: Final[dict[str, Callable[[MemoryFit], Number | NDArray[np.bool_]]]] = {
    "fits": lambda fit: np.asarray(fit.fits),
    "memory_bytes": lambda fit: fit.used_bytes,
}
OF_CYCLE: Final[dict[str, Callable[[Cycle, Number], Number]]] = {
    "verify_width": lambda cycle, _: cycle.verify_width,
    "tokens_per_cycle": lambda cycle, _: cycle.tokens_per_cycle,
    "target_step_s": lambda cycle, _: cycle.target_step_s,
    "draft_s": lambda cycle, _: cycle.draft_s,
    "verify_s": lambda cycle, _: cycle.verify_s,
    "cycle_cost": lambda cycle, _: cycle.cycle_cost,
    "cost_ratio": lambda cycle, _: cycle.cost_ratio,
    "speedup": lambda cycle, _: cycle.speedup,
    "time_per_token_s": lambda cycle, _: cycle.time_per_token_s,
    "tokens_per_s": lambda cycle, batch: batch / cycle.time_per_token_s,
}
COLUMNS: Final = (*OF_MEMORY, *OF_CYCLE)


@dataclass(frozen=True, slots=True)
class Served:
    """What is swept: a target and who drafts for it.

    Attributes:
        target: the model that is sped up, as it is served.
        drafter: who proposes.
        overhead_s: time per cycle outside draft and verify (s).
        memory_reserve: share of the memory kept free.
    """

    target: Deployment
    drafter: Drafter
    overhead_s: float = 0.0
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


def price_grid(
    served: Served, axes: Axes, columns: Sequence[str] = COLUMNS, out: Outputs | None = None
) -> Outputs:
    """Price every point of a dense grid.

    Args:
        served: what is swept.
        axes: of the grid.
        columns: names out of `COLUMNS`.
        out: what an earlier call for as many points and the same columns returned, to be written over: fresh
            memory for many columns takes the system longer than pricing them. None makes new arrays.

    Returns:
        Column -> array of shape `axes.shape`; ``fits`` is of booleans. Speeds of points that do not fit are
        those that they would have.

    Raises:
        UnknownNameError: a column that does not exist.
        InputError: `out` has other columns or shapes.
        RooflinesError: see `cycle_times`.
    """
    out = empty(columns, axes.shape) if out is None else out
    if list(out) != list(columns) or any(array.shape != axes.shape for array in out.values()):
        raise InputError(f"out must hold {', '.join(columns)}, each of shape {axes.shape}, and holds another")
    for box in boxes(axes.shape, _PRICED_POINTS):
        _price_box(served, axes.cut(box), {name: whole[box] for name, whole in out.items()})
    return out


def _price_box(served: Served, axes: Axes, out: Outputs) -> None:
    """Price a box: its times once, then what acceptance makes of them in pieces that stay in the cache."""
    batch, context = axes.batch[:, None, None, None], axes.context[None, :, None, None]
    length = axes.draft_length[None, None, :, None]
    times = cycle_times(served.target, served.drafter, batch, context, length, overhead_s=served.overhead_s)
    write_memory(served, times, batch, context, out)
    yields = cycle_yield(times, axes.rates)
    for piece in boxes(axes.shape, _CACHED_POINTS):
        outcome = cycle_with(
            _cut_times(times, piece),
            Yield(_cut(yields.tokens_per_cycle, piece), _cut(yields.all_accepted, piece)),
        )
        write_cycle(outcome, _cut(batch, piece), {name: whole[piece] for name, whole in out.items()})


def empty(columns: Sequence[str], shape: tuple[int, ...]) -> Outputs:
    """Arrays to write columns into.

    Raises:
        UnknownNameError: a column that does not exist.
    """
    for name in columns:
        if name not in COLUMNS:
            raise UnknownNameError("column", name, COLUMNS, f"(known: {', '.join(COLUMNS)})")
    return {name: np.empty(shape, dtype=bool if name == "fits" else float) for name in columns}


def write_memory(served: Served, times: CycleTimes, batch: Floats, context: Floats, out: Outputs) -> None:
    """Columns of memory; a draft is held until it is verified, and so are all nodes of a tree."""
    wanted = {name: OF_MEMORY[name] for name in out if name in OF_MEMORY}
    if not wanted:
        return
    held = np.maximum(np.asarray(times.draft.verify_width) - 1.0, times.draft_length)
    fit = memory_fit(served.target, served.drafter, batch, context, held, reserve=served.memory_reserve)
    for name, column in wanted.items():
        np.copyto(out[name], column(fit))


def write_cycle(outcome: Cycle, batch: Number, out: Outputs) -> None:
    """Columns of time and yield."""
    for name in out.keys() & OF_CYCLE.keys():
        np.copyto(out[name], OF_CYCLE[name](outcome, batch))


def arrays_of(rates: Rates) -> tuple[NDArray[np.float64], ...]:
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
    if not array.ndim:
        return float(array)
    ends = box[len(box) - array.ndim :]
    kept = (slice(None) if length == 1 else part for length, part in zip(array.shape, ends, strict=True))
    return array[tuple(kept)]
