"""Closed forms of speculative decoding: what follows from tau, gamma and relative costs alone.

Theorem, corollary and equation numbers are those of Leviathan, Kalman and Matias 2023
(https://arxiv.org/abs/2211.17192). The general law is eta = tau / kappa, with kappa the cost of a cycle in
plain decode steps (DFlash, https://arxiv.org/abs/2602.06036, equation 1). Published forms are cases of it:

- Leviathan, theorem 3.8: kappa = gamma c + 1, a verify pass costs what a plain step costs.
- Medusa (https://arxiv.org/abs/2401.10774, section 7.1): acceleration rate / overhead is tau / kappa.
- Sequoia (https://arxiv.org/abs/2402.12374): G(n, d) / (t(n) + d c), kappa = t(n) + d c.
- MagicDec (https://arxiv.org/abs/2408.11049): kappa = T_verify / T_decode + gamma T_draft / T_decode.

Arguments are floats or NumPy arrays that broadcast.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance, longest_summed, require_probability, whole_number

_NEWTON_STEPS: Final = 100
_NEWTON_TOLERANCE: Final = 1e-14  # rounding of the sum keeps steps from becoming smaller
# A printed speedup and a printed tau are each rounded, so equality within this is no contradiction.
_PRINT_ROUNDING: Final = 0.005


def speedup(tokens_per_cycle: Number, cycle_cost: Number) -> Number:
    """Speedup eta = tau / kappa over plain decoding.

    Args:
        tokens_per_cycle: tau, the target's own token included.
        cycle_cost: kappa > 0, time of a cycle in plain decode steps.
    """
    if np.any(np.asarray(cycle_cost) <= 0):
        raise InputError("cycle cost is not above 0: a cycle takes time")
    return tokens_per_cycle / cycle_cost


def chain_cycle_cost(
    draft_length: Number, cost_ratio: Number, verify_cost: Number, overhead_cost: Number = 0.0
) -> Number:
    """Cycle cost kappa = gamma c + T_verify / T_target + T_overhead / T_target.

    Args:
        draft_length: gamma.
        cost_ratio: c, draft time per drafted token in plain decode steps.
        verify_cost: the verify pass in plain decode steps; 1 is Leviathan's assumption.
        overhead_cost: time outside draft and verify in plain decode steps.
    """
    for name, value in (("cost ratio", cost_ratio), ("verify", verify_cost), ("overhead", overhead_cost)):
        given = np.asarray(value, dtype=float)
        if not np.all(np.isfinite(given)) or np.any(given < 0):
            raise InputError(f"{name} cost is {value}: give a finite number of plain decode steps, 0 or more")
    return _plain(whole_number(draft_length, "draft length") * cost_ratio + verify_cost + overhead_cost)


def walltime_improvement(alpha: Number, draft_length: Number, cost_ratio: Number) -> Number:
    """Theorem 3.8: (1 - alpha^(gamma + 1)) / ((1 - alpha) (gamma c + 1)); the verify pass costs one step."""
    tokens = Acceptance.constant(alpha).tokens_per_cycle(draft_length)
    return speedup(tokens, chain_cycle_cost(draft_length, cost_ratio, verify_cost=1.0))


def operations_factor(alpha: Number, draft_length: Number, operations_ratio: Number) -> Number:
    """Theorem 3.11: growth of arithmetic operations, (gamma c_hat + gamma + 1) / tau.

    Args:
        alpha: constant acceptance.
        draft_length: gamma.
        operations_ratio: c_hat, operations per token of the drafter over those of the target.

    Raises:
        InputError: an operations ratio below 0 or not finite.
    """
    ratio = np.asarray(operations_ratio, dtype=float)
    if not np.all(np.isfinite(ratio) & (ratio >= 0)):
        raise InputError(f"operations ratio is {operations_ratio}: give a finite number of 0 or more")
    lengths = whole_number(draft_length, "draft length")
    work = lengths * ratio + lengths + 1.0
    return _plain(work / np.asarray(Acceptance.constant(alpha).tokens_per_cycle(draft_length)))


def some_length_pays(alpha: Number, cost_ratio: Number) -> NDArray[np.bool_]:
    """Corollary 3.9: whether alpha > c, so that some draft length improves walltime (verify at one step)."""
    require_probability(alpha, "acceptance")
    return np.asarray(np.asarray(alpha) > np.asarray(cost_ratio))


def guaranteed_improvement(alpha: Number, cost_ratio: Number) -> Number:
    """Corollary 3.9: where alpha > c the best length gains at least (1 + alpha) / (1 + c) (gamma = 1)."""
    return walltime_improvement(alpha, 1.0, cost_ratio)


def oracle_tokens_per_cycle(alpha: Number) -> Number:
    """The bound 1 / (1 - alpha): an oracle stops each draft exactly where it would be rejected."""
    require_probability(alpha, "acceptance")
    rate = np.asarray(alpha, dtype=float)
    bound = np.divide(1.0, 1.0 - rate, out=np.full(rate.shape, np.inf), where=rate < 1.0)
    return _plain(np.asarray(bound))


def optimal_draft_length(alpha: Number, cost_ratio: Number, longest: int) -> NDArray[np.int64]:
    """The gamma in 0..longest with the largest theorem 3.8; the smallest of equals, 0 where none pays.

    tau is concave and the cost affine in gamma, so their ratio rises to one maximum and then falls: the
    search stops at the first length that improves no point.

    Args:
        alpha: constant acceptance.
        cost_ratio: c.
        longest: largest gamma considered; with c = 0 longer is always better.

    Returns:
        Integers of the broadcast shape.
    """
    require_probability(alpha, "acceptance")
    whole_number(longest, "longest draft length", least=1)
    rate, cost = np.broadcast_arrays(np.asarray(alpha, dtype=float), np.asarray(cost_ratio, dtype=float))
    best_length = np.zeros(rate.shape, dtype=np.int64)
    best_speedup = np.ones(rate.shape)
    tokens, survival = np.ones(rate.shape), np.ones(rate.shape)
    for length in range(1, longest + 1):
        survival = survival * rate
        tokens = tokens + survival
        improved = tokens / (length * cost + 1.0)
        better = improved > best_speedup
        if not np.any(better):
            break
        best_length = np.where(better, length, best_length)
        best_speedup = np.where(better, improved, best_speedup)
    return best_length


def constant_acceptance(tokens_per_cycle: Number, draft_length: Number) -> Number:
    """The alpha whose constant use yields tau at that draft length: equation 1, inverted.

    Newton's iteration on a polynomial that rises and is convex for alpha > 0, from a point above its root, so
    every step comes closer from the same side. The start is the smaller of two bounds: tau - 1 >= alpha, and
    by the inequality of means tau - 1 >= gamma alpha^((gamma + 1) / 2).

    Args:
        tokens_per_cycle: tau; NaN comes back where it is outside 1..gamma + 1.
        draft_length: gamma, 1 or more.
    """
    lengths = whole_number(draft_length, "draft length", least=1)
    gained, lengths = np.broadcast_arrays(np.asarray(tokens_per_cycle, dtype=float) - 1.0, lengths)
    possible = (gained >= 0.0) & (gained <= lengths)
    wanted = np.where(possible, gained, 0.0)
    alpha = np.minimum(wanted, (wanted / lengths) ** (2.0 / (lengths + 1.0)))
    for _ in range(_NEWTON_STEPS):
        value, slope = _power_sum(alpha, lengths)
        step = (value - wanted) / slope
        alpha = np.clip(alpha - step, 0.0, 1.0)
        if np.all(np.abs(step) <= _NEWTON_TOLERANCE):
            break
    return _plain(np.where(possible, alpha, np.nan))


def break_even_acceptance(draft_length: Number, cost_ratio: Number, verify_cost: Number) -> Number:
    """The constant acceptance from which a chain pays: tau(alpha, gamma) = verify cost + gamma c.

    Returns:
        0 where it pays even if nothing is accepted, NaN where it never pays.
    """
    needed = np.asarray(chain_cycle_cost(draft_length, cost_ratio, verify_cost))
    return constant_acceptance(np.maximum(needed, 1.0), draft_length)


def break_even_cost_ratio(tokens_per_cycle: Number, draft_length: Number, verify_cost: Number) -> Number:
    """The draft cost c up to which a chain pays: (tau - verify cost) / gamma; below 0 it never does."""
    lengths = whole_number(draft_length, "draft length", least=1)
    return _plain((np.asarray(tokens_per_cycle, dtype=float) - verify_cost) / lengths)


def require_possible_speedup(measured_speedup: Number, tokens_per_cycle: Number) -> None:
    """Refuse a measured speedup above tau: a cycle verifies, so it is not cheaper than one plain step.

    Both numbers may be rounded to two decimals, which is allowed for.

    Raises:
        InputError: some speedup exceeds its tokens per cycle, or is not above 0.
    """
    eta, tau = np.broadcast_arrays(
        np.asarray(measured_speedup, dtype=float), np.asarray(tokens_per_cycle, dtype=float)
    )
    if not np.all(eta > 0):
        raise InputError("a speedup is a number above 0")
    impossible = ~(eta <= tau + 2 * _PRINT_ROUNDING)
    if np.any(impossible):
        raise InputError(
            f"speedup {eta[impossible].flat[0]:g} exceeds {tau[impossible].flat[0]:g} tokens per cycle: "
            "a cycle costs at least one plain step, so one of the two was measured against something else"
        )


def _power_sum(
    alpha: NDArray[np.float64], lengths: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum of alpha^j over j = 1..length, and its derivative, for at least one term."""
    value, slope = np.zeros(alpha.shape), np.zeros(alpha.shape)
    power = np.ones(alpha.shape)
    for exponent in range(1, longest_summed(lengths) + 1):
        power = np.where(lengths >= exponent, power, 0.0)
        slope += exponent * power
        power = power * alpha
        value += power
    return value, slope


def _plain(value: Number) -> Number:
    return float(value) if np.ndim(value) == 0 else np.asarray(value, dtype=float)
