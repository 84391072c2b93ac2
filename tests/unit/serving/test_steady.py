from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.steady import (
    at,
    closed_state,
    completions_per_s,
    open_state,
    prompt_wait,
    saturation_per_s,
)

D = 100.0


def test_columns_are_read_between_batches():
    values = np.array([0.0, 10.0, 30.0])
    assert [at(values, batch) for batch in (0.5, 1.0, 1.25, 2.0, 7.0)] == [5.0, 10.0, 15.0, 30.0, 30.0]


def test_completions_by_hand(linear_curve):
    # 4 sequences of 100 tokens: 25 steps of 8.24 ms and one prompt of 10 ms a request.
    assert completions_per_s(linear_curve(), D, 4.0) == pytest.approx(1 / (25 * 8.24e-3 + 10e-3))
    # Two tokens a step: half the steps.
    assert completions_per_s(linear_curve(tokens=2.0), D, 4.0) == pytest.approx(1 / (12.5 * 8.24e-3 + 10e-3))
    assert completions_per_s(linear_curve(), D, 0.0) == 0.0


def test_one_request_at_a_time_by_hand(linear_curve):
    state = closed_state(linear_curve(), D, 1.0)
    # Alone its prompt takes a step's worth and the chunk, and its tokens one step each; its own prompt is the
    # only one that others would have to wait for.
    assert state.ttft_s == pytest.approx(8.06e-3 + 10e-3, rel=0.2)
    assert state.tpot_s == pytest.approx(8.06e-3, rel=0.02)
    assert 1 / state.rate_per_s == pytest.approx(state.ttft_s + D * state.tpot_s)


def test_without_prompts_to_process_all_sequences_decode(linear_curve):
    curve = linear_curve(extra_s=0.0, chunks=0.0, share=0.0)
    state = closed_state(curve, D, 32.0)
    assert state.batch == pytest.approx(32.0)
    assert state.ttft_s == pytest.approx(0.0, abs=1e-12)
    assert state.tpot_s == pytest.approx(8e-3 + 32 * 60e-6)


def test_more_requests_than_run_wait_outside(linear_curve):
    curve = linear_curve(most=16)
    full, crowded = closed_state(curve, D, 16.0), closed_state(curve, D, 48.0)
    assert crowded.rate_per_s == full.rate_per_s
    assert crowded.tpot_s == full.tpot_s
    assert crowded.ttft_s == pytest.approx(full.ttft_s + 32.0 / full.rate_per_s)


def test_saturation_is_what_a_full_engine_completes(linear_curve):
    curve = linear_curve()
    assert saturation_per_s(curve, D) == closed_state(curve, D, 64.0).rate_per_s
    assert saturation_per_s(curve, D) < completions_per_s(curve, D, 64.0)


def test_prompts_alone_can_saturate_an_engine(linear_curve):
    # A prompt takes 20 whole steps of 100 ms extra: 2.16 s at least, however few tokens are decoded.
    curve = linear_curve(extra_s=2.0, chunks=20.0, share=20.0)
    state = closed_state(curve, 2.0, 64.0)
    assert state.rate_per_s < 1 / 2.16
    assert state.batch < 2.0


def test_an_idle_engine_decodes_alone(linear_curve):
    state = open_state(linear_curve(), D, 1e-3)
    assert state.tpot_s == pytest.approx(8.06e-3, rel=1e-3)
    assert state.ttft_s == pytest.approx(10e-3, rel=0.01)
    assert state.batch_quantile(0.99) == 0.0
    assert state.gap_quantile_s(0.5) == pytest.approx(8.06e-3)


def test_overload_is_no_state(linear_curve):
    curve = linear_curve()
    limit = saturation_per_s(curve, D)
    assert open_state(curve, D, limit) is None
    assert open_state(curve, D, 2 * limit) is None
    assert open_state(curve, D, 0.999 * limit) is not None


def test_mean_batch_of_independent_sequences(linear_curve):
    # Steps that take the same time at every batch, and prompts that cost nothing: sequences do not feel each
    # other, so their number is Poisson with mean lambda D T (M/G/infinity).
    curve = linear_curve(most=200, each_s=0.0, extra_s=0.0, chunks=0.0, share=0.0)
    state = open_state(curve, D, 10.0)
    mean = 10.0 * D * 8e-3
    assert state.batch == pytest.approx(mean, rel=1e-6)
    expected = [math.exp(-mean) * mean**n / math.factorial(n) for n in range(20)]
    np.testing.assert_allclose(state.probability[:20], expected, rtol=1e-6)


def test_one_sequence_at_a_time_is_an_m_m_1_queue(linear_curve):
    # The mean time in the system of processor sharing and of M/M/1: S / (1 - rho).
    curve = linear_curve(most=1, extra_s=0.0, chunks=0.0, share=0.0)
    service = D * 8.06e-3
    state = open_state(curve, D, 0.5 / service)
    waits = state.ttft_s - 0.5 * 0.5 * 8.06e-3
    assert waits + D * state.tpot_s == pytest.approx(service / 0.5, rel=1e-3)


