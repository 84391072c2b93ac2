"""The draft-and-verify cycle: what it costs, what it yields, and so how much faster it is.

eta = tau / kappa with kappa = (T_draft + T_verify + T_overhead) / T_target (DFlash, arXiv 2602.06036, eq. 1;
DSpark, arXiv 2607.05147, eq. 1, with overhead added). Leviathan et al. 2023 (arXiv 2211.17192, theorem 3.8)
is the case of a free verify: kappa = gamma c + 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance, whole_number
from rooflines.speculation.branches import BranchAcceptance, Rates
from rooflines.speculation.drafters.base import Draft, Drafter, drafting
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.speculation.proposals import proposed_and_accepted, verify_sent
from rooflines.timing.step_times import StepTimer, Timed

# 16^15 = 2^60 parts reach the last bit.
_SECTIONS: Final = 16
_ROUNDS: Final = 15


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """Times of a cycle before anything is known of acceptance.

    Attributes:
        target: one plain decode step.
        verify: the verify pass.
        draft: the draft.
        overhead_s: time per cycle outside draft and verify (s).
        draft_length: gamma; of a tree, its depth.
        verify_length: drafted tokens that are verified of a chain; of a tree, its depth.
    """

    target: Timed
    verify: Timed
    draft: Draft
    overhead_s: Number
    draft_length: Number
    verify_length: Number


@dataclass(frozen=True, slots=True)
class Yield:
    """What acceptance makes of a cycle.

    Attributes:
        tokens_per_cycle: tau, the target's own token included.
        all_accepted: chance that all drafted tokens are accepted, so that the drafter has one to catch up.
    """

    tokens_per_cycle: Number
    all_accepted: Number


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle with its acceptance; numbers or arrays that broadcast.

    Attributes:
        tokens_per_cycle: tau, the target's own token included.
        target_step_s: time of one plain decode step (s).
        draft_s: time of the draft, catching up included (s).
        verify_s: time of the verify pass (s).
        overhead_s: time per cycle outside both (s).
        draft_length: gamma; of a tree, its depth.
        verify_width: n, positions verified.
    """

    tokens_per_cycle: Number
    target_step_s: Number
    draft_s: Number
    verify_s: Number
    overhead_s: Number
    draft_length: Number
    verify_width: Number

    @property
    def cycle_s(self) -> Number:
        """Time of one cycle (s)."""
        return self.draft_s + self.verify_s + self.overhead_s

    @property
    def cycle_cost(self) -> Number:
        """kappa: time of a cycle in plain decode steps."""
        return self.cycle_s / self.target_step_s

    @property
    def cost_ratio(self) -> Number:
        """c: draft time per drafted token in plain decode steps; 0 where nothing is drafted."""
        per_cycle = self.draft_s / self.target_step_s
        return per_cycle / np.maximum(self.draft_length, 1.0)

    @property
    def speedup(self) -> Number:
        """Tokens per cycle over cycle cost (eta = tau / kappa), over plain decoding on the same machine."""
        return self.tokens_per_cycle / self.cycle_cost

    @property
    def time_per_token_s(self) -> Number:
        """L, time per emitted token of a sequence (s)."""
        return self.cycle_s / self.tokens_per_cycle


def cycle_times(
    target: StepTimer,
    drafter: Drafter,
    batch: Number,
    context: Number,
    draft_length: Number,
    *,
    overhead_s: Number = 0.0,
    verify_length: Number | None = None,
    host: CycleHost = DEVICE_ALONE,
) -> CycleTimes:
    """Price the three parts of a cycle; independent of acceptance, so priced once for many.

    Args:
        target: the model that is sped up, as it is served.
        drafter: who proposes.
        batch: B sequences.
        context: S cached positions per sequence.
        draft_length: gamma; of a tree, its depth; 0 is plain decoding.
        overhead_s: time per cycle outside draft and verify: accept, reject, roll back (s); plain decoding
            has none of it.
        verify_length: drafted tokens that are verified at most, where more are drafted; None for all.
        host: what the host of an engine adds to passes and cycles beside `overhead_s`.

    Raises:
        InputError: a tree with a verify length: its nodes say what is verified.
    """
    draft = host.drawn(drafter.draft(batch, context, draft_length))
    verified, width = draft_length, draft.verify_width
    if verify_length is not None:
        if draft.tree is not None:
            raise InputError(
                f"{drafter.name} drafts a tree, of which its nodes say how many are verified: "
                "set nodes=... instead of a verify length"
            )
        verified = np.minimum(draft_length, whole_number(verify_length, "verify length", least=1))
        width = np.minimum(width, verified + 1.0)
    return CycleTimes(
        target=host.plain(target.decode(batch, context)),
        verify=host.launched(
            target.verify(batch, context, width, draft.ancestors)
            if draft.proposals is None
            else verify_sent(target, draft.proposals, batch, context, verified)
        ),
        draft=replace(draft, verify_width=width),
        overhead_s=overhead_s * drafting(draft_length) + host.outside_s(batch, draft_length),
        draft_length=draft_length,
        verify_length=verified,
    )


