"""Drafts that are not always there: what a cycle verifies and yields when some find nothing to propose.

A lookup proposes only where the text repeats itself. Engines verify what was sent: of a batch, some sequences
send their draft and one position more, the others that one position alone. So the tokens of a verify pass are
random, and its mean time is that over their distribution, which is not the time of the mean. The sum over a
batch is summed up by two numbers of tokens with the same first three moments, as Gaussian quadrature has it
(https://en.wikipedia.org/wiki/Gauss%E2%80%93Hermite_quadrature is the best known of its kind): exact for one
sequence whose draft is whole or missing, and for any pass whose time is a cubic in its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.speculation.acceptance import Acceptance, longest_summed
from rooflines.timing.roofline import OperatorTime, PassTime
from rooflines.timing.step_times import StepSeconds, StepTimer, Timed

Floats = NDArray[np.float64]
_TIMES = ("seconds", "memory_s", "compute_s", "network_s", "overhead_s")


def proposed_and_accepted(proposals: Acceptance, acceptance: Acceptance, lengths: Number) -> Acceptance:
    """Rates at which a position is drafted *and* accepted, given that all before it were.

    Args:
        proposals: c_1 is the share of cycles that propose at all, c_k the chance that a proposal of k - 1
            tokens has a k-th.
        acceptance: of tokens that were drafted.
        lengths: draft lengths that it is wanted for.
    """
    longest = max(longest_summed(np.asarray(lengths, dtype=float)), 1)
    positions = range(1, longest + 1)
    return Acceptance(
        tuple(proposals.conditional(position) * acceptance.conditional(position) for position in positions)
    )


def sent_per_sequence(
    proposals: Acceptance, batch: Number, lengths: Number
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Drafted tokens sent per sequence, as two values with their weights, the larger first.

    With W tokens of one sequence, mean m, variance v and third central moment c, the mean over B independent
    sequences has the variance v / B and the third moment c / B^2; the two values are the roots of
    (x - m)^2 - (c / (B v)) (x - m) - v / B.

    Args:
        proposals: see `proposed_and_accepted`.
        batch: B, broadcasts.
        lengths: tokens that a proposal has at most, broadcasts.
    """
    most = np.asarray(lengths, dtype=float)
    first, second, third = (_raw_moment(proposals, most, power) for power in (1, 2, 3))
    variance = np.maximum(second - first**2, 0.0)
    skew = third - 3.0 * first * second + 2.0 * first**3
    sequences = np.asarray(batch, dtype=float)
    tilt = _ratio(skew, variance * sequences)
    root = np.sqrt(tilt**2 + 4.0 * variance / sequences)
    upper = 0.5 - 0.5 * _ratio(tilt, root)
    high, low = (np.clip(first + (tilt + sign * root) / 2.0, 0.0, most) for sign in (1.0, -1.0))
    return (high, upper), (low, 1.0 - upper)


def _ratio(over: Floats, under: Floats) -> Floats:
    """A quotient; 0 where nothing is divided by nothing."""
    return np.asarray(np.where(under > 0, over / np.where(under > 0, under, 1.0), 0.0))


def _raw_moment(proposals: Acceptance, most: Floats, power: int) -> Floats:
    """E[W^power] = sum over k of (k^power - (k - 1)^power) P(W >= k)."""
    total = np.zeros(most.shape)
    for position in range(1, longest_summed(most) + 1):
        step = float(position**power - (position - 1) ** power)
        total = total + np.where(most >= position, step * np.asarray(proposals.survival(position)), 0.0)
    return np.asarray(total, dtype=float)


def verify_sent(
    target: StepTimer, proposals: Acceptance, batch: Number, context: Number, lengths: Number
) -> Timed:
    """Mean time of a verify pass in which each sequence sends its proposal, if it has one.

    Args:
        target: who verifies.
        proposals: see `proposed_and_accepted`.
        batch: B.
        context: S.
        lengths: tokens of a proposal that are verified at most.
    """
    parts = sent_per_sequence(proposals, batch, lengths)
    return _mixed([(weight, target.verify(batch, context, 1.0 + sent)) for sent, weight in parts])


def _mixed(parts: Sequence[tuple[Floats, Timed]]) -> Timed:
    """Mean of passes; operator by operator where they are known, with the work of the first."""
    seconds = _mean([(weight, time.seconds) for weight, time in parts])
    passes = [(weight, time) for weight, time in parts if isinstance(time, PassTime)]
    if len(passes) < len(parts):
        return StepSeconds(seconds, str(np.asarray(parts[0][1].bound).flat[0]))
    first = passes[0][1]
    operators = tuple(
        _mixed_operator([(weight, time.operators[index]) for weight, time in passes])
        for index in range(len(first.operators))
    )
    return PassTime(operators, first.host_s, seconds)


def _mixed_operator(parts: Sequence[tuple[Floats, OperatorTime]]) -> OperatorTime:
    return OperatorTime(
        parts[0][1].operator,
        *(_mean([(weight, getattr(time, name)) for weight, time in parts]) for name in _TIMES),
    )


def _mean(parts: Sequence[tuple[Floats, Number]]) -> Number:
    return sum((weight * value for weight, value in parts), start=np.zeros(()))
