"""What each further drafted token is worth, and what becomes of the tokens that are drafted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance


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


def marginal_value(tokens_per_cycle: NDArray[np.float64], cycle_cost: NDArray[np.float64]) -> MarginalValue:
    """The worth of one more drafted token, position by position (of a tree: level by level).

    Args:
        tokens_per_cycle: tau at draft lengths 0, 1, .. gamma (0: plain decoding, 1); shape (..., gamma + 1).
        cycle_cost: kappa at the same lengths; shapes broadcast.

    Raises:
        InputError: no axis of draft lengths, or a cost that is not above 0.
    """
    tau, kappa = np.asarray(tokens_per_cycle, dtype=float), np.asarray(cycle_cost, dtype=float)
    if kappa.ndim == 0 or not np.all(kappa > 0):
        raise InputError("cycle cost is an array over draft lengths 0, 1, .. of numbers above 0")
    speedup = tau / kappa
    return MarginalValue(
        tokens=np.diff(np.broadcast_to(tau, speedup.shape), axis=-1),
        cost=np.diff(np.broadcast_to(kappa, speedup.shape), axis=-1),
        speedup=speedup[..., 1:],
        speedup_gain=np.diff(speedup, axis=-1),
    )


@dataclass(frozen=True, slots=True)
class DraftedTokens:
    """What becomes of the tokens of one draft; the three add up to its length.

    Attributes:
        accepted: tau - 1.
        lost_to_prefix: right by themselves, had all before them been accepted, but one was not.
        wrong: rejected where they stand.
    """

    accepted: float
    lost_to_prefix: float
    wrong: float


def drafted_tokens(acceptance: Acceptance, draft_length: int) -> DraftedTokens:
    """What the product over a prefix loses: sum of c_k against sum of a_k = c_1 .. c_k.

    Args:
        acceptance: conditional rates c_k, plain numbers.
        draft_length: gamma.
    """
    rates = acceptance.conditional_profile(draft_length)
    accepted = float(acceptance.accepted_per_cycle(draft_length))
    alone = float(rates.sum())
    return DraftedTokens(accepted, alone - accepted, draft_length - alone)
