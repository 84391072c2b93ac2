"""How much of a draft to verify.

A drafter may propose more than is worth verifying: each verified position costs a share of the pass, and late
positions seldom survive. DSpark (https://arxiv.org/abs/2607.05147, algorithm 1) spends a batch's verify
positions where survival is largest, by maximising

    Theta = tau SPS(B),   B = sum over r of (1 + l_r),   tau = sum over r of (1 + a_r1 + ... + a_rl)

with l_r the positions of request r that are verified, a_rj their survival and SPS(B) the steps per second of
a pass over B positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError

# Steps per second of a pass over so many positions, by broadcasting.
StepsPerSecond: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


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


def _survival_matrix(survival: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = np.asarray(survival, dtype=float)
    if shares.ndim != 2 or shares.shape[0] == 0:  # noqa: PLR2004 - requests and positions
        raise InputError(f"survival is a matrix (requests, draft length), not of shape {shares.shape}")
    if not np.all((shares >= 0) & (shares <= 1)):
        raise InputError("survival lies within 0..1")
    if np.any(np.diff(shares, axis=1) > 0):
        raise InputError("survival rises along a draft: give the product of acceptances, not each of them")
    return shares
