"""Drafters that really draft: prompt lookup, and a model with a cache of its own or the target's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflines.measurement.speculation.protocol import Cache, Draft, LanguageModel
from rooflines.measurement.speculation.rejection import Floats, Tokens
from rooflines.measurement.speculation.sampling import Sampling


def find_continuation(tokens: Tokens, draft_length: int, longest: int, shortest: int) -> Tokens:
    """What followed the last few tokens where they first stood before; empty where they are new.

    Prompt lookup decoding (Saxena 2023, https://github.com/apoorvumang/prompt-lookup-decoding): the longest
    n-gram that ends the sequence and occurs earlier, its first occurrence.

    Args:
        tokens: the sequence so far, shape [S].
        draft_length: most tokens to return.
        longest: n-gram to begin with.
        shortest: n-gram to end with, 1 or more.
    """
    for size in range(min(longest, len(tokens) - 1), shortest - 1, -1):
        windows = np.lib.stride_tricks.sliding_window_view(tokens[:-1], size)
        hits = np.flatnonzero((windows == tokens[-size:]).all(axis=1))
        if hits.size:
            start = int(hits[0]) + size
            return tokens[start : start + draft_length].copy()
    return tokens[:0]


@dataclass(frozen=True, slots=True)
class PromptLookup:
    """Copies what followed the same words earlier; costs no model.

    Attributes:
        longest: n-gram that is looked for first.
        shortest: n-gram that is looked for last.
    """

    longest: int = 3
    shortest: int = 1

    @property
    def depth(self) -> int:
        """None runs."""
        return 0

    def prefill(self, tokens: Tokens) -> None:
        """Nothing to prepare."""

    def draft(self, tokens: Tokens, draft_length: int) -> Draft:
        """Up to `draft_length` tokens; none where the sequence ends in new words."""
        return Draft(find_continuation(tokens, draft_length, self.longest, self.shortest))

    def keep(self, length: int) -> None:
        """Nothing to forget."""

    def rehearse(self, tokens: Tokens, draft_length: int) -> int:
        """One whole lookup."""
        self.draft(tokens, draft_length)
        return draft_length


@dataclass(frozen=True, slots=True)
class ModelDrafter:
    """A model that drafts one token a step.

    Its cache may be the target's: an early exit, or a copy of the target in a smaller format, then reads the
    target's own keys and values and writes its own only for what it drafts, which verifying overwrites.
    With a cache of its own, the last token of a draft kept whole is caught up in the next first step.

    Attributes:
        model: the drafting model.
        cache: its own or the target's.
        sampling: as the target's, so that its distribution is near.
        generator: of its random choices.
    """

    model: LanguageModel
    cache: Cache
    sampling: Sampling
    generator: np.random.Generator

    @property
    def depth(self) -> int:
        """Layers of the drafting model."""
        return self.model.depth

    def prefill(self, tokens: Tokens) -> None:
        """See the prompt, unless the target has shown it already."""
        missing = tokens[self.cache.length : -1]
        if missing.size:
            self.model.forward(missing, self.cache)

    def draft(self, tokens: Tokens, draft_length: int) -> Draft:
        """Exactly `draft_length` tokens, in as many steps."""
        drafted: list[int] = []
        offered: list[Floats] = []
        step = tokens[self.cache.length :]
        for _ in range(draft_length):
            reading = self.sampling.read(self.model.forward(step, self.cache))
            step = reading.pick(self.generator)[-1:]
            drafted.append(int(step[0]))
            if reading.probabilities is not None:
                offered.append(reading.probabilities[-1])
        return Draft(np.array(drafted, dtype=np.int64), np.stack(offered) if offered else None)

    def keep(self, length: int) -> None:
        """Roll back to what the target kept."""
        self.cache.roll_back(length)

    def rehearse(self, tokens: Tokens, draft_length: int) -> int:  # noqa: ARG002 - a step is a step
        """One step of one token."""
        length = self.cache.length
        self.sampling.read(self.model.forward(tokens[-1:], self.cache)).pick(self.generator)
        self.cache.roll_back(length)
        return 1