def cycle(times: CycleTimes, acceptance: Rates) -> Cycle:
    """What the cycle yields and costs under an acceptance model.

    A chain takes the best guesses of branch rates. A tree takes all of them; where only one rate a position
    is known, it is taken as what the *tree* attains by depth, as engines print it: the share of cycles in
    which some node of depth k is accepted, given that one of depth k - 1 was.

    Acceptance is that of drafted tokens: a drafter that proposes in some cycles only (`Draft.proposals`)
    yields and verifies nothing but the target's own token in the others.

    The draft's catch-up step is paid after a cycle in which all drafts were accepted.
    """
    return cycle_with(times, cycle_yield(times, acceptance))


def cycle_yield(times: CycleTimes, acceptance: Rates) -> Yield:
    """All that a cycle takes from acceptance: independent of batch and context, so computed once for many."""
    length, tree = np.asarray(times.verify_length), times.draft.tree
    by_depth = acceptance.chain() if isinstance(acceptance, BranchAcceptance) else acceptance
    if times.draft.proposals is not None:
        by_depth = proposed_and_accepted(times.draft.proposals, by_depth, length)
    if tree is not None and isinstance(acceptance, BranchAcceptance):
        tokens: Number = tree.tokens_per_cycle(acceptance, length)
    else:
        tokens = by_depth.tokens_per_cycle(length)
    # A token beyond the verified ones is thrown away, so nothing is missing from the drafter's cache.
    return Yield(tokens, np.where(length < times.draft_length, 0.0, by_depth.survival(length)))


def cycle_with(times: CycleTimes, yields: Yield) -> Cycle:
    """A cycle of known yield."""
    return Cycle(
        tokens_per_cycle=yields.tokens_per_cycle,
        target_step_s=times.target.seconds,
        draft_s=times.draft.seconds + yields.all_accepted * times.draft.catch_up_s,
        verify_s=times.verify.seconds,
        overhead_s=times.overhead_s,
        draft_length=times.draft_length,
        verify_width=times.draft.verify_width,
    )


def cycle_break_even_acceptance(times: CycleTimes) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The constant acceptance from which the cycle beats plain decoding; NaN where none does.

    Sections of tau(alpha, gamma) - kappa(alpha), which rises in alpha since a drafted token costs less than
    the cycle that it saves wherever it pays at all: of sixteen parts the one in which it turns, again and
    again, as a bisection would with four times as many calls on small arrays.

    Args:
        times: of cycles, any shape.
    """
    best = np.asarray(cycle(times, Acceptance.constant(1.0)).speedup)
    low, high = np.zeros(best.shape), np.ones(best.shape)
    inside = (np.arange(1.0, _SECTIONS) / _SECTIONS).reshape(-1, *(1 for _ in best.shape))
    for _ in range(_ROUNDS):
        part = (high - low) / _SECTIONS
        tried = np.minimum(low + inside * (high - low), 1.0)
        wins = np.asarray(cycle(times, Acceptance.constant(tried)).speedup) >= 1.0
        lost = np.sum(~wins, axis=0)
        low, high = low + lost * part, np.minimum(low + (lost + 1) * part, 1.0)
    return np.where(best >= 1.0, high, np.nan)


def cycle_break_even_cost_ratio(outcome: Cycle) -> Number:
    """The draft cost ratio c up to which the cycle beats plain decoding, all else equal; below 0: never."""
    left = outcome.tokens_per_cycle - (outcome.verify_s + outcome.overhead_s) / outcome.target_step_s
    return left / np.maximum(outcome.draft_length, 1.0)
