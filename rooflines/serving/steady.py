"""The steady state under continuous batching: batch, time per token, time to first token, saturation.

A sequence leaves after D decoded tokens, so b sequences complete b tau / (D T(b)) a second, T(b) being the
step and tau its tokens. Prompts arrive at rate lambda and each adds M(b) to the steps of the others: decoding
gets the share 1 - lambda M(b) of the time. With Poisson arrivals the sequences share a server whose rate
depends on their number; the stationary distribution of such a queue is that of a birth-death chain whatever
the distribution of output lengths (insensitivity of processor sharing: F. P. Kelly, Reversibility and
Stochastic Networks, 1979, chapter 3). Prompts wait for their chunks as in M/G/1 (Pollaczek-Khinchine).
Little's law ties time per token to the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.serving.engine import StepCurve
from rooflines.serving.queueing import exceeded_wait_s, mean_prompt_wait_s, weighted_quantile

Array = NDArray[np.float64]

# How near a batch must come, as a share, and when to give up: a dozen steps do, and bisecting takes 50.
_NEAR: Final = 1e-14
_MOST_STEPS: Final = 200
# Share of the time that decoding keeps at the least, where a batch below the mean could not bear the prompts.
_LEAST_SHARE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class ClosedState:
    """A fixed number of sequences, each replaced by a new prompt as it ends.

    Attributes:
        rate_per_s: requests completed (requests/s).
        batch: sequences that are being decoded, on average; the others wait for or are in prefill.
        tpot_s: time per output token after the first (s).
        ttft_s: from the start of a request to its first token (s).
    """

    rate_per_s: float
    batch: float
    tpot_s: float
    ttft_s: float


@dataclass(frozen=True, slots=True)
class OpenState:
    """Poisson arrivals at a rate below saturation.

    Attributes:
        rate_per_s: arrivals, all of them served (requests/s).
        saturation_per_s: the rate that the engine carries at most (requests/s).
        batches: shape (C + 1,), sequences that are being decoded, from 0.
        probability: shape (C + 1,), share of the time with each batch.
        batch: mean of it.
        tpot_s: mean time per output token after the first (s).
        ttft_s: mean time to first token (s).
        token_s: shape (C + 1,), time per token at each batch, prompts included (s).
        gaps_s: times between two deliveries to a sequence: steps without and with a chunk (s).
        gap_weights: how often a sequence sees each.
        full_probability: share of arrivals that find all sequences taken.
        prompt_load: share of the time that a prompt is in work.
        prompt_wait_s: mean wait of a prompt for the chunks before it (s).
        prompt_s: shape (K,), time in work by kind of prompt (s).
        prompt_weights: shape (K,), share of each kind.
        host_wait_s: mean wait for the server's host (s).
    """

    rate_per_s: float
    saturation_per_s: float
    batches: Array
    probability: Array
    batch: float
    tpot_s: float
    ttft_s: float
    token_s: Array
    gaps_s: Array
    gap_weights: Array
    full_probability: float
    prompt_load: float
    prompt_wait_s: float
    prompt_s: Array
    prompt_weights: Array
    host_wait_s: float

    @property
    def utilisation(self) -> float:
        """Arrivals over the saturation rate."""
        return self.rate_per_s / self.saturation_per_s

    def batch_quantile(self, share: float) -> float:
        """The batch that is not exceeded that share of the time."""
        return weighted_quantile(self.batches, self.probability, share)

    def tpot_quantile_s(self, share: float) -> float:
        """Time per token that this share of the tokens does not exceed (s).

        A long request averages over the loads that it lives through, so requests spread less than this.
        """
        weights = self.probability * self.batches / np.maximum(self.token_s, 1e-300)
        return weighted_quantile(self.token_s, weights, share)

    def gap_quantile_s(self, share: float) -> float:
        """Time between two deliveries to a sequence that this share does not exceed (s).

        A verify step delivers its tokens together: under speculation it is the gap that users see.
        """
        return weighted_quantile(self.gaps_s, self.gap_weights, share)

    def ttft_quantile_s(self, share: float) -> float:
        """Time to first token that about this share of the requests does not exceed (s).

        The sum of the quantiles of its parts, which is an upper bound where they do not peak together.
        """
        slot = exceeded_wait_s(
            self.full_probability, 1.0 / max(self.saturation_per_s - self.rate_per_s, 1e-300), share
        )
        queue = exceeded_wait_s(self.prompt_load, self.prompt_wait_s / max(self.prompt_load, 1e-300), share)
        rest = share * float(self.gaps_s @ self.gap_weights / self.gap_weights.sum())
        return (
            self.host_wait_s
            + slot
            + queue
            + rest
            + weighted_quantile(self.prompt_s, self.prompt_weights, share)
        )


@dataclass(frozen=True, slots=True)
class _Averages:
    """Columns of a curve for the mean prompt; shape (N + 1,) each, K prompts apart."""

    step_s: Array
    tokens: Array
    extra_s: Array
    work_s: Array
    chunks: Array
    prompt_s: Array
    weights: Array

    @classmethod
    def of(cls, curve: StepCurve) -> Self:
        """`work_s` is the time of steps that a prompt takes up when chunks are filled with several (s)."""
        curve = curve.launched()
        extra = curve.extra_s
        return cls(
            curve.step_s,
            curve.tokens_per_step,
            extra,
            curve.chunk_share * curve.step_s + extra,
            curve.chunks,
            curve.prompt_s,
            curve.prompt_weights,
        )

    @property
    def mixed_s(self) -> Array:
        """A step that carries a chunk (s)."""
        return self.step_s + self.extra_s / np.maximum(self.chunks, 1.0)

    def upto(self, batch: int) -> Self:
        """The columns up to a batch."""
        cut = slice(batch + 1)
        return type(self)(
            self.step_s[cut],
            self.tokens[cut],
            self.extra_s[cut],
            self.work_s[cut],
            self.chunks[cut],
            self.prompt_s[cut],
            self.weights,
        )

    def rate_per_s(self, decode_tokens: float, batch: float, others: float = 1.0) -> float:
        """X of `completions_per_s`."""
        if batch <= 0:
            return 0.0
        whole = max(batch, 1.0)
        produced = batch * at(self.tokens, whole)
        met_s = others * at(self.extra_s, whole)
        return produced / (decode_tokens * at(self.step_s, whole) + produced * met_s)

    def first_token_s(self, rate_per_s: float, batch: float) -> float:
        """Wait for the chunks of other prompts and the prompt's own steps; infinite where prompts pile up."""
        whole = max(batch, 1.0)
        low = int(whole)
        high = min(low + 1, self.step_s.size - 1)
        seconds = self.prompt_s[low] + (whole - low) * (self.prompt_s[high] - self.prompt_s[low])
        load = rate_per_s * at(self.work_s, whole)
        return mean_prompt_wait_s(load, rate_per_s, seconds, self.weights) + float(seconds @ self.weights)


