"""Known faults of capacity tools, injected one by one: each must turn a check on measured facts red.

Facts: vLLM, Llama-3.1-70B in fp8 on two H100 (InferenceMAX, in AIConfigurator's silicon_sample.csv,
https://github.com/ai-dynamo/aiconfigurator): time per token and to first token by tokens in and out and
requests at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.serving.engine import Engine, step_curve
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.steady import closed_state, open_state
from rooflines.serving.workload import Workload
from rooflines.studies.serve import make_deployment, make_machine

# (tokens in, tokens out, requests at once) -> time per token (ms), time to first token (ms).
MEASURED = {
    (1024, 1024, 16): (19.74, 252.5),
    (8192, 1024, 16): (34.625, 1284.1),
    (8192, 1024, 32): (52.369, 6518.3),
    (8192, 1024, 64): (52.406, 59175.4),
}


@pytest.fixture(scope="module")
def target():
    machine = make_machine("h100-sxm5-80gb", "auto")
    return make_deployment("llama-3.1-70b", machine, weight_dtype="fp8", tensor=2)


def workload(prompt, output):
    return Workload.independent(parse_lengths(str(prompt), "p"), parse_lengths(str(output), "o"))


def state(target, prompt, output, requests, *, fault=lambda curve: curve, reserve=0.1):
    asked = workload(prompt, output)
    curve = fault(step_curve(Engine(target, max_sequences=requests, reserve=reserve), asked))
    return closed_state(curve, asked.decode_tokens, requests)


def without_prompts(curve):
    """Prefill is free: what tools that time decode steps alone assume."""
    return replace(curve, prompt_extra_s=0 * curve.prompt_extra_s)


def interference_holds(fault):
    """Long prompts slow the tokens of others as much as measured."""

    def check(target):
        short, long = (state(target, prompt, 1024, 16, fault=fault) for prompt in (1024, 8192))
        measured = MEASURED[8192, 1024, 16][0] / MEASURED[1024, 1024, 16][0]
        return long.tpot_s / short.tpot_s == pytest.approx(measured, rel=0.15)

    return check


def test_prefill_slows_decoding(target):
    assert interference_holds(lambda curve: curve)(target)
    assert not interference_holds(without_prompts)(target)


def memory_holds(target, reserve):
    """64 requests run no faster than 32, since no more fit: the others wait a minute."""
    few, many = (state(target, 8192, 1024, requests, reserve=reserve) for requests in (32, 64))
    measured = MEASURED[8192, 1024, 64]
    return many.tpot_s == pytest.approx(few.tpot_s, rel=0.05) and many.ttft_s == pytest.approx(
        measured[1] / 1e3, rel=0.35
    )


def test_memory_bounds_the_batch(target):
    assert memory_holds(target, 0.1)
    # The fault: requests at once are taken as the batch, as if memory had no end.
    assert not memory_holds(target, -4.0)


def test_a_batch_is_not_the_number_of_requests(target):
    """The fault: requests in prefill are counted as if they were decoding already."""
    found = state(target, 8192, 1024, 16)
    assert found.batch < 16
    assert found.rate_per_s * (found.ttft_s + 1023 * found.tpot_s) == pytest.approx(16)
    assert found.rate_per_s * 1023 * found.tpot_s != pytest.approx(16, rel=0.02)


def test_time_per_token_is_not_the_gap_that_users_see(target):
    """The fault: a step that emits three tokens is reported as three steps."""
    asked = workload(1024, 1024)
    curve = step_curve(Engine(target, max_sequences=16), asked)
    drafted = replace(curve, step_s=1.3 * curve.step_s, tokens_per_step=np.full(curve.step_s.size, 3.0))
    found = open_state(drafted, asked.decode_tokens, 0.2)
    assert found.gap_quantile_s(0.5) > 2.5 * found.tpot_s
