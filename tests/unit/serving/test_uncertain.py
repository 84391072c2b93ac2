from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rooflines.estimates import Estimate
from rooflines.serving.benchmark import WAVES, benchmark_state
from rooflines.serving.engine import Engine, step_curve
from rooflines.serving.fleet import Fleet, PrefillPool
from rooflines.serving.host import Host
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.schedule import parse_schedule
from rooflines.serving.steady import closed_state, open_state, saturation_per_s
from rooflines.serving.uncertain import (
    FIRST_TOKEN_LOG_SD,
    SERVED_LOG_SD,
    client_ends,
    ends,
    engine_errors,
    slowed,
    turning_factors,
)
from rooflines.serving.workload import Workload
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.uncertain import pass_estimate

ASKED = Workload.independent(parse_lengths("1024", "prompt"), parse_lengths("256", "output"))
MACHINE = make_machine("h100-sxm5-80gb")
TARGET = make_deployment("llama-3.1-8b", MACHINE)
PLAIN = Engine(TARGET, max_sequences=64)


def log_sd(errors):
    return math.sqrt(sum(sd * sd for sd in errors.values()))


@pytest.fixture(scope="module")
def drafting():
    drafter = make_drafter("independent:llama-3.2-1b", TARGET)
    return replace(
        PLAIN, drafter=drafter, acceptance=Acceptance.constant(0.8), schedule=parse_schedule("4@8,2@32,0")
    )


def test_the_textbook_states_no_errors():
    textbook = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))
    assert engine_errors(replace(PLAIN, target=textbook), ASKED, 64) is None


def test_errors_of_a_step_are_those_of_its_pass():
    errors = engine_errors(PLAIN, ASKED, 64)
    for batch in (1.0, 64.0):
        step, _ = errors.of_passes(batch, 0)
        alone = pass_estimate(TARGET.decode(batch, ASKED.mean_context), MACHINE, "decode")
        assert log_sd(step) == pytest.approx(alone.log_sd)


def test_errors_of_prompts_are_those_of_their_first_chunk():
    engine = replace(PLAIN, batched_tokens=512)
    _, prompt = engine_errors(engine, ASKED, 64).of_passes(8.0, 0)
    alone = pass_estimate(TARGET.prefill(1.0, 512.0, 0.0), MACHINE, "prefill")
    assert log_sd(prompt) == pytest.approx(alone.log_sd)


def test_steps_and_prompts_share_causes_and_what_engines_add():
    step, prompt, first = engine_errors(PLAIN, ASKED, 64).served(8.0, 0)
    assert len(set(step) & set(prompt)) > 3
    assert step["engine"] == prompt["engine"] == SERVED_LOG_SD
    assert list(first.values()) == [FIRST_TOKEN_LOG_SD]
    assert not set(first) & set(step)


def test_medians_of_other_devices_are_less_sure():
    median = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "none"))
    own, other = (
        engine_errors(replace(PLAIN, target=target), ASKED, 64).of_passes(8.0, 0)[0]
        for target in (TARGET, median)
    )
    assert log_sd(other) > 1.2 * log_sd(own)


def test_an_engine_that_does_not_draft_at_a_load_errs_as_plain_decoding(drafting):
    errors, plain = engine_errors(drafting, ASKED, 64), engine_errors(PLAIN, ASKED, 64)
    for batch in (1.0, 16.0, 64.0):
        found, alone = errors.of_passes(batch, 0)[0], plain.of_passes(batch, 0)[0]
        assert {cause: sd for cause, sd in found.items() if sd} == pytest.approx(
            {cause: sd for cause, sd in alone.items() if sd}
        )
    # Of a ladder, whose lengths fall, each is found.
    assert len({log_sd(errors.of_passes(4.0, length)[0]) for length in (0, 2, 4)}) == 3


def test_a_speedup_is_better_known_than_two_independent_times(drafting):
    errors = engine_errors(drafting, ASKED, 64)
    both = math.hypot(*(log_sd(errors.of_passes(4.0, length)[0]) for length in (0, 4)))
    found = errors.speedup_log_sd(np.array([4.0]))
    assert found.shape == (1, 3)
    assert found[0, 0] == 0.0
    assert 0 < found[0, 2] < 0.8 * both


def test_speedups_are_known_batch_by_batch(drafting):
    errors = engine_errors(drafting, ASKED, 64)
    every = errors.speedup_log_sd(np.arange(1.0, 65.0))
    assert every.shape == (64, 3)
    assert every[3] == pytest.approx(errors.speedup_log_sd(np.array([4.0]))[0])


def test_products_of_times_have_the_ends_of_their_estimate():
    one, other = {"shared": 0.1, "own": 0.05}, {"shared": 0.2, "its": 0.03}
    found = ends(lambda factors: 3.0 * factors[0] * factors[1] ** 0.5, (one, other))
    exact = Estimate(3.0, {"shared": 0.1 + 0.2 / 2, "own": 0.05, "its": 0.03 / 2})
    # Slopes are taken over 3 %, where a product is not quite a sum.
    assert found == pytest.approx(exact.interval(), rel=1e-4)


def test_what_both_sides_of_a_ratio_share_drops_out():
    low, high = ends(lambda factors: factors[0] / factors[1], ({"shared": 0.3}, {"shared": 0.3}))
    assert (low, high) == pytest.approx((1.0, 1.0), abs=1e-3)


