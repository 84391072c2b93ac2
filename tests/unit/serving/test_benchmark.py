from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.benchmark import benchmark_state, first_wave_ttft_s
from rooflines.serving.steady import closed_state

D = 100.0


def played(curve, sequences):
    """Time to first token of each of `sequences` prompts that start together, step by step."""
    share, extra_s = float(curve.chunk_share[0]), float(curve.extra_s[0])
    left, clock, found = [share] * sequences, 0.0, []
    while left:
        room, ended, work = 1.0, 0, 0.0
        for index, need in enumerate(left):
            taken = min(need, room)
            left[index], room = need - taken, room - taken
            work += extra_s * taken / share
            if left[index] > 1e-9 or room <= 1e-12:
                break
        clock += work + float(curve.step_s[len(found)])
        while left and left[0] <= 1e-9:
            left.pop(0)
            ended += 1
        found += [clock] * ended
    return np.array(found)


@pytest.mark.parametrize(
    ("share", "sequences"), [(0.25, 1), (0.25, 4), (0.25, 10), (0.2, 32), (1.0, 16), (2.0, 8)]
)
def test_the_first_wave_step_by_step(linear_curve, share, sequences):
    curve = linear_curve(share=share, chunks=np.ceil(share), extra_s=40e-3 * share)
    expected = played(curve, sequences).mean()
    # A prompt that spans steps is taken to meet the sequences of its first.
    assert first_wave_ttft_s(curve, float(sequences), 0.0) == pytest.approx(expected, rel=0.02)


def test_one_request_starts_with_its_own_prompt(linear_curve):
    assert first_wave_ttft_s(linear_curve(), 1.0, 9.9) == pytest.approx(10e-3)


def test_a_run_is_its_first_wave_and_the_steady_state(linear_curve):
    curve = linear_curve()
    settled = closed_state(curve, D, 16.0)
    first = first_wave_ttft_s(curve, 16.0, settled.ttft_s)
    assert first > settled.ttft_s
    assert benchmark_state(curve, D, 16.0, 1.0).ttft_s == pytest.approx(first)
    ten = benchmark_state(curve, D, 16.0, 10.0)
    assert ten.ttft_s == pytest.approx(0.1 * first + 0.9 * settled.ttft_s)
    assert (ten.rate_per_s, ten.batch, ten.tpot_s) == (settled.rate_per_s, settled.batch, settled.tpot_s)


def test_those_beyond_the_most_wait_for_a_place(linear_curve):
    curve = linear_curve(most=8)
    inside = first_wave_ttft_s(curve, 8.0, 5.0)
    assert first_wave_ttft_s(curve, 16.0, 5.0) == pytest.approx((inside + 5.0) / 2.0)


def test_a_run_without_its_first_wave_is_refused(linear_curve):
    with pytest.raises(InputError, match="1 or more"):
        benchmark_state(linear_curve(), D, 4.0, 0.5)