def prompt_wait(curve: StepCurve) -> Callable[[float, float], float]:
    """W by the rate (requests/s) and the batch: for the chunks of others and the prompt's own steps (s)."""
    return _Averages.of(curve).first_token_s


def at(values: Array, batch: float) -> float:
    """A column of a curve at a mean batch, which need not be whole."""
    low = min(int(batch), values.size - 1)
    high = min(low + 1, values.size - 1)
    return float(values[low] + (batch - low) * (values[high] - values[low]))


def completions_per_s(curve: StepCurve, decode_tokens: float, batch: float, others: float = 1.0) -> float:
    """Requests that `batch` sequences complete while each completed one is replaced (requests/s).

    X = b tau / (D T + b tau M): the time of D / tau steps shared by b sequences, and one prompt.

    Args:
        curve: the engine.
        decode_tokens: D of the workload.
        batch: b.
        others: share of the prompts that a sequence meets; its own is none of them.
    """
    return _Averages.of(curve).rate_per_s(decode_tokens, batch, others)


def closed_state(
    curve: StepCurve,
    decode_tokens: float,
    sequences: float,
    first_token_s: Callable[[float, float], float] | None = None,
) -> ClosedState:
    """The state that `sequences` requests settle in when each is replaced as it ends.

    The batch b is the fixed point of b + X(b) W(b) = C, the sequences inside, W being the time before the
    first token; the left side rises with b, so the bracket 0..C holds one. A request meets the prompts of the
    other C - 1 only, (C - 1) / C of all, waiting and decoding (P. J. Schweitzer's approximation of closed
    networks, as in Y. Bard, Some extensions to multiclass queueing network analysis, 1979; exact for C = 1),
    and prompts alone cannot take more than all of the time.

    Args:
        curve: the engine.
        decode_tokens: D of the workload.
        sequences: requests in the system; more than `max_sequences` wait outside.
        first_token_s: W by the rate of the others' prompts and b (s); None for prompts that come apart from
            each other.

    Raises:
        InputError: no sequences.
    """
    if not 0 < sequences < np.inf:
        raise InputError(f"{sequences:g} sequences: give a positive number")
    means = _Averages.of(curve)
    waits = first_token_s or means.first_token_s
    inside = min(float(sequences), float(curve.max_sequences))
    others = max(1.0 - 1.0 / inside, 0.0)

    def beyond(batch: float) -> float:
        rate = means.rate_per_s(decode_tokens, batch, others)
        if rate * at(means.work_s, max(batch, 1.0)) >= 1.0:
            return math.inf
        return batch + rate * waits(others * rate, batch) - inside

    batch = _zero(beyond, inside)
    rate = means.rate_per_s(decode_tokens, batch, others)
    tpot = batch / (rate * decode_tokens)
    return ClosedState(rate, batch, tpot, sequences / rate - decode_tokens * tpot)


