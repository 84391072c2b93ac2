from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.benchmark import benchmark_state, first_wave_ttft_s
from rooflines.serving.host import Host
from rooflines.serving.steady import at, closed_state, prompt_wait

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


def one_by_one(curve, sequences):
    """The settled state of requests that end apart: each misses the step after its answer."""

    def first_token_s(rate, batch):
        return at(curve.step_s, max(batch, 1.0)) + prompt_wait(curve)(rate, batch)

    return closed_state(curve, D, sequences, first_token_s)


def test_a_run_is_its_first_wave_and_the_steady_state(linear_curve):
    curve = linear_curve()
    settled = one_by_one(curve, 16.0)
    first = first_wave_ttft_s(curve, 16.0, settled.ttft_s)
    assert first > settled.ttft_s
    assert benchmark_state(curve, D, 16.0, 1.0).ttft_s == pytest.approx(first)
    ten = benchmark_state(curve, D, 16.0, 10.0)
    assert ten.ttft_s == pytest.approx(0.1 * first + 0.9 * settled.ttft_s)
    assert (ten.rate_per_s, ten.batch, ten.tpot_s) == (settled.rate_per_s, settled.batch, settled.tpot_s)


def test_a_request_misses_the_step_after_the_answer_that_it_follows(linear_curve):
    curve = linear_curve()
    missed = one_by_one(curve, 16.0).ttft_s - closed_state(curve, D, 16.0).ttft_s
    assert missed == pytest.approx(float(curve.step_s[16]), rel=0.1)


def looped(curve, sequences, decode, waves):
    """Equal requests in a closed loop, step by step: mean times to first token and per token after it.

    An answer that comes at the end of a step is followed by a request that misses the next step.
    """
    share, first = float(curve.chunk_share[0]), curve.host.prompts_first
    clock, ttft, tpot = 0.0, [], []
    sent, running, waiting = sequences, [], [[0.0, 0.0, share] for _ in range(sequences)]
    while waiting or running:
        room, done, used, batch = 1.0, [], 0.0, len(running)
        for request in [one for one in waiting if one[1] <= clock]:
            if request[2] > room + 1e-9:
                break  # whole prompts only
            room, used = room - request[2], used + request[2]
            done.append(request)
        waiting = waiting[len(done) :]
        alone = first and bool(done)
        prompts_s = float(curve.extra_s[0 if alone else batch]) * used / share
        begun, clock = clock, clock + prompts_s + (0.0 if alone else float(curve.step_s[batch]))
        if clock == begun:
            clock = min(one[1] for one in waiting)
            continue
        if not alone:
            for one in running:
                one[1] -= 1
            ended = [one for one in running if one[1] <= 0]
            running = [one for one in running if one[1] > 0]
            tpot += [(clock - one[0]) / decode for one in ended]
            for _ in ended[: sequences * waves - sent]:
                waiting.append([clock, np.nextafter(clock, np.inf), share])
                sent += 1
        ttft += [clock - one[0] for one in done]
        running += [[clock, decode] for _ in done]
    return np.mean(ttft), np.mean(tpot)


@pytest.mark.parametrize(
    ("share", "sequences", "decode"),
    [(0.5, 8, 100), (0.5, 32, 100), (0.25, 16, 300), (1.0, 32, 100), (1.0, 4, 50)],
)
def test_equal_lengths_step_by_step(linear_curve, share, sequences, decode):
    """Groups of prompts that share a step follow each other, wave after wave."""
    curve = linear_curve(share=share, extra_s=50e-3)
    ttft_s, tpot_s = looped(curve, sequences, decode, 10)
    equal = benchmark_state(curve, float(decode), float(sequences), 10.0, equal_lengths=True)
    assert equal.ttft_s == pytest.approx(ttft_s, rel=0.10)
    assert equal.tpot_s == pytest.approx(tpot_s, rel=0.05)


