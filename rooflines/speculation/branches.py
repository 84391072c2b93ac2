"""How often the i-th guess at a node of a draft tree is the accepted one.

A chain needs one rate a position; a tree needs one for each guess. Two sources publish them: Medusa's heads
(https://arxiv.org/abs/2401.10774: accuracy of the i-th guess of head k, heads independent of each other) and
Sequoia's acceptance vector (https://arxiv.org/abs/2402.12374: the i-th child's rate, alike at every node).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance, require_probability

# Guesses of one node exclude each other, so their rates sum to 1 at most; printed rates are rounded.
_ROUNDING: Final = 1e-3


@dataclass(frozen=True, slots=True)
class BranchAcceptance:
    """Probability that a node's guess is accepted, given that its parent was.

    Attributes:
        rates: one row a depth (row 0: children of the root), one entry a guess, best guess first.
        repeats: whether the last row holds at all further depths; otherwise nothing can be drafted there.
    """

    rates: tuple[tuple[float, ...], ...]
    repeats: bool = False

    def __post_init__(self) -> None:
        if not self.rates or not all(self.rates):
            raise InputError("branch acceptance is empty: give at least one rate for each depth")
        for depth, row in enumerate(self.rates, start=1):
            for guess, rate in enumerate(row, start=1):
                require_probability(rate, f"acceptance of guess {guess} at depth {depth}")
            if sum(row) > 1.0 + _ROUNDING:
                raise InputError(
                    f"the rates at depth {depth} sum to {sum(row):g}: guesses of one position exclude each "
                    "other, so they sum to at most 1 (top-k accuracies are cumulative: from_top_k_accuracies)"
                )

    @classmethod
    def positional(cls, vector: Iterable[float]) -> Self:
        """Sequoia's acceptance vector: the i-th child of any node, at any depth, has rate `vector[i]`."""
        return cls((tuple(float(rate) for rate in vector),), repeats=True)

    @classmethod
    def heads(cls, rows: Iterable[Iterable[float]]) -> Self:
        """Medusa's a_k^(i): row k has the accuracies of head k's first, second, ... guess."""
        return cls(tuple(tuple(float(rate) for rate in row) for row in rows))

    @classmethod
    def from_top_k_accuracies(cls, rows: Iterable[Sequence[float]]) -> Self:
        """Heads from top-1, top-2, ... accuracies, which are cumulative over guesses.

        Raises:
            InputError: an accuracy falls as k grows.
        """
        found = []
        for depth, row in enumerate(rows, start=1):
            steps = np.diff(np.asarray(row, dtype=float), prepend=0.0)
            if np.any(steps < 0):
                raise InputError(f"top-k accuracies at depth {depth} fall with k: they are cumulative")
            found.append(tuple(steps.tolist()))
        return cls(tuple(found))

    @classmethod
    def from_chain(cls, acceptance: Acceptance, depth: int) -> Self:
        """One guess at each depth: a chain seen as a tree. The rates of `acceptance` are plain numbers."""
        return cls(tuple((float(rate),) for rate in acceptance.conditional_profile(depth)))

    def row(self, depth: int) -> tuple[float, ...]:
        """Rates of the guesses at a depth (1: children of the root); empty where nothing can be drafted."""
        if depth <= len(self.rates):
            return self.rates[depth - 1]
        return self.rates[-1] if self.repeats else ()

    def rate(self, depth: int, rank: int) -> float:
        """Rate of one guess; rank 0 is the best.

        Raises:
            InputError: no rate is known for it.
        """
        row = self.row(depth)
        if rank >= len(row):
            raise InputError(
                f"no acceptance is known for guess {rank + 1} at depth {depth}: "
                f"rates are given for {len(row)} guesses there"
            )
        return row[rank]

    def chain(self) -> Acceptance:
        """The best guesses alone: what a chain draft would see."""
        best = tuple(row[0] for row in self.rates)
        if self.repeats and len(best) == 1:
            return Acceptance.constant(best[0])
        return Acceptance(best, measured_length=len(best))


# What a cycle's yield may be computed from.
Rates: TypeAlias = Acceptance | BranchAcceptance