def _zero(rising: Callable[[float], float], most: float) -> float:
    """Where a function that rises from below 0 to above it, or to infinity, on 0..most turns its sign.

    Regula falsi with halved ends (Dowell and Jarratt, A modified regula falsi method for computing the root
    of an equation, BIT 11, 1971: the Illinois algorithm); a steep or infinite end is bisected.
    """
    low, high = 0.0, most
    below, above = rising(low), rising(high)
    moved = None
    if above <= 0.0:
        return high
    for _ in range(_MOST_STEPS):
        share = 0.5 if above > most else below / (below - above)
        middle = low + share * (high - low)
        value = rising(middle)
        if abs(value) <= _NEAR * most or not low < middle < high:
            return middle
        if value < 0.0:
            above = above / 2.0 if moved == "low" else above
            low, below, moved = middle, value, "low"
        else:
            below = below / 2.0 if moved == "high" else below
            high, above, moved = middle, value, "high"
    return low


def saturation_per_s(curve: StepCurve, decode_tokens: float) -> float:
    """The arrival rate beyond which a queue grows without end (requests/s)."""
    return closed_state(curve, decode_tokens, float(curve.max_sequences)).rate_per_s


def open_state(
    curve: StepCurve, decode_tokens: float, rate_per_s: float, full: ClosedState | None = None
) -> OpenState | None:
    """The state under Poisson arrivals; None where the engine is overloaded.

    Args:
        curve: the engine.
        decode_tokens: D of the workload.
        rate_per_s: lambda, arrivals at this engine (requests/s).
        full: the state of the full engine, where many rates are asked of one; None works it out.

    Raises:
        InputError: the rate is not positive.
    """
    if not rate_per_s > 0:
        raise InputError(f"arrival rate is {rate_per_s:g} requests/s: give a positive number")
    full = full or closed_state(curve, decode_tokens, float(curve.max_sequences))
    if rate_per_s >= full.rate_per_s:
        return None
    most = min(max(math.ceil(full.batch), 1), curve.max_sequences)
    means = _Averages.of(curve).upto(most)
    batches = np.arange(most + 1, dtype=float)
    token_s, probability = _chain(means, decode_tokens, rate_per_s)
    met_s = token_s + _met_prompts_s(means, rate_per_s) / decode_tokens
    # However many prompts a sequence meets, its tokens come once a step.
    token_s = np.maximum(token_s, np.minimum(met_s, means.mixed_s / means.tokens))
    token_s = np.minimum(token_s, _slowest_s(means, decode_tokens, curve.max_sequences))
    seen = probability * batches
    tpot = float(seen.sum() / (seen[1:] / token_s[1:]).sum())
    tpot = min(tpot, curve.max_sequences / (rate_per_s * decode_tokens))
    seconds = probability @ means.prompt_s
    load = min(rate_per_s * float(probability @ means.work_s), 1.0 - _LEAST_SHARE)
    prompt_wait = mean_prompt_wait_s(load, rate_per_s, seconds, means.weights)
    gaps, gap_weights = _gaps(curve, rate_per_s, batches, probability)
    residual = float(gaps @ gap_weights / gap_weights.sum() / 2.0) * float(1.0 - probability[0])
    # Whoever finds all sequences taken waits as in M/M/1, which a full engine is to those outside.
    slot_wait = float(probability[-1]) / (full.rate_per_s - rate_per_s)
    host_wait = curve.host.arrival_wait_s(rate_per_s, float(probability @ means.step_s))
    return OpenState(
        rate_per_s=rate_per_s,
        saturation_per_s=full.rate_per_s,
        batches=batches,
        probability=probability,
        batch=rate_per_s * decode_tokens * tpot,
        tpot_s=tpot,
        ttft_s=host_wait + slot_wait + prompt_wait + residual + float(seconds @ means.weights),
        token_s=token_s,
        gaps_s=gaps,
        gap_weights=gap_weights,
        full_probability=float(probability[-1]),
        prompt_load=load,
        prompt_wait_s=prompt_wait,
        prompt_s=seconds,
        prompt_weights=means.weights,
        host_wait_s=host_wait,
    )


