from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rooflines.costs.storage import kv_cache_bytes
from rooflines.serving.engine import Engine
from rooflines.serving.fleet import make_fleet
from rooflines.serving.goodput import Objective
from rooflines.serving.host import Host
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.workload import Workload
from rooflines.studies.serve import make_deployment, make_machine

PROMISE = Objective(tpot_s=20e-3, ttft_s=0.5)


@pytest.fixture(scope="module")
def workload():
    return Workload.independent(parse_lengths("2048", "p"), parse_lengths("256", "o"))


@pytest.fixture(scope="module")
def engine():
    return Engine(make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook")))


@pytest.fixture(scope="module")
def together(engine, workload):
    return make_fleet(engine, workload)


@pytest.fixture(scope="module")
def apart(engine, workload):
    return make_fleet(engine, workload, 50e9)


def test_a_load_is_spread_evenly(together):
    engines = together.needed(40.0, PROMISE)
    assert engines == (math.floor(40.0 / together.goodput_per_s(PROMISE)) + 1, 0)
    load = together.under(40.0, engines, PROMISE)
    assert load.state.rate_per_s == pytest.approx(40.0 / engines[0])
    assert PROMISE.kept_by(load.state)
    assert load.ttft_s == load.state.ttft_s
    fewer = together.under(40.0, (engines[0] - 1, 0), PROMISE)
    assert fewer is None or not PROMISE.kept_by(fewer.state)


def test_apart_the_steps_carry_no_prompts(together, apart):
    rate = 0.5 * together.saturation_per_s
    beside, alone = together.under(rate, (1, 0), PROMISE), apart.under(rate, (1, 1), PROMISE)
    assert alone.state.tpot_s < beside.state.tpot_s
    assert alone.state.gap_quantile_s(0.99) < beside.state.gap_quantile_s(0.99)


def test_the_cache_is_sent_over_the_link(engine, apart):
    model = engine.target.model
    assert apart.pool.transfer_s == pytest.approx(float(kv_cache_bytes(model, 1.0, 2048.0)) / 50e9)
    prompt = float(engine.target.prefill(1.0, 2048.0).seconds)
    assert apart.pool.saturation_per_s == pytest.approx(1 / prompt)
    assert apart.pool.ttft_s(1e-6) == pytest.approx(prompt + apart.pool.transfer_s, rel=1e-4)


def test_pools_are_sized_apart(apart):
    decode, prefill = apart.needed(100.0, PROMISE)
    assert decode == math.floor(100.0 / apart.goodput_per_s(PROMISE)) + 1
    assert prefill == math.floor(100.0 / apart.prefill_goodput_per_s(PROMISE)) + 1
    load = apart.under(100.0, (decode, prefill), PROMISE)
    assert load.ttft_quantile_s <= PROMISE.ttft_s
    assert PROMISE.kept_by_tpot(load.state)
    assert apart.cards((decode, prefill)) == decode + prefill


def test_an_overloaded_pool_is_said_to_be(apart):
    rate = 1.01 * apart.pool.saturation_per_s
    assert apart.under(rate, (10, 1), PROMISE) is None
    assert math.isinf(apart.pool.ttft_s(rate))
    assert math.isinf(apart.pool.ttft_quantile_s(rate, 0.95))


def test_a_promise_nobody_keeps_needs_no_number_of_engines(together, apart):
    hopeless = Objective(tpot_s=1e-6)
    assert together.needed(1.0, hopeless) is None
    assert math.isinf(together.cards_per_request_per_s(hopeless))
    assert apart.needed(1.0, Objective(ttft_s=1e-6)) is None


def test_experts_spread_over_devices_are_added_together(workload):
    target = make_deployment("gpt-oss-20b", make_machine("h100-sxm5-80gb", "textbook"), expert=4)
    fleet = make_fleet(Engine(target, max_sequences=64), workload)
    assert fleet.cards_per_engine == 1
    engines = fleet.needed(1.0, PROMISE)
    assert engines == (4, 0)
    assert fleet.cards(engines) == 4


@pytest.mark.parametrize("link", [None, 50e9])
def test_the_hosts_own_time_comes_before_the_first_token_and_nowhere_else(engine, workload, link):
    bare = make_fleet(engine, workload, link)
    hosted = make_fleet(replace(engine, host=Host(request_s=7e-3)), workload, link)
    rate, engines = 0.5 * bare.saturation_per_s, (1, 0 if link is None else 1)
    one, other = (fleet.under(rate, engines, PROMISE) for fleet in (bare, hosted))
    assert other.ttft_s - one.ttft_s == pytest.approx(7e-3)
    assert other.ttft_quantile_s - one.ttft_quantile_s == pytest.approx(7e-3)
    assert other.state.tpot_s == one.state.tpot_s
    assert hosted.saturation_per_s == bare.saturation_per_s
