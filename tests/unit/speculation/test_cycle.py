from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.closed_form import walltime_improvement
from rooflines.speculation.cycle import (
    Cycle,
    cycle,
    cycle_break_even_acceptance,
    cycle_break_even_cost_ratio,
    cycle_times,
)
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine

TARGET, SMALL = "llama-2-7b", "tinyllama-1.1b-v1.0"


@pytest.fixture(scope="module")
def pair():
    return served("a100-sxm-80gb", TARGET, SMALL)


def served(hardware, target, drafter, calibration="textbook", tensor=1):
    machine = make_machine(hardware, calibration)
    whole = make_deployment(target, machine, tensor=tensor)
    return whole, IndependentDrafter(make_deployment(drafter, machine, tensor=tensor), whole.model)


def a_cycle(**changes):
    given = {
        "tokens_per_cycle": 3.0,
        "target_step_s": 10e-3,
        "draft_s": 8e-3,
        "verify_s": 11e-3,
        "overhead_s": 1e-3,
        "draft_length": 4.0,
        "verify_width": 5.0,
    }
    return Cycle(**{**given, **changes})


def test_a_cycle_by_hand():
    one = a_cycle()
    assert one.cycle_s == pytest.approx(20e-3)
    assert one.cycle_cost == pytest.approx(2.0)
    assert one.cost_ratio == pytest.approx(0.2)
    assert one.speedup == pytest.approx(1.5)
    assert one.time_per_token_s == pytest.approx(20e-3 / 3)
    assert cycle_break_even_cost_ratio(one) == pytest.approx((3.0 - 1.2) / 4)


def test_at_the_break_even_cost_ratio_the_speedup_is_one():
    one = a_cycle()
    ratio = cycle_break_even_cost_ratio(one)
    assert replace(one, draft_s=ratio * one.draft_length * one.target_step_s).speedup == pytest.approx(1.0)


def test_the_cost_ratio_of_nothing_drafted_is_zero():
    assert a_cycle(draft_length=0.0, draft_s=0.0).cost_ratio == 0.0


@pytest.mark.parametrize("calibration", ["textbook", "none"])
@pytest.mark.parametrize("overhead_s", [0.0, 1e-3])
def test_draft_length_0_is_plain_decoding_exactly(calibration, overhead_s):
    target, drafter = served("a100-sxm-80gb", TARGET, SMALL, calibration)
    batches = np.array([1.0, 8.0, 64.0])
    times = cycle_times(target, drafter, batches, 1024.0, 0.0, overhead_s=overhead_s)
    outcome = cycle(times, Acceptance.constant(0.8))
    assert np.all(outcome.speedup == 1.0)
    assert np.all(np.asarray(outcome.tokens_per_cycle) == 1.0)
    assert np.all(np.asarray(outcome.draft_s) == 0.0)


def test_leviathan_is_the_limit_of_a_free_verify_without_catching_up(pair):
    """Theorem 3.8 assumes that verifying gamma + 1 positions takes as long as one decode step."""
    times = cycle_times(*pair, 1.0, 1024.0, np.arange(1.0, 9.0))
    free = replace(times, verify=times.target, draft=replace(times.draft, catch_up_s=0.0))
    outcome = cycle(free, Acceptance.constant(0.8))
    expected = walltime_improvement(0.8, np.arange(1.0, 9.0), np.asarray(outcome.cost_ratio))
    assert np.asarray(outcome.speedup) == pytest.approx(expected, rel=1e-12)


def test_catching_up_costs_in_proportion_to_the_chance_that_all_were_accepted(pair):
    times = cycle_times(*pair, 1.0, 1024.0, 4.0)
    slow = replace(times, draft=replace(times.draft, catch_up_s=1e-3))
    none = cycle(slow, Acceptance.constant(0.0)).draft_s
    half = cycle(slow, Acceptance.constant(0.5)).draft_s
    every = cycle(slow, Acceptance.constant(1.0)).draft_s
    assert every - none == pytest.approx(1e-3)
    assert half - none == pytest.approx(1e-3 / 16)


def test_the_cost_of_a_cycle_is_the_sum_of_its_parts(pair):
    outcome = cycle(cycle_times(*pair, 8.0, 2048.0, 5.0, overhead_s=2e-3), Acceptance.constant(0.7))
    parts = (outcome.draft_s, outcome.verify_s, outcome.overhead_s)
    assert outcome.cycle_cost == pytest.approx(sum(part / outcome.target_step_s for part in parts))
    assert outcome.overhead_s == 2e-3


def test_the_verify_width_is_one_more_than_the_draft(pair):
    outcome = cycle(cycle_times(*pair, 1.0, 1024.0, np.arange(0.0, 6.0)), Acceptance.constant(0.5))
    assert np.asarray(outcome.verify_width).tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("overhead_s", [0.0, 3e-3])
def test_at_the_break_even_acceptance_the_speedup_is_one(pair, overhead_s):
    batches, lengths = np.array([[1.0], [32.0], [200.0]]), np.arange(1.0, 9.0)
    times = cycle_times(*pair, batches, 1024.0, lengths, overhead_s=overhead_s)
    needed = cycle_break_even_acceptance(times)
    assert needed.shape == (3, 8)
    assert np.isfinite(needed).all()
    at = np.asarray(cycle(times, Acceptance.constant(needed)).speedup)
    assert at == pytest.approx(np.ones((3, 8)), abs=1e-12)
    below = np.asarray(cycle(times, Acceptance.constant(np.maximum(needed - 1e-3, 0.0))).speedup)
    assert (below < 1.0).all()


def test_where_no_acceptance_pays_the_break_even_is_not_a_number(pair):
    times = cycle_times(*pair, 1.0, 1024.0, np.array([1.0, 8.0]), overhead_s=50e-3)
    never = np.isnan(cycle_break_even_acceptance(times))
    assert never[0]
    best = np.asarray(cycle(times, Acceptance.constant(1.0)).speedup)
    assert (never == (best < 1.0)).all()


def test_arrays_give_what_points_give(pair):
    batches = np.array([1.0, 7.0, 64.0])[:, None, None, None]
    contexts = np.array([0.0, 512.0, 4096.0])[None, :, None, None]
    lengths = np.array([0.0, 1.0, 5.0])[None, None, :, None]
    alphas = np.array([0.0, 0.6, 1.0])[None, None, None, :]
    whole = cycle(cycle_times(*pair, batches, contexts, lengths), Acceptance.constant(alphas))
    grid = np.broadcast_to(whole.speedup, (3, 3, 3, 3))
    for index in np.ndindex(grid.shape):
        b, s, g, a = (
            axis.flat[i] for axis, i in zip((batches, contexts, lengths, alphas), index, strict=True)
        )
        one = cycle(cycle_times(*pair, float(b), float(s), float(g)), Acceptance.constant(float(a)))
        assert grid[index] == pytest.approx(float(one.speedup), rel=1e-12)


def test_a_draft_of_its_own_target_never_pays_beyond_its_tokens():
    target, drafter = served("a100-sxm-80gb", TARGET, TARGET)
    outcome = cycle(cycle_times(target, drafter, 1.0, 1024.0, 4.0), Acceptance.constant(1.0))
    assert outcome.cost_ratio == pytest.approx(1.0, rel=0.01)
    assert outcome.speedup < 1.0