def test_equal_lengths_keep_requests_together(linear_curve):
    """Four prompts of 50 ms a step: each waits for the group before its own, and for its own."""
    curve = linear_curve(share=0.25, extra_s=50e-3)
    equal, spread = (
        benchmark_state(curve, 300.0, 16.0, 10.0, equal_lengths=given) for given in (True, False)
    )
    assert equal.ttft_s > 2.0 * spread.ttft_s
    assert equal.rate_per_s == pytest.approx(spread.rate_per_s, rel=0.1)


@pytest.mark.parametrize(("share", "sequences"), [(0.5, 8), (0.25, 32), (1.0, 16)])
def test_prompts_that_go_first_bring_equal_requests_into_lockstep(linear_curve, share, sequences):
    curve = linear_curve(share=share, extra_s=50e-3, host=Host(prompts_first=True))
    ttft_s, tpot_s = looped(curve, sequences, 100, 10)
    found = benchmark_state(curve, 100.0, float(sequences), 10.0, equal_lengths=True)
    assert found.ttft_s == pytest.approx(ttft_s, rel=0.03)
    assert found.tpot_s == pytest.approx(tpot_s, rel=0.03)
    assert found.ttft_s > 0.5 * sequences * 50e-3
    # Who is first waits for all others before it is decoded, so prompts count in the time per token.
    assert (
        found.tpot_s > float(curve.step_s[sequences]) + 0.4 * (sequences * share - 1.0) * 50e-3 / share / 100
    )


def test_drafts_part_requests_of_equal_lengths(linear_curve):
    curve = linear_curve(tokens=2.5, share=0.5)
    equal, spread = (benchmark_state(curve, D, 16.0, 10.0, equal_lengths=given) for given in (True, False))
    assert equal == spread


def test_groups_that_outlast_the_decoding_queue(linear_curve):
    """Sixty-four prompts of a step each, decoded for 10 steps: prompts alone are the bottleneck."""
    curve = linear_curve(share=1.0, extra_s=50e-3)
    ttft_s, _ = looped(curve, 64, 10, 10)
    found = benchmark_state(curve, 10.0, 64.0, 10.0, equal_lengths=True)
    assert found.ttft_s == pytest.approx(ttft_s, rel=0.15)
    assert found.rate_per_s * (found.ttft_s + 10.0 * found.tpot_s) == pytest.approx(64.0, rel=0.1)


def test_a_host_that_looks_seldom_or_gathers_prompts_lets_them_wait(linear_curve):
    plain = benchmark_state(linear_curve(), D, 16.0, 10.0)
    step_s = float(linear_curve().step_s[16])
    seldom = benchmark_state(linear_curve(host=Host(poll_steps=21.0)), D, 16.0, 10.0)
    assert seldom.ttft_s - plain.ttft_s == pytest.approx(0.9 * 10.0 * step_s, rel=0.1)
    gathering = benchmark_state(linear_curve(host=Host(gather_steps=20.0)), D, 16.0, 10.0)
    assert 0.9 * 10.0 * step_s < gathering.ttft_s - plain.ttft_s < 0.9 * 20.0 * step_s
    launching = benchmark_state(linear_curve(host=Host(launch_s=80e-3)), D, 16.0, 10.0)
    assert launching.ttft_s > plain.ttft_s + 0.9 * (80e-3 - step_s - 10e-3)
    assert launching.tpot_s > plain.tpot_s


def test_those_beyond_the_most_wait_for_a_place(linear_curve):
    curve = linear_curve(most=8)
    inside = first_wave_ttft_s(curve, 8.0, 5.0)
    assert first_wave_ttft_s(curve, 16.0, 5.0) == pytest.approx((inside + 5.0) / 2.0)


def test_a_run_without_its_first_wave_is_refused(linear_curve):
    with pytest.raises(InputError, match="1 or more"):
        benchmark_state(linear_curve(), D, 4.0, 0.5)
