"""How much of a draft to verify, and how much to draft.

A drafter may propose more than is worth verifying: each verified position costs a share of the pass, and late
positions seldom survive. DSpark (https://arxiv.org/abs/2607.05147, algorithm 1) spends a batch's verify
positions where survival is largest, by maximising

    Theta = tau SPS(B),   B = sum over r of (1 + l_r),   tau = sum over r of (1 + a_r1 + ... + a_rl)

with l_r the positions of request r that are verified, a_rj their survival and SPS(B) the steps per second of
a pass over B positions. Goodput control (TurboSpec, https://arxiv.org/abs/2406.14066) is the same with one
length for all requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance, whole_number

# Steps per second of a pass over so many positions, by broadcasting.
StepsPerSecond: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
# Cycle cost kappa in plain decode steps of that batch, by (batch, draft length), by broadcasting.
CycleCost: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class StepTable:
    """Profiled steps per second: a pass runs at the next profiled size, as captured graphs do.

    Attributes:
        positions: profiled sizes, rising; shape (sizes,).
        steps_per_s: at each size (1/s); shape (sizes,).
    """

    positions: tuple[int, ...]
    steps_per_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.positions or len(self.positions) != len(self.steps_per_s):
            raise InputError("a step table has one speed for each of at least one size")
        if any(
            later <= earlier for earlier, later in zip((0, *self.positions), self.positions, strict=False)
        ):
            raise InputError("the sizes of a step table rise from 1 or more")
        if not all(np.isfinite(speed) and speed > 0 for speed in self.steps_per_s):
            raise InputError("steps per second are finite and above 0")

    def __call__(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Steps per second at those sizes (1/s).

        Raises:
            InputError: a size beyond the largest profiled.
        """
        wanted = np.asarray(positions, dtype=float)
        if np.any(wanted > self.positions[-1]):
            raise InputError(
                f"{int(np.max(wanted))} positions exceed the step table, which ends at {self.positions[-1]}"
            )
        return np.asarray(self.steps_per_s)[np.searchsorted(self.positions, wanted)]


@dataclass(frozen=True, slots=True)
class VerifyChoice:
    """Positions to verify of each request.

    Attributes:
        lengths: l_r, drafted positions verified; shape (requests,).
        batch_tokens: B, positions of the pass, one more a request.
        tokens_per_step: tau, expected tokens of all requests in one step.
        tokens_per_s: Theta = tau SPS(B) (1/s).
    """

    lengths: NDArray[np.int64]
    batch_tokens: int
    tokens_per_step: float
    tokens_per_s: float