def _chain(means: _Averages, decode_tokens: float, rate_per_s: float) -> tuple[Array, Array]:
    """Time per token at each number of sequences (s), and the share of the time with it.

    State n decodes n sequences, up to those of the full engine; what waits beyond counts with the last.
    """
    share = np.maximum(1.0 - rate_per_s * means.extra_s, _LEAST_SHARE)
    token_s = means.step_s / means.tokens / share
    batches = np.arange(token_s.size, dtype=float)
    leaving = batches[1:] / (decode_tokens * token_s[1:])
    # Each arrival also takes M away from the others, who are then 1 / (1 - lambda M) more than they would be:
    # arrivals come as jumps of that size, and the batch varies more by the mean of it and of a departure's 1.
    calm = 2.0 * share / (1.0 + share)
    logs = np.concatenate([[0.0], np.cumsum(calm[1:] * np.log(rate_per_s / leaving))])
    mass = np.exp(logs - logs.max())
    mass[-1] *= 1.0 + rate_per_s / max(leaving[-1] - rate_per_s, _LEAST_SHARE * rate_per_s)
    return token_s, mass / mass.sum()


def _met_prompts_s(means: _Averages, rate_per_s: float) -> Array:
    """Time that a sequence loses to more prompts in work when it starts than when it ends (s).

    A sequence starts as its own prompt ends, when the next in line (as in M/G/1 after a departure) is just
    beginning: M rho / 2 more work than at any time, whose mean is V = M rho / (2 (1 - rho)). It ends with a
    token, and tokens come faster while no prompt is in work: then only V times the share of tokens in mixed
    steps over the share of time in them is left.
    """
    load = np.minimum(rate_per_s * means.work_s, 1.0 - _LEAST_SHARE)
    mixed = means.mixed_s
    slower = np.divide(means.step_s, mixed, out=np.ones_like(mixed), where=mixed > 0)
    left = slower / (load * slower + 1.0 - load)
    more = load / 2.0 + load / (2.0 * (1.0 - load)) * (1.0 - left)
    share = np.maximum(1.0 - rate_per_s * means.extra_s, _LEAST_SHARE)
    return np.asarray(means.extra_s * more / share)


def _slowest_s(means: _Averages, decode_tokens: float, most: int) -> Array:
    """Time per token of a sequence beside which every other place of the engine takes in a prompt (s).

    From the start of a request to its end each of the `most` - 1 other places starts as many requests as its
    own does, one on average, so that it meets no more prompts than these while it is decoded.
    """
    return np.asarray(means.step_s / means.tokens + (most - 1) * means.extra_s / decode_tokens)


def _gaps(curve: StepCurve, rate_per_s: float, batches: Array, probability: Array) -> tuple[Array, Array]:
    """Steps without and with a chunk, and how many sequences see each per second."""
    size = batches.size
    curve = curve.launched()
    with_chunk = curve.chunk_step_s[:size]
    step = np.maximum(curve.step_s[:size], 1e-300)
    carrying = np.minimum(rate_per_s * curve.chunks[:size], 1.0 / np.maximum(with_chunk, 1e-300))
    bare = np.maximum(1.0 - carrying * with_chunk, 0.0) / step
    seen = probability * batches
    return (
        np.concatenate([curve.step_s[1:size], with_chunk[1:]]),
        np.concatenate([(seen * bare)[1:], (seen * carrying)[1:]]),
    )