def test_an_end_may_be_an_overload():
    def answer(factors):
        load = 0.9 * factors[0]
        return 1.0 / (1.0 - load) if load < 1.0 else math.inf

    low, high = ends(answer, ({"one": 0.1},))
    assert low == pytest.approx(1.0 / (1.0 - 0.9 * math.exp(-0.1 * 1.6449)), rel=1e-4)
    assert high == math.inf


def test_exact_times_have_no_interval():
    assert ends(lambda factors: 2.0 * factors[0], ({},)) == (2.0, 2.0)


def test_what_does_not_move_is_lower_the_longer_everything_takes():
    low, high = turning_factors(lambda _: 0.0, ({"one": 0.1}, {"one": 0.2}))
    assert low[0] > 1 > high[0]
    assert low[1] > 1 > high[1]


def test_the_ends_are_the_quantiles_of_what_random_errors_make(linear_curve):
    """Monte Carlo over the causes, against the two states that are solved."""
    curve, tokens = linear_curve(), 255.0
    fleet = Fleet(PLAIN, curve, tokens)
    rate = 0.6 * saturation_per_s(curve, tokens)
    step, prompt = {"shared": 0.06, "step": 0.06}, {"shared": 0.06, "prompt": 0.12}

    def tpot(factors):
        state = open_state(slowed(fleet, *factors).curve, tokens, rate)
        return math.inf if state is None else state.tpot_s

    draws = np.random.default_rng(7).normal(size=(1500, 3)) * [0.06, 0.06, 0.12]
    found = [tpot((math.exp(shared + own), math.exp(shared + its))) for shared, own, its in draws]
    assert ends(tpot, (step, prompt)) == pytest.approx(np.quantile(found, [0.05, 0.95]), rel=0.03)


def test_slower_engines_complete_less_in_proportion(linear_curve):
    pool = PrefillPool(np.array([0.1]), np.ones(1), 0.02)
    fleet = Fleet(PLAIN, linear_curve(), 255.0, pool)
    slower = slowed(fleet, 1.25, 1.25)
    states = [closed_state(one.curve, 255.0, 32.0) for one in (fleet, slower)]
    assert states[1].rate_per_s == pytest.approx(states[0].rate_per_s / 1.25)
    assert slower.pool.saturation_per_s == pytest.approx(pool.saturation_per_s / 1.25)
    assert slower.pool.transfer_s == pool.transfer_s


def test_only_prompts_slow_down_where_only_they_do():
    curve = step_curve(PLAIN, ASKED)
    slower = slowed(Fleet(PLAIN, curve, 255.0), 1.0, 2.0).curve
    assert np.array_equal(slower.step_s, curve.step_s)
    assert np.allclose(slower.extra_s, 2.0 * curve.extra_s)


def test_host_time_is_exact(drafting):
    slow = CycleHost(plain_s=1e-3, cycle_s=1e-3)
    bare, hosted = (
        engine_errors(replace(drafting, cycle_host=host), ASKED, 64) for host in (DEVICE_ALONE, slow)
    )
    for length in (0, 4):
        one, other = (log_sd(errors.of_passes(4.0, length)[0]) for errors in (bare, hosted))
        seconds = float(np.asarray(bare.step.value)[3, [0, 2, 4].index(length)])
        assert other == pytest.approx(one * seconds / (seconds + 1e-3), rel=0.02)


SPREAD = Workload.independent(parse_lengths("uniform:900..1100", "p"), parse_lengths("uniform:200..300", "o"))


def test_what_a_client_measures_ends_where_its_engine_is_slower_or_faster(linear_curve):
    """With one error for steps and prompts, both ends are engines that are that much slower or faster."""
    curve, shared = linear_curve(), {"shared": 0.1}
    found = client_ends(curve, SPREAD, 16.0, (shared, shared, {}))
    factor = math.exp(0.1 * 1.6448536)
    state = benchmark_state(curve, SPREAD.decode_tokens, 16.0, WAVES)
    assert found.tpot_s == pytest.approx((state.tpot_s / factor, state.tpot_s * factor), rel=1e-6)
    assert found.ttft_s == pytest.approx((state.ttft_s / factor, state.ttft_s * factor), rel=1e-6)
    assert found.rate_per_s == pytest.approx((state.rate_per_s / factor, state.rate_per_s * factor), rel=1e-6)


def test_of_a_wait_only_what_is_predicted_may_be_wrong(linear_curve):
    """Neither the host's time, which was given, nor the wait for a place, which is the engine's pace."""
    waits = ({}, {}, {"waits": 0.5})
    factor = math.exp(0.5 * 1.6448536)
    curve = linear_curve(extra_s=50e-3, host=Host(request_s=0.4))
    for sequences in (16.0, 80.0):
        state = benchmark_state(curve, SPREAD.decode_tokens, sequences, WAVES)
        known = 0.4 + max(sequences - 64.0, 0.0) / state.rate_per_s
        assert known < state.ttft_s
        low, high = client_ends(curve, SPREAD, sequences, waits).ttft_s
        assert low == pytest.approx(known + (state.ttft_s - known) / factor)
        assert high == pytest.approx(known + (state.ttft_s - known) * factor)
