"""Which passes are worth timing: from one base case each axis alone, and widths at both contexts' ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from rooflines.errors import InputError

Kind = Literal["step", "prefill", "head", "draft", "empty"]
# A drafter's step is one position wide, or two when it catches up with a draft that was kept whole. Wider
# ones and fewer layers tell what its bytes cost from what its arithmetic and its launches cost.
_DRAFT_WIDTHS: Final = (1, 2)
_WIDE_DRAFTS: Final = (4, 8)


@dataclass(frozen=True, slots=True)
class Case:
    """One cell to time; the words are those of `rooflines.measurement.schema.Sample`."""

    kind: Kind
    batch: int
    new_positions: int
    context: int
    depth: int

    @property
    def name(self) -> str:
        """A name for journals and progress."""
        return f"{self.kind} B={self.batch} n={self.new_positions} S={self.context} L={self.depth}"


@dataclass(frozen=True, slots=True)
class Grid:
    """What is varied; the first value of each axis is the base.

    A pass that only changes its width cannot tell bandwidth from overhead: depth, context and batch must
    change too (docs/measuring.md).

    Attributes:
        batches: sequences.
        positions: new positions per sequence: 1 is decoding, more is verifying.
        contexts: positions cached before.
        depths: layers that run; empty for all of them only.
        prefills: prompts' lengths.
        cross: time every combination instead of each axis alone.
    """

    batches: tuple[int, ...] = (1,)
    positions: tuple[int, ...] = (1,)
    contexts: tuple[int, ...] = (128,)
    depths: tuple[int, ...] = ()
    prefills: tuple[int, ...] = ()
    cross: bool = False


def plan_cases(grid: Grid, layers: int, *, lean: bool) -> tuple[Case, ...]:
    """The cases to time, the base case first, none twice.

    Args:
        grid: what is varied.
        layers: of the model.
        lean: whether the runner also times the head, the int4 copy and the host's work alone.

    Raises:
        InputError: an empty axis, or more layers than the model has.
    """
    for name, axis in (("batch", grid.batches), ("positions", grid.positions), ("context", grid.contexts)):
        if not axis:
            raise InputError(f"no {name} is given: name at least one")
    if grid.depths and max(grid.depths) > layers:
        raise InputError(f"depth {max(grid.depths)}: the model has {layers} layers")
    cases = [*_steps(grid, layers), *(Case("prefill", grid.batches[0], n, 0, layers) for n in grid.prefills)]
    if lean:
        cases += _parts(grid, layers)
    return tuple(dict.fromkeys(cases))


def _steps(grid: Grid, layers: int) -> Iterator[Case]:
    batch, width, context = grid.batches[0], grid.positions[0], grid.contexts[0]
    yield Case("step", batch, width, context, layers)
    if grid.cross:
        for b in grid.batches:
            for n in grid.positions:
                for s in grid.contexts:
                    for depth in (*grid.depths, layers):
                        yield Case("step", b, n, s, depth)
        return
    for end in (context, grid.contexts[-1]):
        yield from (Case("step", batch, n, end, layers) for n in grid.positions)
    yield from (Case("step", b, width, context, layers) for b in grid.batches)
    yield from (Case("step", batch, width, s, layers) for s in grid.contexts)
    yield from (Case("step", batch, width, context, depth) for depth in grid.depths)


def _parts(grid: Grid, layers: int) -> Iterator[Case]:
    batch, context = grid.batches[0], grid.contexts[0]
    yield from (Case("head", batch, n, 0, 0) for n in grid.positions)
    for end in (context, grid.contexts[-1]):
        yield from (Case("draft", batch, n, end, layers) for n in _DRAFT_WIDTHS)
    yield from (Case("draft", batch, n, context, layers) for n in _WIDE_DRAFTS)
    yield from (Case("draft", batch, 1, context, depth) for depth in grid.depths)
    yield from (Case("empty", batch, n, context, layers) for n in (grid.positions[0], grid.positions[-1]))