def choose_verify_lengths(
    survival: NDArray[np.float64], steps_per_s: StepsPerSecond, *, stop_early: bool
) -> VerifyChoice:
    """DSpark's algorithm 1: admit positions by falling survival while throughput grows.

    For a fixed B the likeliest positions are best, and as survival falls along a draft they form prefixes.

    Args:
        survival: a_rj, probability that position j of request r is accepted; shape (requests, draft length).
        steps_per_s: SPS(B).
        stop_early: True stops at the first admission that does not improve, which keeps sampling exact (the
            fate of a position does not hang on later drafts) and is optimal where Theta has one maximum;
            False searches all B, for a jagged SPS.

    Raises:
        InputError: no matrix, no probabilities, or survival that rises along a draft.
    """
    shares = _survival_matrix(survival)
    requests, drafted = shares.shape
    order = np.argsort(-shares, axis=None, kind="stable")
    tokens = requests + np.concatenate([[0.0], np.cumsum(shares.ravel()[order])])
    batch_tokens = requests + np.arange(requests * drafted + 1, dtype=float)
    throughput = tokens * steps_per_s(batch_tokens)
    if stop_early:
        worse = np.flatnonzero(np.diff(throughput) <= 0)
        admitted = int(worse[0]) if worse.size else throughput.size - 1
    else:
        admitted = int(np.argmax(throughput))
    lengths = np.bincount(order[:admitted] // max(drafted, 1), minlength=requests)
    return VerifyChoice(
        lengths=lengths.astype(np.int64),
        batch_tokens=int(batch_tokens[admitted]),
        tokens_per_step=float(tokens[admitted]),
        tokens_per_s=float(throughput[admitted]),
    )


def tokens_when_verifying(acceptance: Acceptance, draft_length: Number, verify_length: Number) -> Number:
    """Tokens per cycle when G tokens are drafted and the first V <= G of them verified; by broadcasting.

    Args:
        acceptance: of the drafter.
        draft_length: G.
        verify_length: V, drafted positions that are verified (verify width - 1).

    Raises:
        InputError: more verified than drafted.
    """
    drafted = whole_number(draft_length, "draft length")
    verified = whole_number(verify_length, "verify length")
    if np.any(verified > drafted):
        raise InputError(
            f"verify length {np.max(verified):g} exceeds the draft length: only drafted tokens are verified"
        )
    return acceptance.tokens_per_cycle(np.broadcast_arrays(verified, drafted)[0])


@dataclass(frozen=True, slots=True)
class MarginalValue:
    """What each further drafted token adds; arrays over positions 1..gamma on the last axis.

    Attributes:
        tokens: a_k, tokens it adds to a cycle.
        cost: plain decode steps it adds to a cycle.
        speedup: eta with this position the last; shape as `tokens`.
        speedup_gain: how much eta it adds to a draft that ends before it.
    """

    tokens: NDArray[np.float64]
    cost: NDArray[np.float64]
    speedup: NDArray[np.float64]
    speedup_gain: NDArray[np.float64]

    @property
    def pays(self) -> NDArray[np.bool_]:
        """Whether the position raises the speedup: where tokens / cost exceeds the speedup before it."""
        return np.asarray(self.speedup_gain > 0)


def marginal_value(acceptance: Acceptance, cycle_cost: NDArray[np.float64]) -> MarginalValue:
    """The worth of one more drafted token, position by position.

    Args:
        acceptance: of the drafter.
        cycle_cost: kappa at draft lengths 0, 1, .. gamma (0: plain decoding); shape (..., gamma + 1).
    """
    kappa = np.asarray(cycle_cost, dtype=float)
    if kappa.ndim == 0 or not np.all(kappa > 0):
        raise InputError("cycle cost is an array over draft lengths 0, 1, .. of numbers above 0")
    lengths = np.arange(kappa.shape[-1], dtype=float)
    speedup = np.asarray(acceptance.tokens_per_cycle(lengths)) / kappa
    return MarginalValue(
        tokens=np.asarray(acceptance.survival(lengths[1:]), dtype=float),
        cost=np.diff(kappa, axis=-1),
        speedup=speedup[..., 1:],
        speedup_gain=np.diff(speedup, axis=-1),
    )


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One draft length for a range of batches, both ends included."""

    first_batch: int
    last_batch: int
    draft_length: int
    speedup: float


def schedule_draft_length(
    batches: Sequence[int], acceptance: Acceptance, cycle_cost: CycleCost, longest: int
) -> tuple[ScheduleEntry, ...]:
    """The best draft length of every batch, neighbours of equal length merged.

    Args:
        batches: rising; an entry reaches from its first batch to its last one given.
        acceptance: of the drafter, the same at any batch.
        cycle_cost: kappa(batch, gamma); at gamma = 0 it is what plain decoding costs, 1.
        longest: largest draft length considered; 0 means no speculation.

    Returns:
        Entries in the order of batches; `speedup` is the least among the batches of the entry.
    """
    rows = whole_number(np.asarray(batches, dtype=float), "batch", least=1)
    if rows.ndim != 1 or rows.size == 0 or np.any(np.diff(rows) <= 0):
        raise InputError("give at least one batch, in rising order")
    lengths = np.arange(int(whole_number(longest, "longest draft length")) + 1, dtype=float)
    kappa = np.broadcast_to(cycle_cost(rows[:, None], lengths[None, :]), (rows.size, lengths.size))
    speedups = np.asarray(acceptance.tokens_per_cycle(lengths)) / kappa
    best = np.argmax(speedups, axis=1)  # the shortest of equals
    entries: list[ScheduleEntry] = []
    for batch, length, row in zip(rows.astype(int).tolist(), best.tolist(), speedups, strict=True):
        speedup = float(row[length])
        if entries and entries[-1].draft_length == length:
            last = entries.pop()
            entries.append(ScheduleEntry(last.first_batch, batch, length, min(last.speedup, speedup)))
        else:
            entries.append(ScheduleEntry(batch, batch, length, speedup))
    return tuple(entries)


def _survival_matrix(survival: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = np.asarray(survival, dtype=float)
    if shares.ndim != 2 or shares.shape[0] == 0:  # noqa: PLR2004 - requests and positions
        raise InputError(f"survival is a matrix (requests, draft length), not of shape {shares.shape}")
    if not np.all((shares >= 0) & (shares <= 1)):
        raise InputError("survival lies within 0..1")
    if np.any(np.diff(shares, axis=1) > 0):
        raise InputError("survival rises along a draft: give the product of acceptances, not each of them")
    return shares
