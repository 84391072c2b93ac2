from __future__ import annotations

import math

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.models.readers import read_model
from rooflines.serving.engine import Engine, step_curve
from rooflines.serving.host import AT_ONCE, Host, launch_floor_s
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.steady import open_state
from rooflines.serving.workload import Workload
from rooflines.studies.serve import make_deployment, make_machine


def test_a_bare_host_adds_nothing():
    assert AT_ONCE.arrival_wait_s(5.0, 10e-3) == 0.0
    assert AT_ONCE.answer_wait_s(5.0, 10e-3, 40e-3) == 40e-3


def test_what_a_host_adds_by_hand():
    assert Host(request_s=3e-3).arrival_wait_s(5.0, 10e-3) == pytest.approx(3e-3)
    # It looks every 31 steps: an arrival waits for 15 of them on average.
    assert Host(poll_steps=31.0).arrival_wait_s(5.0, 10e-3) == pytest.approx(150e-3)
    assert Host(poll_steps=31.0).answer_wait_s(5.0, 10e-3, 10e-3) == pytest.approx(160e-3)
    # A request that is back before the step has ended waits for the step alone.
    assert Host(request_s=3e-3).answer_wait_s(5.0, 10e-3, 10e-3) == pytest.approx(10e-3)
    assert Host(request_s=30e-3).answer_wait_s(5.0, 10e-3, 10e-3) == pytest.approx(35e-3)


@pytest.mark.parametrize("rate", [0.5, 5.0, 50.0])
def test_gathering_by_random_arrivals(rate):
    """The first prompt starts a timer of 20 steps of 10 ms; all that arrive meanwhile are taken with it."""
    generator = np.random.default_rng(0)
    arrivals = np.cumsum(generator.exponential(1.0 / rate, 40_000))
    waits, until = [], -1.0
    for arrival in arrivals:
        if arrival > until:
            until = arrival + 0.2
        waits.append(until - arrival)
    held = Host(gather_steps=20.0).arrival_wait_s(rate, 10e-3)
    assert held == pytest.approx(np.mean(waits), rel=0.02)


@pytest.mark.parametrize(
    "wrong",
    [{"request_s": -1.0}, {"poll_steps": 0.0}, {"gather_steps": math.inf}, {"launch_s": math.nan}],
)
def test_impossible_hosts_are_refused(wrong):
    with pytest.raises(InputError, match="none may be negative"):
        Host(**wrong)


def test_launching_a_layer_with_experts_takes_thrice_a_dense_one():
    assert launch_floor_s(read_model("qwen3-4b")) == pytest.approx(16.6e-3)
    deepseek = launch_floor_s(read_model("deepseek-r1"))
    # Three of the 61 layers have no experts.
    assert deepseek == pytest.approx(82.6e-3, rel=0.05)
    assert deepseek < 82.6e-3


def test_steps_with_prompts_take_as_long_as_launching_them(linear_curve):
    curve = linear_curve(host=Host(launch_s=40e-3))
    shared = curve.launched(4)
    batch = 16
    # Four prompts of 10 ms and a step of 9 ms are longer than 40 ms; one of them is not.
    assert shared.extra_s[batch] == pytest.approx(10e-3)
    assert curve.launched().extra_s[batch] == pytest.approx(40e-3 - float(curve.step_s[batch]))
    assert shared.host.launch_s == 0.0
    assert shared.launched() is shared
    long = linear_curve(chunks=3.0, share=3.0, host=Host(launch_s=40e-3)).launched(4)
    assert long.extra_s[batch] == pytest.approx(3.0 * (40e-3 - float(curve.step_s[batch])))


def test_arrivals_wait_for_the_host(linear_curve):
    plain, hosted = (
        open_state(linear_curve(host=host), 100.0, 5.0) for host in (AT_ONCE, Host(request_s=7e-3))
    )
    assert hosted.ttft_s - plain.ttft_s == pytest.approx(7e-3)
    assert hosted.ttft_quantile_s(0.95) - plain.ttft_quantile_s(0.95) == pytest.approx(7e-3)
    assert hosted.tpot_s == plain.tpot_s


def test_an_engine_hands_its_host_to_its_curve():
    target = make_deployment("qwen3-4b", make_machine("h100-sxm5-80gb"))
    workload = Workload.independent(parse_lengths("128", "prompt"), parse_lengths("64", "output"))
    host = Host(launch_s=16.6e-3)
    assert step_curve(Engine(target, max_sequences=4, host=host), workload).host is host
    apart = Engine(target, max_sequences=4, host=host, prefill_apart=True)
    assert not step_curve(apart, workload).launched().extra_s.any()
