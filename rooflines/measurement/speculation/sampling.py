"""How tokens are chosen from logits: greedily, or at a temperature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from rooflines.errors import InputError
from rooflines.measurement.speculation.protocol import Draft, Logits
from rooflines.measurement.speculation.rejection import (
    Floats,
    Tokens,
    Verdict,
    distribution,
    draw,
    forced_verdict,
    greedy_verdict,
    lossless_verdict,
)


class Reading(Protocol):
    """What decoding needs of the logits of n positions."""

    @property
    def probabilities(self) -> Floats | None:
        """Distribution of each position, shape [n, V]; None where the choice is certain."""

    def pick(self, generator: np.random.Generator) -> Tokens:
        """A token for each position, shape [n]."""

    def judge(self, draft: Draft, generator: np.random.Generator) -> Verdict:
        """What is kept of a draft of n - 1 tokens."""


@dataclass(frozen=True, slots=True)
class Certain:
    """First choices, shape [n]."""

    tokens: Tokens

    @property
    def probabilities(self) -> Floats | None:
        """None: greedy decoding looks at no distribution."""
        return None

    def pick(self, generator: np.random.Generator) -> Tokens:  # noqa: ARG002 - needs no luck
        """The first choices."""
        return self.tokens

    def judge(self, draft: Draft, generator: np.random.Generator) -> Verdict:  # noqa: ARG002 - needs no luck
        """Keep what equals the first choices."""
        return greedy_verdict(draft.tokens, self.tokens)


@dataclass(frozen=True, slots=True)
class Spread:
    """Distributions, shape [n, V]."""

    probabilities: Floats

    def pick(self, generator: np.random.Generator) -> Tokens:
        """A token drawn for each position."""
        return draw(self.probabilities, generator.random(len(self.probabilities)))

    def judge(self, draft: Draft, generator: np.random.Generator) -> Verdict:
        """Leviathan's rule."""
        offered = draft.probabilities
        if offered is None:
            offered = np.zeros((len(draft.tokens), self.probabilities.shape[-1]))
            np.put_along_axis(offered, draft.tokens[:, None], 1.0, axis=-1)
        keep, token = generator.random(len(draft.tokens)), generator.random()
        return lossless_verdict(draft.tokens, offered, self.probabilities, keep, np.asarray(token))


@dataclass(frozen=True, slots=True)
class Sampling:
    """A way to choose tokens.

    Attributes:
        temperature: 0 is greedy.
    """

    temperature: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Sampling:
        """Read ``greedy`` or ``temperature:0.8``.

        Raises:
            InputError: anything else.
        """
        if text == "greedy":
            return cls()
        kind, _, value = text.partition(":")
        try:
            temperature = float(value)
        except ValueError:
            temperature = math.nan
        if kind != "temperature" or not 0 < temperature < math.inf:
            raise InputError(f"sampling {text!r} is not understood: write greedy or temperature:0.8")
        return cls(temperature)

    def __str__(self) -> str:
        return f"temperature:{self.temperature:g}" if self.temperature else "greedy"

    def read(self, logits: Logits) -> Reading:
        """What this way needs of logits; part of every decode step, plain or speculative."""
        if self.temperature:
            return Spread(distribution(logits.array(), self.temperature))
        return Certain(logits.first_choices())


GREEDY: Final = Sampling()


def judge(
    reading: Reading, draft: Draft, forced_acceptance: float | None, generator: np.random.Generator
) -> Verdict:
    """What a cycle keeps: by the lossless rule, or by chance where acceptance is forced."""
    if forced_acceptance is None:
        return reading.judge(draft, generator)
    return forced_verdict(forced_acceptance, reading.pick(generator), generator.random(len(draft.tokens)))
