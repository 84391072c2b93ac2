"""The loop: speculative and plain decoding of one prompt, side by side, token by token.

Host speed drifts by tens of percent within a minute, so nothing is measured block after block: after every
speculative cycle the plain decoder, with a second cache over the same weights, catches up to the same token,
and then one pass of a single position, one of the width that was verified and one draft step are timed for
their own sake. The drift is then in all of them alike, and cancels in every ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from rooflines.errors import InputError
from rooflines.measurement.clock import Timing, Work
from rooflines.measurement.speculation.protocol import Cache, Draft, Drafter, LanguageModel, Logits
from rooflines.measurement.speculation.rejection import Tokens
from rooflines.measurement.speculation.sampling import Reading, Sampling, judge

Result = TypeVar("Result")
Timer = Callable[[Work], Timing]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one run shall do.

    Attributes:
        tokens: to emit, at least; the last cycle may exceed it by what it accepts. The end-of-text token does
            not end a run, so that all runs are of one length.
        draft_length: gamma, 1 or more.
        sampling: how tokens are chosen.
        forced_acceptance: keep each drafted token with this probability; None: by the lossless rule.
        seed: of all random choices.
    """

    tokens: int
    draft_length: int
    sampling: Sampling
    forced_acceptance: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.draft_length < 1:
            raise InputError(
                f"{self.tokens} tokens with draft length {self.draft_length}: both must be 1 or more"
            )
        if self.forced_acceptance is not None and not 0 <= self.forced_acceptance <= 1:
            raise InputError(
                f"forced acceptance {self.forced_acceptance} is no probability: it must be 0 to 1"
            )


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One cycle.

    Attributes:
        context: positions in the cache before it.
        draft: time of the draft.
        verify: time of the verify pass, reading its logits included as in every plain step.
        other: time of accepting, rejecting and rolling back.
        drafted: tokens proposed; fewer than the draft length where the drafter knew no more.
        accepted: of these kept.
    """

    context: int
    draft: Timing
    verify: Timing
    other: Timing
    drafted: int
    accepted: int

    @property
    def emitted(self) -> int:
        """Tokens that the cycle yields, the target's own included."""
        return self.accepted + 1

    @property
    def verify_width(self) -> int:
        """Positions of the verify pass."""
        return self.drafted + 1


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed pass that decodes nothing.

    Attributes:
        case: "plain" (a pass of the target over one position), "step" (one as wide as the last verify) or
            "draft" (what the drafter does over and over).
        new_positions: positions of the pass, or tokens that the drafter yields by it.
        context: positions in the cache before it.
        depth: layers that ran.
        time: what it took.
    """

    case: str
    new_positions: int
    context: int
    depth: int
    time: Timing


@dataclass(frozen=True, slots=True)
class Divergence:
    """A place where plain decoding, given the same tokens before, would have chosen another one.

    Attributes:
        index: of the emitted token, 0 is the first after the prompt.
        emitted: token of the speculative decoder.
        plain: token of the plain decoder.
        gap: by how much the plain decoder's logit of its own choice exceeds that of the emitted token.
        top_logit: its logit of its own choice, the scale of rounding.
    """

    index: int
    emitted: int
    plain: int
    gap: float
    top_logit: float


@dataclass(frozen=True, slots=True)
class Run:
    """What one run saw.

    Attributes:
        tokens: emitted by the speculative decoder, prompt excluded.
        cycles: in order.
        plain: time of each plain step, one for every emitted token.
        samples: component timings taken in between.
        divergences: greedy only; empty means that both decoders said the same, token by token.
    """

    tokens: tuple[int, ...]
    cycles: tuple[CycleRecord, ...]
    plain: tuple[Timing, ...]
    samples: tuple[Sample, ...]
    divergences: tuple[Divergence, ...]


def positions_needed(prompt: int, wanted: Wanted) -> int:
    """Room that each cache must have: the last cycle and the sample after it may overshoot."""
    return prompt + wanted.tokens + 2 * (wanted.draft_length + 1)


def run(
    target: LanguageModel,
    open_drafter: Callable[[Cache, int], Drafter],
    prompt: Tokens,
    wanted: Wanted,
    time_once: Timer,
) -> Run:
    """Decode one prompt speculatively and plainly, side by side.

    Args:
        target: the model.
        open_drafter: makes the drafter of this run from the target's cache and the positions it must hold.
        prompt: shape [S], 2 tokens or more.
        wanted: how much, and how.
        time_once: does a piece of work and says how long it took.

    Raises:
        InputError: a prompt of fewer than two tokens.
    """
    if len(prompt) < 2:  # noqa: PLR2004 - one to cache, one to feed
        raise InputError(f"the prompt has {len(prompt)} tokens: it needs 2 or more")
    sides = _Sides(target, open_drafter, prompt, wanted, time_once)
    while sides.emitted < wanted.tokens:
        record = sides.cycle()
        sides.catch_up(record.emitted)
        sides.sample(record.verify_width)
    return sides.result()


class _Sides:
    """Both decoders of one run. Each cache holds every token but the last, which is fed next."""

    def __init__(
        self,
        target: LanguageModel,
        open_drafter: Callable[[Cache, int], Drafter],
        prompt: Tokens,
        wanted: Wanted,
        time_once: Timer,
    ) -> None:
        room = positions_needed(len(prompt), wanted)
        self.target, self.wanted, self.time_once = target, wanted, time_once
        self.cache, self.plain_cache = target.new_cache(room), target.new_cache(room)
        self.buffer = np.zeros(room, dtype=np.int64)
        self.buffer[: len(prompt)] = prompt
        self.prompt_length = self.length = len(prompt)
        self.generator = np.random.default_rng(wanted.seed)
        for cache in (self.cache, self.plain_cache):
            target.forward(prompt[:-1], cache)
        self.drafter = open_drafter(self.cache, room)
        self.drafter.prefill(prompt)
        self.cycles: list[CycleRecord] = []
        self.plain: list[Timing] = []
        self.samples: list[Sample] = []
        self.divergences: list[Divergence] = []

    @property
    def sequence(self) -> Tokens:
        return self.buffer[: self.length]

    @property
    def emitted(self) -> int:
        return self.length - self.prompt_length

    def cycle(self) -> CycleRecord:
        """Draft, verify, accept, roll back."""
        context = self.length - 1
        draft, drafting = self._timed(lambda: self.drafter.draft(self.sequence, self.wanted.draft_length))
        self.cache.roll_back(context)  # a drafter that shares the cache has written beyond it
        fed = np.append(self.sequence[-1:], draft.tokens)
        reading, verifying = self._timed(lambda: self._read(fed, self.cache))
        accepted, accepting = self._timed(lambda: self._accept(draft, reading))
        self.cycles.append(CycleRecord(context, drafting, verifying, accepting, len(draft.tokens), accepted))
        return self.cycles[-1]

    def _accept(self, draft: Draft, reading: Reading) -> int:
        verdict = judge(reading, draft, self.wanted.forced_acceptance, self.generator)
        accepted = int(verdict.accepted)
        self.buffer[self.length : self.length + accepted] = draft.tokens[:accepted]
        self.length += accepted + 1
        self.buffer[self.length - 1] = int(verdict.token)
        self.cache.roll_back(self.length - 1)
        self.drafter.keep(self.length - 1)
        return accepted

    def catch_up(self, count: int) -> None:
        """Decode plainly, step by step, given the `count` tokens that speculation has just emitted."""
        for position in range(self.length - count, self.length):
            (chosen, logits), time = self._timed(partial(self._plain_step, position))
            self.plain.append(time)
            self._compare(position, chosen, logits)

    def _plain_step(self, position: int) -> tuple[int, Logits]:
        """The token that plain decoding chooses for a position, and why."""
        logits = self.target.forward(self.buffer[position - 1 : position], self.plain_cache)
        return int(self.wanted.sampling.read(logits).pick(self.generator)[-1]), logits

    def _compare(self, position: int, chosen: int, logits: Logits) -> None:
        comparable = self.wanted.forced_acceptance is None and not self.wanted.sampling.temperature
        emitted = int(self.buffer[position])
        if comparable and chosen != emitted:
            row = logits.array()[-1]
            gap = float(row[chosen]) - float(row[emitted])
            index = position - self.prompt_length
            self.divergences.append(Divergence(index, emitted, chosen, gap, float(row[chosen])))

    def sample(self, width: int) -> None:
        """Time passes of one position and as wide as the last verify, and what the drafter repeats.

        They leave no trace. That of one position comes first, so that it finds the caches as plain steps do.
        """
        context = self.length - 1
        single = self._pass_of(1, context)
        passing = self._pass_of(width, context)
        tokens, drafting = self._timed(lambda: self.drafter.rehearse(self.sequence, self.wanted.draft_length))
        self.samples += (
            Sample("plain", 1, context, self.target.depth, single),
            Sample("step", width, context, self.target.depth, passing),
            Sample("draft", tokens, context, self.drafter.depth, drafting),
        )

    def _pass_of(self, width: int, context: int) -> Timing:
        """Time of a pass of the target over the last tokens, which the plain cache then forgets."""
        fed = np.resize(self.sequence[-width:], width)  # a short prompt repeats itself
        _, passing = self._timed(lambda: self._read(fed, self.plain_cache))
        self.plain_cache.roll_back(context)
        return passing

    def _timed(self, work: Callable[[], Result]) -> tuple[Result, Timing]:
        results: list[Result] = []
        time = self.time_once(lambda: results.append(work()))
        return results[0], time

    def _read(self, fed: Tokens, cache: Cache) -> Reading:
        return self.wanted.sampling.read(self.target.forward(fed, cache))

    def result(self) -> Run:
        """All that was seen."""
        return Run(
            tuple(int(token) for token in self.buffer[self.prompt_length : self.length]),
            tuple(self.cycles),
            tuple(self.plain),
            tuple(self.samples),
            tuple(self.divergences),
        )
