"""A benchmark client: a fixed number of requests at once, all of them sent at the start.

Clients such as vLLM's `benchmark_serving.py --request-rate inf --max-concurrency C` send C prompts together,
and another as each ends. The first C wait for each other's prompts. What comes later depends on the lengths:

- *Spread* lengths part the requests, and later prompts come one by one.
- *Equal* lengths keep those together whose prompts shared a step: they end in one step, and their successors
  come together again, one group behind the other. Each group misses the step after its answer, which carries
  the prompts of the group before it, and takes the next one.
- Where prompts go *first*, in steps of their own, equal lengths bring all requests into lockstep: none is
  decoded before the last prompt is done, and all end in one step.

The mean time to first token of a run of N C requests is that of one wave that starts together and of N - 1
later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.errors import InputError
from rooflines.serving.engine import StepCurve
from rooflines.serving.steady import ClosedState, at, closed_state, prompt_wait

# Requests of a run for each at once: `--num-prompts $(( $CONC * 10 ))` in the scripts of InferenceMAX
# (benchmarks/ of https://github.com/InferenceMAX/InferenceMAX), and `--request-count` in AIConfigurator's
# (src/aiconfigurator/eval/benchmarks/genai_perf_runner.py of https://github.com/ai-dynamo/aiconfigurator).
WAVES: Final = 10.0


def benchmark_state(
    curve: StepCurve, decode_tokens: float, sequences: float, waves: float, *, equal_lengths: bool = False
) -> ClosedState:
    """What a client measures that keeps `sequences` requests running and sends all of them at the start.

    Args:
        curve: the engine.
        decode_tokens: D of the workload.
        sequences: C, requests at once; more than `max_sequences` wait outside.
        waves: N, requests of the whole run over C; 1 sends nothing after the start.
        equal_lengths: all prompts are as long as each other, and all outputs. Drafts part requests even so,
            since some have more of them accepted.

    Returns:
        The closed state, with the mean time to first token of the run.

    Raises:
        InputError: less than one wave, or no sequences.
    """
    if not waves >= 1.0:
        raise InputError(
            f"a run of {waves:g} requests for each at once: it has at least the first, so 1 or more"
        )
    inside = max(min(sequences, float(curve.max_sequences)), 1.0)
    together = _together(curve, inside)
    shared = curve.launched(together)
    equal = equal_lengths and at(curve.tokens_per_step, inside) == 1.0
    if equal and curve.host.prompts_first:
        return _wave(shared, decode_tokens, sequences, inside, _lockstep(shared, inside, together))
    settled = (
        _wave(shared, decode_tokens, sequences, inside, _in_groups(shared, decode_tokens, inside, together))
        if equal
        else closed_state(curve, decode_tokens, sequences, _one_by_one(curve))
    )
    first = first_wave_ttft_s(shared, sequences, settled.ttft_s) + curve.host.request_s
    return replace(settled, ttft_s=(first + (waves - 1.0) * settled.ttft_s) / waves)


def _together(curve: StepCurve, inside: float) -> int:
    """Whole prompts that fit into a step beside the sequences that are decoded, as far as there are any."""
    share = at(curve.chunk_share, inside)
    room = math.floor(1.0 / share * (1.0 + 1e-9)) if share > 0 else math.inf
    return int(max(min(room, inside), 1.0))


def _one_by_one(curve: StepCurve) -> Callable[[float, float], float]:
    """Time before the first token by rate and batch, where requests end apart (s)."""
    prompts = prompt_wait(curve)

    def first_token_s(rate_per_s: float, batch: float) -> float:
        step_s = at(curve.step_s, max(batch, 1.0))
        return curve.host.answer_wait_s(rate_per_s, step_s, step_s) + prompts(rate_per_s, batch)

    return first_token_s


@dataclass(frozen=True, slots=True)
class _Prompts:
    """Prompts of one wave of equal requests.

    Attributes:
        first_token_s: from a request to its first token (s).
        steps: decode steps that pass meanwhile, without those of `held_s`.
        held_s: what else a wave takes beside its steps and prompts (s).
        least_steps: steps that the prompts of all requests take, where each rides along with one.
    """

    first_token_s: float
    steps: float
    held_s: float = 0.0
    least_steps: float = 0.0


def _wave(
    curve: StepCurve, decode_tokens: float, sequences: float, inside: float, prompts: _Prompts
) -> ClosedState:
    """Equal requests, each followed by another: all prompts and all decode steps of a wave, over and over."""
    steps = max(decode_tokens + prompts.steps, prompts.least_steps)
    queued = 1.0 - (decode_tokens + prompts.steps) / steps  # share of the wave
    busy_s = steps * at(curve.step_s, inside) + inside * at(curve.extra_s, inside)
    wave_s = prompts.held_s + busy_s
    first_token_s = prompts.first_token_s + queued * busy_s
    rate = inside / wave_s
    return ClosedState(
        rate,
        inside - rate * first_token_s,
        (wave_s - first_token_s) / decode_tokens,
        first_token_s + (sequences - inside) / rate,
    )


def _in_groups(curve: StepCurve, decode_tokens: float, inside: float, together: int) -> _Prompts:
    """Groups of `together` requests that follow each other, one step behind the other.

    Each misses a step with the prompts of the group before it; the first group of all misses a bare one.
    Where groups take more steps than a request is decoded in, they queue.
    """
    groups = inside / together
    step_s, chunks = at(curve.step_s, inside), max(at(curve.chunks, inside), 1.0)
    mixed_s = step_s + together * at(curve.extra_s, inside) / chunks
    missed_s = step_s + (mixed_s - step_s) * (1.0 - 1.0 / groups)
    rate = inside / (decode_tokens * step_s + inside * at(curve.extra_s, inside))
    wait_s = curve.host.answer_wait_s(rate, step_s, missed_s)
    return _Prompts(wait_s + chunks * mixed_s, 1.0 + chunks, wait_s - missed_s, groups * chunks)


def _lockstep(curve: StepCurve, inside: float, together: int) -> _Prompts:
    """All prompts in steps of their own; none is decoded before the last is done."""
    passes = math.ceil(inside / together)
    prompts_s = inside * float(curve.extra_s[0])
    own_s = curve.host.request_s + prompts_s * (passes + 1.0) / (2.0 * passes)
    held_s = curve.host.request_s + prompts_s - inside * at(curve.extra_s, inside)
    return _Prompts(own_s, 0.0, held_s)


def first_wave_ttft_s(curve: StepCurve, sequences: float, waiting_s: float) -> float:
    """Mean time to first token of requests that reach an idle engine together (s).

    Prompts fill the token budget of step after step; the i-th has its first token at the end of the step that
    holds its last part. Those before it are decoded meanwhile.

    Args:
        curve: the engine.
        sequences: requests; those beyond `max_sequences` wait for a place.
        waiting_s: time to first token of those that wait (s).
    """
    inside = max(min(round(sequences), curve.max_sequences), 1)
    share = np.maximum(curve.chunk_share[:inside], 1e-300)
    filled = np.cumsum(share)  # steps that the prompts up to each fill
    step = np.floor((filled - share) * (1.0 + 1e-12))  # in which each begins
    decoding = np.searchsorted(filled, step * (1.0 + 1e-12), side="right")
    work_s = np.cumsum(curve.extra_s[:inside] + share * curve.step_s[decoding])
    ends = np.minimum(np.ceil(filled * (1.0 - 1e-12)), filled[-1])
    together_s = np.interp(ends, np.concatenate([[0.0], filled]), np.concatenate([[0.0], work_s]))
    outside = max(sequences - inside, 0.0)
    return float((together_s.sum() + outside * waiting_s) / (inside + outside))
