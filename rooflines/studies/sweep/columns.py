"""The columns of a sweep: what each is, what it depends on, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rooflines.costs.cost import Number
from rooflines.errors import UnknownNameError
from rooflines.serving.memory import MemoryFit, memory_fit
from rooflines.speculation.branches import BranchAcceptance, Rates
from rooflines.speculation.cycle import Cycle, CycleTimes
from rooflines.studies.sweep.asked import Floats, Served
from rooflines.studies.sweep.ends import Ends, Moments, ends_of, moments_of
from rooflines.timing.roofline import BOUNDS

Outputs: TypeAlias = dict[str, NDArray[Any]]

OF_MEMORY: Final[Mapping[str, Callable[[MemoryFit], Number | NDArray[np.bool_]]]] = {
    "fits": lambda fit: np.asarray(fit.fits),
    "memory_bytes": lambda fit: fit.used_bytes,
}


class Piece:
    """Some points and what follows of them, each part worked out once, and only where a column asks for it.

    Attributes:
        outcome: cycles of the points.
        batch: B of the points.
        moments: of the errors of their times; None where no column asks for ends of intervals.
    """

    def __init__(self, outcome: Cycle, batch: Number, moments: Moments | None) -> None:
        self.outcome, self.batch, self.moments = outcome, batch, moments

    @cached_property
    def cycle_s(self) -> Number:
        """Time of a cycle (s)."""
        return self.outcome.cycle_s

    @cached_property
    def cycle_cost(self) -> Number:
        """Kappa, its cost in plain steps."""
        return self.cycle_s / self.outcome.target_step_s

    @cached_property
    def time_per_token_s(self) -> Number:
        """Time per emitted token (s)."""
        return self.cycle_s / self.outcome.tokens_per_cycle

    @cached_property
    def ends(self) -> Ends:
        """Ends of the intervals."""
        return ends_of(self.outcome, self.moments or Moments.unknown(), self.cycle_s)


OF_CYCLE: Final[Mapping[str, Callable[[Piece], Number]]] = {
    "verify_width": lambda piece: piece.outcome.verify_width,
    "tokens_per_cycle": lambda piece: piece.outcome.tokens_per_cycle,
    "target_step_s": lambda piece: piece.outcome.target_step_s,
    "draft_s": lambda piece: piece.outcome.draft_s,
    "verify_s": lambda piece: piece.outcome.verify_s,
    "cycle_cost": lambda piece: piece.cycle_cost,
    "cost_ratio": lambda piece: piece.outcome.cost_ratio,
    "speedup": lambda piece: piece.outcome.tokens_per_cycle / piece.cycle_cost,
    "time_per_token_s": lambda piece: piece.time_per_token_s,
    "tokens_per_s": lambda piece: piece.batch / piece.time_per_token_s,
}
# Ends of 90 % intervals.
OF_ENDS: Final[Mapping[str, Callable[[Piece], Number]]] = {
    "speedup_low": lambda piece: piece.ends.speedup_low,
    "speedup_high": lambda piece: piece.ends.speedup_high,
    "time_per_token_low_s": lambda piece: piece.ends.time_per_token_low_s,
    "time_per_token_high_s": lambda piece: piece.ends.time_per_token_high_s,
}
VERIFY_BOUND: Final = "verify_bound"
EXTRAPOLATED: Final = "extrapolated"
COLUMNS: Final = (*OF_MEMORY, *OF_CYCLE, *OF_ENDS, VERIFY_BOUND, EXTRAPOLATED)
# What a column varies with, of (batch, context, draft length, acceptance); all others vary with all four.
_VARIES: Final[Mapping[str, tuple[bool, bool, bool, bool]]] = {
    "fits": (True, True, True, False),
    "memory_bytes": (True, True, True, False),
    "verify_width": (False, False, True, False),
    "tokens_per_cycle": (False, False, True, True),
    "target_step_s": (True, True, False, False),
    "verify_s": (True, True, True, False),
    VERIFY_BOUND: (True, True, True, False),
    EXTRAPOLATED: (False, False, True, True),
}
_TYPES: Final[Mapping[str, DTypeLike]] = {"fits": bool, VERIFY_BOUND: np.int8, EXTRAPOLATED: bool}


def empty(columns: Sequence[str], shape: tuple[int, ...], dtype: DTypeLike = float) -> Outputs:
    """Arrays to write columns into, each of the whole shape.

    Args:
        columns: names out of `COLUMNS`.
        shape: of each.
        dtype: of computed numbers.

    Raises:
        UnknownNameError: a column that does not exist.
    """
    require_columns(columns)
    return {name: np.empty(shape, dtype=_TYPES.get(name, dtype)) for name in columns}


def empty_where_it_varies(
    columns: Sequence[str], shape: tuple[int, int, int, int], dtype: DTypeLike = float
) -> Outputs:
    """Arrays to write columns of a grid into, of length 1 along axes that a column does not vary with.

    Args:
        columns: names out of `COLUMNS`.
        shape: of the grid.
        dtype: of computed numbers.

    Raises:
        UnknownNameError: a column that does not exist.
    """
    require_columns(columns)
    lengths = {
        name: tuple(
            whole if varies else 1
            for whole, varies in zip(shape, _VARIES.get(name, (True,) * len(shape)), strict=True)
        )
        for name in columns
    }
    return {name: np.empty(lengths[name], dtype=_TYPES.get(name, dtype)) for name in columns}


def require_columns(columns: Sequence[str]) -> None:
    """Refuse columns that do not exist.

    Raises:
        UnknownNameError: one of them.
    """
    for name in columns:
        if name not in COLUMNS:
            raise UnknownNameError("column", name, COLUMNS, f"(known: {', '.join(COLUMNS)})")


def write_before_acceptance(
    served: Served, times: CycleTimes, batch: Floats, context: Floats, out: Outputs
) -> Moments | None:
    """Columns that acceptance does not enter: of memory, and what binds the verify pass.

    Returns:
        Moments of the errors of the times, where a column asks for ends of intervals.
    """
    wanted = {name: OF_MEMORY[name] for name in out if name in OF_MEMORY}
    if wanted:
        # A draft is held until it is verified, and so are all nodes of a tree.
        held = np.maximum(np.asarray(times.draft.verify_width) - 1.0, times.draft_length)
        fit = memory_fit(served.target, served.drafter, batch, context, held, reserve=served.memory_reserve)
        for name, column in wanted.items():
            np.copyto(out[name], column(fit))
    if VERIFY_BOUND in out:
        bound = np.asarray(times.verify.bound)
        np.copyto(out[VERIFY_BOUND], sum(np.int8(code) * (bound == name) for code, name in enumerate(BOUNDS)))
    return moments_of(served.target.machine, times) if out.keys() & OF_ENDS.keys() else None


def write_extrapolated(times: CycleTimes, rates: Rates, out: Outputs) -> None:
    """Where a draft is longer than acceptance was given for, so that its last rate is carried on."""
    if EXTRAPOLATED in out:
        by_depth = rates.chain() if isinstance(rates, BranchAcceptance) else rates
        np.copyto(out[EXTRAPOLATED], by_depth.is_extrapolated(np.asarray(times.verify_length)))


def write_piece(piece: Piece, out: Outputs) -> None:
    """Columns of time, yield and intervals."""
    for name in out.keys() & (OF_CYCLE.keys() | OF_ENDS.keys()):
        np.copyto(out[name], (OF_CYCLE.get(name) or OF_ENDS[name])(piece), casting="same_kind")
