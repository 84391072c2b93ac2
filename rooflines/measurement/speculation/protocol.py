"""What the loop needs of a model and of a drafter; torch is one way to provide it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rooflines.measurement.speculation.rejection import Floats, Tokens


class Logits(Protocol):
    """What a model says after each of n new positions."""

    def first_choices(self) -> Tokens:
        """The most likely token of each position, shape [n]."""

    def array(self) -> NDArray[np.float32]:
        """All logits, shape [n, V]."""


class Cache(Protocol):
    """Keys and values of the positions that a model has seen."""

    @property
    def length(self) -> int:
        """Positions that are valid."""

    def roll_back(self, length: int) -> None:
        """Forget every position from `length` on; a shorter cache stays as it is."""


class LanguageModel(Protocol):
    """A causal language model over one sequence."""

    @property
    def depth(self) -> int:
        """Layers that run."""

    def new_cache(self, positions: int) -> Cache:
        """An empty cache with room for `positions`."""

    def forward(self, tokens: Tokens, cache: Cache) -> Logits:
        """Append tokens, shape [n], to what `cache` holds and answer for each of them."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposed tokens.

    Attributes:
        tokens: shape [k], k at most the draft length.
        probabilities: q that each was drawn from, shape [k, V]; None where the drafter was certain.
    """

    tokens: Tokens
    probabilities: Floats | None = None


class Drafter(Protocol):
    """Who proposes tokens in one sequence."""

    @property
    def depth(self) -> int:
        """Layers of a draft step; 0 where no model runs."""

    def prefill(self, tokens: Tokens) -> None:
        """See a prompt, all but its last token."""

    def draft(self, tokens: Tokens, draft_length: int) -> Draft:
        """Propose up to `draft_length` tokens that follow `tokens`, the whole sequence so far."""

    def keep(self, length: int) -> None:
        """Forget what was proposed beyond the first `length` positions."""

    def rehearse(self, tokens: Tokens, draft_length: int) -> int:
        """Do once what a draft does over and over, leaving no trace; how many tokens it yields."""
