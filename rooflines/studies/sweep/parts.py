"""From a grid to parts: pieces of bounded size, each priced and written by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflines.costs.routing import parse_routing
from rooflines.dtypes import number_format
from rooflines.errors import InputError, RooflinesError
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.plan_host import host_of
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.studies.sweep.asked import Axes, Served
from rooflines.studies.sweep.boxes import Box, boxes
from rooflines.studies.sweep.grid import CHECKPOINT, Case, SweepGrid


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a sweep.

    Attributes:
        number: of its file.
        case: what is priced.
        draft_lengths: those of the grid that the drafter can draft.
        box: the piece, along (batch, context, draft length, acceptance).
    """

    number: int
    case: Case
    draft_lengths: tuple[int, ...]
    box: Box

    @property
    def rows(self) -> int:
        """Points of the piece."""
        return int(np.prod([part.stop - part.start for part in self.box]))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A combination that cannot be: a degree that divides no heads, a dtype without a peak, ..."""

    case: Case
    reason: str


def plan_parts(grid: SweepGrid) -> tuple[tuple[Part, ...], tuple[Refusal, ...]]:
    """Cut a grid into parts, and set aside combinations that cannot be.

    Raises:
        RooflinesError: a name, dtype or quantity that is wrong whatever it is combined with.
        InputError: no combination is possible.
    """
    require_known(grid)
    parts: list[Part] = []
    refused: list[Refusal] = []
    for case in grid.cases():
        try:
            lengths = _try(case, grid)
        except RooflinesError as error:
            refused.append(Refusal(case, str(error)))
            continue
        shape = axes_of(case, grid, lengths).shape
        parts += [
            Part(len(parts) + index, case, lengths, box)
            for index, box in enumerate(boxes(shape, grid.rows_per_part))
        ]
    if not parts:
        raise InputError(f"no combination of this grid is possible; the first: {refused[0].reason}")
    return tuple(parts), tuple(refused)


def require_known(grid: SweepGrid) -> None:
    """Read everything that is named, so that a slip of the keyboard ends the sweep before it starts.

    Raises:
        RooflinesError: what is wrong.
    """
    machines = [make_machine(name, grid.calibration, grid.overhead) for name in grid.hardware]
    for target in grid.target:
        host_of(grid.cycle_overhead, grid.drafter[0], make_deployment(target, machines[0]))
    for name in (*grid.weight_dtype, *grid.kv_dtype):
        if name != CHECKPOINT:
            number_format(name)
    parse_routing(grid.routing)


@lru_cache(maxsize=8)
def served(case: Case, grid: SweepGrid) -> Served:
    """A case as it is served; cached, since parts of one case follow each other.

    Raises:
        RooflinesError: names that do not go together.
    """
    target = make_deployment(
        case.target,
        make_machine(case.hardware, grid.calibration, grid.overhead),
        weight_dtype=None if case.weight_dtype == CHECKPOINT else case.weight_dtype,
        kv_dtype=None if case.kv_dtype == CHECKPOINT else case.kv_dtype,
        tensor=case.tensor_parallel,
        expert=case.expert_parallel,
        routing=grid.routing,
        encoder_positions=grid.encoder_positions,
        among_others=len(grid.target) > 1,
    )
    drafter = make_drafter(case.drafter, target)
    return Served(
        target, drafter, host_of(grid.cycle_overhead, case.drafter, target).time, grid.memory_reserve
    )


def axes_of(case: Case, grid: SweepGrid, draft_lengths: Sequence[int]) -> Axes:
    """The numbers that are priced with a case."""
    batch, context, length = (
        np.asarray(values, dtype=float) for values in (grid.batch, grid.context, draft_lengths)
    )
    return Axes(batch, context, length, case.rates)


def _try(case: Case, grid: SweepGrid) -> tuple[int, ...]:
    """Price the longest draft of one point, and so find what cannot be."""
    what = served(case, grid)
    lengths = what.drafter.draft_lengths(grid.draft_length)
    times = cycle_times(what.target, what.drafter, 1.0, float(grid.context[0]), float(max(lengths)))
    cycle(times, case.rates)
    return lengths
