"""Ends of the 90 % intervals of many points at once.

A plan carries the errors of its passes by cause, of which there are a hundred. Nothing but their second
moments reaches an interval: six numbers a point of (batch, context, draft length), which acceptance then
weighs. So a sweep computes the moments where causes are known, each on the axes that it depends on, and keeps
those alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.estimates import LEVEL
from rooflines.speculation.cycle import Cycle, CycleTimes
from rooflines.speculation.uncertain import draft_errors_s
from rooflines.studies.sweep.asked import Floats, part_of
from rooflines.studies.sweep.boxes import Box
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_errors_s

_REACH: Final = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)


@dataclass(frozen=True, slots=True)
class Moments:
    """Variances and covariances of ln(truth / time) of the plain step, the draft and the verify pass."""

    plain: Floats
    draft: Floats
    verify: Floats
    plain_draft: Floats
    plain_verify: Floats
    draft_verify: Floats

    @classmethod
    def unknown(cls) -> Self:
        """Those of times whose errors nothing states."""
        return cls(*(np.asarray(np.nan) for _ in fields(cls)))

    def cut(self, box: Box) -> Moments:
        """Those of a box."""
        return Moments(*(part_of(getattr(self, one.name), box) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Ends:
    """Between what speedup and time per token (s) lie in 90 % of cases; NaN where no error is stated."""

    speedup_low: Number
    speedup_high: Number
    time_per_token_low_s: Number
    time_per_token_high_s: Number


def moments_of(machine: Machine, times: CycleTimes) -> Moments:
    """Second moments of the errors of a cycle's times.

    Args:
        machine: that target and drafter run on, which states the residuals of its constants.
        times: of cycles.
    """
    passes = (times.target, times.verify)
    if machine.calibration is None or not all(isinstance(one, PassTime) for one in passes):
        return Moments.unknown()
    plain_s, verify_s = (
        pass_errors_s(one, machine, name)
        for one, name in zip(passes, ("decode", "verify"), strict=True)
        if isinstance(one, PassTime)
    )
    draft_s = draft_errors_s(times.draft, machine)
    plain, draft, verify = (
        np.asarray(one, dtype=float)
        for one in (times.target.seconds, times.draft.seconds, times.verify.seconds)
    )
    inverse = np.divide(1.0, draft, out=np.zeros(draft.shape), where=draft > 0)
    return Moments(
        plain=_product(plain_s, plain_s) / plain**2,
        draft=_product(draft_s, draft_s) * inverse**2,
        verify=_product(verify_s, verify_s) / verify**2,
        plain_draft=_product(plain_s, draft_s) / plain * inverse,
        plain_verify=_product(plain_s, verify_s) / plain / verify,
        draft_verify=_product(draft_s, verify_s) * inverse / verify,
    )


def ends_of(outcome: Cycle, moments: Moments, cycle_s: Number) -> Ends:
    """Ends of the intervals of a cycle; its yield and its host time are taken as exact.

    Each part of a cycle errs by its share of it. A cycle without a draft is the plain step, so its speedup
    is exact; no other is cheaper than a plain step, its draft and its host time, since a verify pass moves
    what a plain step moves.

    Args:
        outcome: the cycle.
        moments: of its parts.
        cycle_s: its time (s), which `outcome` would have to add up once more.
    """
    inverse = 1.0 / np.asarray(cycle_s)
    draft, verify = outcome.draft_s * inverse, outcome.verify_s * inverse
    variance = (
        draft * (draft * moments.draft + (2.0 * verify) * moments.draft_verify)
        + (verify * verify) * moments.verify
    )
    shared = draft * moments.plain_draft + verify * moments.plain_verify
    # Rounding may leave a variance of nothing just below 0.
    of_ratio = np.maximum(variance + moments.plain - 2.0 * shared, 0.0)
    plain = np.asarray(outcome.draft_length) == 0
    if plain.any():
        of_ratio = np.where(plain & ~np.isnan(of_ratio), 0.0, of_ratio)
    ratio, time = np.exp(-_REACH * np.sqrt(of_ratio)), np.exp(-_REACH * np.sqrt(variance))
    cost, time_s = cycle_s / outcome.target_step_s, cycle_s / outcome.tokens_per_cycle
    least = np.minimum(cost, np.maximum(cost * ratio, 1.0 + _beside_low(outcome, moments, plain)))
    return Ends(
        speedup_low=outcome.tokens_per_cycle / cost * ratio,
        speedup_high=outcome.tokens_per_cycle / least,
        time_per_token_low_s=time_s * time,
        time_per_token_high_s=time_s / time,
    )


def _beside_low(outcome: Cycle, moments: Moments, plain: NDArray[np.bool_]) -> Number:
    """Lower end of what a cycle takes beside its verify pass, in plain steps; 0 without a draft."""
    seconds = np.asarray(outcome.draft_s + outcome.overhead_s, dtype=float)
    share = np.divide(outcome.draft_s, seconds, out=np.zeros(seconds.shape), where=seconds > 0)
    variance = share * (share * moments.draft - 2.0 * moments.plain_draft) + moments.plain
    low = seconds / outcome.target_step_s * np.exp(-_REACH * np.sqrt(np.maximum(variance, 0.0)))
    return np.where(plain, 0.0, low)


def _product(one: Mapping[str, Number], other: Mapping[str, Number]) -> Floats:
    """Covariance (s^2) of two times: the sum over the causes that they share."""
    shared = (np.asarray(one[cause]) * other[cause] for cause in one if cause in other)
    return np.asarray(sum(shared, start=0.0), dtype=float)
