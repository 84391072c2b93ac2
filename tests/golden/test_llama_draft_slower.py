"""An independent judge: llama.cpp's own times explain why its fast draft slowed its target down.

llama.cpp on one core of an AMD EPYC, SmolLM2-135M-Instruct (measured 2026-11-30): a Q4_1 copy drafting for
the bf16 model was accepted 0.87-0.98 of the time and yet took it from 65 to 29-38 tokens/s; drafting for the
f32 model it was about even (27-31 -> 21-29 tokens/s).
"""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.hardware.calibration import StepTime
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.closed_form import walltime_improvement
from rooflines.speculation.cycle import CycleTimes, cycle, cycle_break_even_acceptance
from rooflines.speculation.drafters.base import Draft
from rooflines.timing.step_times import StepTable

# Means of `llama-bench -p n -d 128`, milliseconds, 7 repetitions each; tests/data holds them against the
# files. The last of each is `-n`: decoding one by one, per token.
Q4_MS = {1: 16.8199, 2: 22.3722, 4: 32.6986, 8: 57.6024}
Q4_DECODE_MS = 13.8487
F32_MS = {1: 29.7038, 2: 46.3364, 4: 63.7579, 8: 67.6578}
# T(n) / T(1) of the bf16 model with 65 tokens/s of plain decoding, measured in the same session.
BF16_RATIOS = {1: 1.0, 2: 2.1, 4: 3.2, 8: 3.2}
BF16_TOKENS_PER_S = 65.0
CONTEXT = 128
WIDTHS = np.array([2.0, 4.0, 8.0])  # those that were timed; draft lengths are one less


def table(milliseconds):
    return StepTable.of(
        StepTime(batch=1, new_positions=width, context=CONTEXT, time_s=time / 1e3)
        for width, time in milliseconds.items()
    )


def times(target_ms):
    target, lengths = table(target_ms), WIDTHS - 1.0
    return CycleTimes(
        target=target.decode(1.0, CONTEXT),
        verify=target.verify(1.0, CONTEXT, WIDTHS),
        draft=Draft(lengths * Q4_DECODE_MS / 1e3, 0.0, WIDTHS),
        overhead_s=0.0,
        draft_length=lengths,
        verify_length=lengths,
    )


@pytest.fixture
def bf16():
    return times({width: ratio * 1e3 / BF16_TOKENS_PER_S for width, ratio in BF16_RATIOS.items()})


@pytest.mark.parametrize("alpha", [0.87, 0.9, 0.98])
def test_a_fast_draft_of_high_acceptance_slows_its_bf16_target(bf16, alpha):
    speedup = cycle(bf16, Acceptance.constant(alpha)).speedup
    assert np.all(speedup < 0.85)


def test_the_predicted_rate_is_the_one_that_was_seen(bf16):
    rates = BF16_TOKENS_PER_S * cycle(bf16, Acceptance.constant(0.9)).speedup
    # Seen: 29-38 tokens/s, draft lengths not recorded one by one.
    assert np.all((rates > 29) & (rates < 42))


def test_no_acceptance_at_all_could_have_made_it_pay(bf16):
    assert np.all(np.isnan(cycle_break_even_acceptance(bf16)))


def test_the_reason_is_the_verify_pass_and_a_draft_as_slow_as_the_target(bf16):
    one = cycle(bf16, Acceptance.constant(0.9))
    assert np.all(one.cost_ratio > 0.85)
    np.testing.assert_allclose(one.verify_s / one.target_step_s, [2.1, 3.2, 3.2])
    # Leviathan's formula takes the verify pass as one step, and so overstates by a third and more.
    promised = walltime_improvement(0.9, one.draft_length, one.cost_ratio)
    assert np.all(promised / one.speedup > 1.3)
    assert promised[0] == pytest.approx(1.0, abs=0.01)


def test_the_same_draft_is_about_even_for_the_f32_target():
    speedup = cycle(times(F32_MS), Acceptance.constant(0.9)).speedup
    assert np.all((speedup > 0.85) & (speedup < 1.1))
