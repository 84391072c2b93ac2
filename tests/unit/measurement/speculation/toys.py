"""Toy models of whose every answer the whole cached sequence is the cause, and a clock that tells what ran."""

from __future__ import annotations

import numpy as np

from rooflines.measurement.clock import Timing

VOCABULARY = 11


class ToyLogits:
    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=np.float32)

    def first_choices(self):
        return self.rows.argmax(axis=-1)

    def array(self):
        return self.rows


class ToyCache:
    """Holds the tokens themselves, so that what a forgotten rollback leaves behind changes all later answers."""

    def __init__(self, positions):
        self.tokens = []
        self.positions = positions

    @property
    def length(self):
        return len(self.tokens)

    def roll_back(self, length):
        del self.tokens[length:]


class ToyClock:
    """Time passes only by what models do."""

    def __init__(self):
        self.seconds = 0.0

    def time_once(self, work):
        start = self.seconds
        work()
        return Timing(self.seconds - start, 2 * (self.seconds - start))


class ToyModel:
    """Logits are random numbers that the cached tokens seed.

    `error` of them are replaced by another model's: a drafter that is mostly right.
    """

    def __init__(self, clock, step_s=1.0, token_s=0.25, error=0.0, seed=0):
        self.clock, self.step_s, self.token_s, self.error, self.seed = clock, step_s, token_s, error, seed
        self.widths = []

    depth = 2

    def new_cache(self, positions):
        return ToyCache(positions)

    def forward(self, tokens, cache):
        assert len(tokens)
        rows = []
        for token in tokens:
            cache.tokens.append(int(token))
            rows.append(self.row(cache.tokens))
        assert cache.length <= cache.positions
        self.widths.append(len(tokens))
        self.clock.seconds += self.step_s + self.token_s * len(tokens)
        return ToyLogits(rows)

    def row(self, tokens):
        row = np.random.default_rng([0, *tokens]).normal(size=VOCABULARY)
        mistake = np.random.default_rng([1, self.seed, *tokens])
        return mistake.normal(size=VOCABULARY) if mistake.random() < self.error else row


def decode(model, prompt, count):
    """Greedy decoding without any cache."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(np.argmax(model.row(tokens))))
    return tuple(tokens[len(prompt) :])