def test_prompts_slow_the_tokens_of_others(linear_curve):
    free, loaded = (open_state(linear_curve(extra_s=extra), D, 5.0) for extra in (0.0, 40e-3))
    assert loaded.tpot_s > 1.2 * free.tpot_s
    assert loaded.gap_quantile_s(0.99) == pytest.approx(40e-3 + loaded.gap_quantile_s(0.5), rel=0.1)


def test_the_only_sequence_meets_no_prompts(linear_curve):
    alone = linear_curve(most=1, extra_s=1.0)
    limit = saturation_per_s(alone, 100.0)
    for load in (0.1, 0.5, 0.99):
        assert open_state(alone, 100.0, load * limit).tpot_s == pytest.approx(alone.step_s[1])


def test_beside_few_places_tokens_slow_down_with_the_load_and_as_much_as_an_engine_does(linear_curve):
    # Prompts of a second in three places: an engine that is full of them decodes less than one sequence.
    few = linear_curve(most=3, extra_s=1.0)
    slower = replace(few, step_s=2.0 * few.step_s, prompt_extra_s=2.0 * few.prompt_extra_s)
    limit = saturation_per_s(few, 100.0)
    times = [open_state(few, 100.0, load * limit).tpot_s for load in (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)]
    assert times == sorted(times)
    # All times twice as long at half the rate: the same queue.
    assert open_state(slower, 100.0, 0.45 * limit).tpot_s == pytest.approx(2.0 * times[4])
    # A slower engine at the same rate is no faster, down to the last place.
    assert open_state(replace(few, step_s=1.1 * few.step_s), 100.0, 0.9 * limit).tpot_s > times[4]


def test_speculation_delivers_in_bursts(linear_curve):
    # Three tokens a step of twice the time: time per token falls, the gap between deliveries doubles.
    plain = open_state(linear_curve(), D, 1.0)
    drafted = open_state(linear_curve(fixed_s=16e-3, each_s=120e-6, tokens=3.0), D, 1.0)
    assert drafted.tpot_s < 0.7 * plain.tpot_s
    assert drafted.gap_quantile_s(0.5) == pytest.approx(2 * plain.gap_quantile_s(0.5), rel=0.02)


def test_quantiles_lie_around_the_mean(linear_curve):
    curve = linear_curve()
    state = open_state(curve, D, 0.8 * saturation_per_s(curve, D))
    assert state.tpot_quantile_s(0.01) < state.tpot_s < state.tpot_quantile_s(0.99)
    assert state.batch_quantile(0.01) < state.batch < state.batch_quantile(0.99)
    assert state.ttft_quantile_s(0.99) > state.ttft_quantile_s(0.5)
    assert state.utilisation == pytest.approx(0.8)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_must_be_positive(linear_curve, rate):
    with pytest.raises(InputError, match="arrival rate"):
        open_state(linear_curve(), D, rate)


@pytest.mark.parametrize("sequences", [0.0, -1.0, math.nan, math.inf])
def test_a_number_of_sequences_must_be_positive(linear_curve, sequences):
    with pytest.raises(InputError, match="sequences"):
        closed_state(linear_curve(), D, sequences)


@pytest.mark.parametrize("sequences", [1.0, 1.5, 7.0, 63.0, 64.0])
@pytest.mark.parametrize(
    "given",
    [{}, {"extra_s": 0.0, "chunks": 0.0, "share": 0.0}, {"extra_s": 2.0, "chunks": 20.0, "share": 20.0}],
    ids=["prompts", "no prompts", "prompts alone saturate it"],
)
def test_every_request_decodes_or_waits_for_its_first_token(linear_curve, sequences, given):
    """Little's law at the fixed point, to the last bits, or prompts that take all of the time."""
    curve = linear_curve(**given)
    state, others = closed_state(curve, D, sequences), 1.0 - 1.0 / sequences
    rate = completions_per_s(curve, D, state.batch, others)
    assert state.rate_per_s == rate
    waiting = rate * prompt_wait(curve)(others * rate, state.batch)
    prompts_s = at(curve.chunk_share * curve.step_s + curve.extra_s, max(state.batch, 1.0))
    if rate * prompts_s < 1.0 - 1e-9:
        assert state.batch + waiting == pytest.approx(sequences, rel=1e-12)
    else:
        assert rate * prompts_s == pytest.approx(1.0)
        assert state.batch + waiting < sequences


def test_a_request_alone_waits_for_nobody(linear_curve):
    """One place: its own prompt and its own steps, one after the other."""
    curve = linear_curve(extra_s=2.0, chunks=20.0, share=20.0)
    own_s = float(curve.prompt_s[1] @ curve.prompt_weights) + D * curve.step_s[1]
    state = closed_state(curve, D, 1.0)
    assert 1.0 / state.rate_per_s == pytest.approx(own_s)
    assert state.tpot_s == pytest.approx(curve.step_s[1])


def test_a_fixed_point_at_the_pole_is_found(linear_curve):
    """A wait that is 0 up to a batch and endless beyond it: the batch stops there."""
    state = closed_state(linear_curve(), D, 32.0, lambda _, batch: 0.0 if batch <= 20.25 else math.inf)
    assert state.batch == pytest.approx(20.25, rel=1e-12)
