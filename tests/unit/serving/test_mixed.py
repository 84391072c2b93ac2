from __future__ import annotations

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator, Pass
from rooflines.serving.mixed import chunk_extra_s, expert_exchange
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.roofline import pass_time


@pytest.fixture(scope="module")
def machine():
    return make_machine("h100-sxm5-80gb", "textbook")


@pytest.fixture(scope="module")
def served(machine):
    return make_deployment("llama-3.1-8b", machine)


def linear(flops, weights, name="projection"):
    return Operator(name, "linear", Cost(matmul_flops=flops, weight_bytes=weights, kernels=1.0), 2)


def test_weights_are_read_once_and_work_adds(machine):
    peak, bandwidth = machine.profile.peak_flop_per_s("bf16"), machine.profile.bandwidth_bytes_per_s
    step = pass_time(Pass("decode", (linear(1e9, 1e9),)), machine)
    small = pass_time(Pass("prefill", (linear(2e9, 1e9),)), machine)
    # Both together are still bound by the weights: the chunk rides along for nothing.
    assert chunk_extra_s(step, small, machine) == pytest.approx(0.0, abs=1e-12)
    large = pass_time(Pass("prefill", (linear(1e13, 1e9),)), machine)
    assert chunk_extra_s(step, large, machine) == pytest.approx(2 * ((1e13 + 1e9) / peak - 1e9 / bandwidth))


def test_attention_runs_as_two_kernels(machine):
    def attention(kind):
        return Operator("attention", kind, Cost(kv_bytes=1e9), 2)

    step = pass_time(Pass("decode", (attention("decode_attention"),)), machine)
    chunk = pass_time(Pass("prefill", (attention("prefill_attention"),)), machine)
    assert chunk_extra_s(step, chunk, machine) == pytest.approx(float(chunk.seconds))


def test_layers_of_one_name_are_counted_together(machine):
    step = pass_time(Pass("decode", (linear(1e9, 1e9), linear(1e9, 3e9))), machine)
    chunk = pass_time(Pass("prefill", (linear(1e13, 1e9), linear(1e13, 3e9))), machine)
    peak, bandwidth = machine.profile.peak_flop_per_s("bf16"), machine.profile.bandwidth_bytes_per_s
    assert chunk_extra_s(step, chunk, machine) == pytest.approx(4 * ((1e13 + 1e9) / peak - 2e9 / bandwidth))


@pytest.mark.parametrize("calibration", ["textbook", "none"])
@pytest.mark.parametrize("batch", [1.0, 16.0, 256.0])
def test_a_chunk_adds_less_than_its_own_pass_and_more_than_its_arithmetic(calibration, batch):
    machine = make_machine("h100-sxm5-80gb", calibration)
    served = make_deployment("llama-3.1-8b", machine)
    step, chunk = served.decode(batch, 1000.0), served.prefill(1.0, np.array([64.0, 512.0, 4096.0]))
    extra = chunk_extra_s(step, chunk, machine)
    assert np.all(extra <= chunk.seconds)
    assert np.all(np.diff(extra) > 0)
    arithmetic = chunk.cost.matmul_flops / machine.profile.peak_flop_per_s("bf16")
    assert extra[-1] > 0.9 * arithmetic[-1]


def test_a_model_without_experts_exchanges_nothing(served):
    assert expert_exchange(served, served.decode(8.0, 100.0), 8.0) is None


def test_the_exchange_of_experts_has_two_regimes():
    served = make_deployment("deepseek-r1", make_machine("h200-sxm-141gb", "none"), expert=8)
    decode = expert_exchange(served, served.decode(4.0, 1000.0), 4.0)
    prefill = expert_exchange(served, served.prefill(1.0, 8192.0), 8192.0)
    assert decode.tokens == 4 * 8
    assert prefill.tokens == 8192 * 8
    assert (decode.bound, prefill.bound) == ("latency", "bandwidth")
    assert prefill.seconds > 10 * decode.seconds
    assert 0 < decode.share < 1
