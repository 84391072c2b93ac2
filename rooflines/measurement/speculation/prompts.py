"""What is decoded: prompts that come with the package, by kind, or random tokens that no words stand for."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import numpy as np

from rooflines.errors import InputError, UnknownNameError
from rooflines.measurement.speculation.rejection import Tokens

RANDOM: Final = "random"
_DEFAULT_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """Something to continue.

    Attributes:
        name: of it.
        kind: chat, copying, code or random.
        text: what a user says; None for random tokens.
        length: of random tokens.
    """

    name: str
    kind: str
    text: str | None = None
    length: int = _DEFAULT_LENGTH

    def random_tokens(self, vocabulary: int, seed: int) -> Tokens:
        """Tokens of no meaning; the second half repeats the first, so that a lookup finds something."""
        half = np.random.default_rng(seed).integers(vocabulary, size=(self.length + 1) // 2)
        return np.resize(half, self.length)


def shipped_prompts() -> tuple[Prompt, ...]:
    """The prompts of the package, in the order of their file."""
    text = files(__package__).joinpath("prompts.toml").read_text(encoding="utf-8")
    return tuple(Prompt(name, **fields) for name, fields in tomllib.loads(text).items())


def choose_prompts(names: Sequence[str], per_kind: int | None = None) -> tuple[Prompt, ...]:
    """Prompts by name, by kind, or ``random:LENGTH``.

    Args:
        names: of prompts or of kinds; a kind stands for all of its prompts.
        per_kind: take only so many of a kind.

    Raises:
        UnknownNameError: neither a prompt nor a kind.
        InputError: random tokens of no length, or no prompt at all.
    """
    chosen: dict[str, Prompt] = {}
    for name in names:
        for prompt in _named(name.strip(), per_kind):
            chosen[prompt.name] = prompt
    if not chosen:
        raise InputError("no prompt is named: name prompts or kinds, such as chat,copying")
    return tuple(chosen.values())


def _named(name: str, per_kind: int | None) -> tuple[Prompt, ...]:
    kind, _, length = name.partition(":")
    if kind == RANDOM:
        if length and not (length.isdecimal() and int(length) > 1):
            raise InputError(f"prompt {name!r}: write random:LENGTH with 2 tokens or more")
        return (Prompt(name, RANDOM, length=int(length or _DEFAULT_LENGTH)),)
    shipped = shipped_prompts()
    found = tuple(prompt for prompt in shipped if prompt.name == name)
    found = found or tuple(prompt for prompt in shipped if prompt.kind == name)[:per_kind]
    if not found:
        kinds = tuple(dict.fromkeys(prompt.kind for prompt in shipped))
        known = ", ".join((*kinds, RANDOM))
        raise UnknownNameError(
            "prompt", name, (*kinds, RANDOM, *(prompt.name for prompt in shipped)), f"(kinds: {known})"
        )
    return found
