"""A benchmark client: a fixed number of requests at once, all of them sent at the start.

Clients such as vLLM's `benchmark_serving.py --request-rate inf --max-concurrency C` send C prompts together,
and another as each ends. The first C wait for each other's prompts; later ones come one by one, since random
lengths spread them. The mean time to first token of a run of N C requests is therefore that of one wave that
starts together and of N - 1 in the steady state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from rooflines.errors import InputError
from rooflines.serving.engine import StepCurve
from rooflines.serving.steady import ClosedState, closed_state

# Requests of a run for each at once: `--num-prompts $(( $CONC * 10 ))` in the scripts of InferenceMAX
# (benchmarks/ of https://github.com/InferenceMAX/InferenceMAX).
WAVES: Final = 10.0


def benchmark_state(curve: StepCurve, decode_tokens: float, sequences: float, waves: float) -> ClosedState:
    """What a client measures that keeps `sequences` requests running and sends all of them at the start.

    Args:
        curve: the engine.
        decode_tokens: D of the workload.
        sequences: C, requests at once; more than `max_sequences` wait outside.
        waves: N, requests of the whole run over C; 1 sends nothing after the start.

    Returns:
        The closed state, with the mean time to first token of the run.

    Raises:
        InputError: less than one wave, or no sequences.
    """
    if not waves >= 1.0:
        raise InputError(
            f"a run of {waves:g} requests for each at once: it has at least the first, so 1 or more"
        )
    settled = closed_state(curve, decode_tokens, sequences)
    first = first_wave_ttft_s(curve, sequences, settled.ttft_s)
    return replace(settled, ttft_s=(first + (waves - 1.0) * settled.ttft_s) / waves)


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
