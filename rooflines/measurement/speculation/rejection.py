"""Which drafted tokens are kept: Leviathan's lossless rule, its greedy case, and forced acceptance.

Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), algorithm 1: a token x drawn from the draft's
distribution q is kept with probability min(1, p(x)/q(x)); at the first rejection one token is drawn from the
normalised excess max(0, p - q); after a draft that was kept whole, one from the target's own next
distribution. What is emitted is then distributed exactly as the target's own samples. Every function takes
its random numbers as arguments and broadcasts over leading axes, so that a test can run a hundred thousand
cycles at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError

Tokens = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a cycle keeps; arrays of the shape of the leading axes.

    Attributes:
        accepted: drafted tokens kept, 0 to gamma.
        token: the target's own token that follows them: a correction, or a bonus after a full acceptance.
    """

    accepted: Tokens
    token: Tokens


def distribution(logits: NDArray[np.floating], temperature: float) -> Floats:
    """Softmax of logits over the last axis.

    Args:
        logits: shape [..., V].
        temperature: above 0; greedy decoding needs no distribution.

    Raises:
        InputError: a temperature of 0 or less.
    """
    if not temperature > 0:
        raise InputError(f"temperature {temperature} has no distribution: it must be above 0")
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    weights: Floats = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def draw(weights: Floats, uniforms: NDArray[np.floating]) -> Tokens:
    """Tokens drawn in proportion to weights, by inverting the cumulative sum.

    Args:
        weights: shape [..., V], not all 0, of any sum.
        uniforms: random numbers in [0, 1), shape [...].
    """
    cumulative = np.cumsum(weights, axis=-1)
    target = np.asarray(uniforms)[..., None] * cumulative[..., -1:]
    tokens: Tokens = np.argmax(cumulative > target, axis=-1)
    return tokens


def lossless_verdict(
    drafted: Tokens,
    draft_probabilities: Floats,
    target_probabilities: Floats,
    keep_uniforms: NDArray[np.floating],
    token_uniforms: NDArray[np.floating],
) -> Verdict:
    """Leviathan's rule (algorithm 1).

    Args:
        drafted: tokens, shape [..., gamma], each drawn from its row of `draft_probabilities`.
        draft_probabilities: q, shape [..., gamma, V]; a certain draft has all mass on its token.
        target_probabilities: p, shape [..., gamma + 1, V].
        keep_uniforms: random numbers in [0, 1) that decide on keeping, shape [..., gamma].
        token_uniforms: random numbers in [0, 1) that draw the last token, shape [...].
    """
    length = drafted.shape[-1]
    at = drafted[..., None]
    of_target = np.take_along_axis(target_probabilities[..., :length, :], at, axis=-1)[..., 0]
    of_draft = np.take_along_axis(draft_probabilities, at, axis=-1)[..., 0]
    accepted = _leading(keep_uniforms * of_draft < of_target)
    # A row of no draft at all behind the last one: its excess is the target's own distribution.
    nothing = np.zeros_like(target_probabilities[..., :1, :])
    offered = np.concatenate([draft_probabilities, nothing], axis=-2)
    row = accepted[..., None, None]
    target_row = np.take_along_axis(target_probabilities, row, axis=-2)[..., 0, :]
    offered_row = np.take_along_axis(offered, row, axis=-2)[..., 0, :]
    return Verdict(accepted, draw(_excess(target_row, offered_row), token_uniforms))


def greedy_verdict(drafted: Tokens, target_tokens: Tokens) -> Verdict:
    """The rule at temperature 0: a drafted token is kept where the target's first choice is the same.

    Args:
        drafted: tokens, shape [..., gamma].
        target_tokens: the target's first choices, shape [..., gamma + 1].
    """
    return _verdict(drafted == target_tokens[..., :-1], target_tokens)


def forced_verdict(acceptance: float, target_tokens: Tokens, keep_uniforms: NDArray[np.floating]) -> Verdict:
    """Keep each drafted token with a given probability, whatever it is: acceptance as a dial, not lossless.

    Args:
        acceptance: conditional probability that a position is kept, alpha.
        target_tokens: what the target says after each prefix, shape [..., gamma + 1].
        keep_uniforms: random numbers in [0, 1), shape [..., gamma].
    """
    return _verdict(keep_uniforms < acceptance, target_tokens)


def acceptance_probability(draft_probabilities: Floats, target_probabilities: Floats) -> Floats:
    """The chance that a token drawn from q is kept: sum of min(p, q) (Leviathan 2023, theorem 3.5).

    Args:
        draft_probabilities: q, shape [..., V].
        target_probabilities: p, shape [..., V].
    """
    overlap: Floats = np.minimum(draft_probabilities, target_probabilities).sum(axis=-1)
    return overlap


def _verdict(kept: NDArray[np.bool_], target_tokens: Tokens) -> Verdict:
    accepted = _leading(kept)
    return Verdict(accepted, np.take_along_axis(target_tokens, accepted[..., None], axis=-1)[..., 0])


def _leading(kept: NDArray[np.bool_]) -> Tokens:
    """How many are true before the first false, along the last axis."""
    count: Tokens = np.cumprod(kept, axis=-1, dtype=np.int64).sum(axis=-1)
    return count


def _excess(target: Floats, offered: Floats) -> Floats:
    """What the target gives beyond what was offered; the target itself where rounding leaves nothing."""
    excess = np.maximum(target - offered, 0.0)
    return np.where(excess.sum(axis=-1, keepdims=True) > 0, excess, target)
