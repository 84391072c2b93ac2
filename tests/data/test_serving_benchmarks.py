"""Serving benchmarks (AIConfigurator's silicon_sample.csv) against predictions that were not fitted to them."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.studies.serve import make_machine
from rooflines.validation.serving import order_of, overall, predict_serving
from rooflines.validation.serving_tables import read_serving


@pytest.fixture(scope="module")
def predicted(reference_data):
    rows = read_serving(reference_data / "silicon" / "e2e_tpot_ttft.csv")
    found, left = predict_serving(
        rows, lambda device: make_machine(device, "auto"), lambda device: make_machine(device, "textbook")
    )
    assert len(found) + len(left) == len(rows)
    return found


@pytest.mark.slow
def test_throughput_per_card(predicted):
    assert len(predicted) > 800
    assert overall(predicted).throughput_median_abs_error <= 0.10
    # Without what the benchmarks' commands say it was 0.43.
    assert overall(predicted).ttft_median_abs_error <= 0.27


@pytest.mark.slow
@pytest.mark.slow
def test_intervals_hold_nine_of_ten_rows(predicted):
    """With the hosts of published commands known; waits are surer than where nothing is known of them."""
    total = overall(predicted)
    assert 0.87 <= total.tpot_coverage <= 0.95
    assert 0.90 <= total.ttft_coverage <= 0.98


def test_the_order_of_configurations(predicted):
    order = order_of(predicted)
    assert order.pairs > 10_000
    assert order.share >= 0.9


@pytest.mark.slow
def test_time_per_token_of_vllm_in_fp8(predicted):
    chosen = [
        one
        for one in predicted
        if one.row.texts["backend"] == "vllm"
        and one.served.model.name == "llama-3.1-70b"
        and one.row.texts["gemm_quant_mode"] == "fp8"
    ]
    assert len(chosen) >= 100
    verdict = overall(chosen)
    assert verdict.tpot_median_abs_error <= 0.11
    assert verdict.tpot_p90_abs_error <= 0.20
    # Clients start all requests together; without that wave the times would be 47 % too short.
    assert verdict.ttft_median_abs_error <= 0.15
    # The plain roofline is off by half.
    assert verdict.plain_tpot_median_abs_error > 0.4


@pytest.mark.slow
def test_the_memory_bounds_the_batch_as_measured(predicted):
    """Two H100 hold some 24 sequences of 8192 + 1024 tokens beside 70 GB of weights: more requests wait."""
    chosen = {
        one.served.sequences: one
        for one in predicted
        if one.served.model.name == "llama-3.1-70b"
        and one.served.device == "h100-sxm5-80gb"
        and one.served.parallelism.tensor == 2
        and (one.served.prompt, one.served.output) == (8192, 1024)
    }
    waited = chosen[64.0]
    assert waited.row.ttft_s > 50.0
    assert waited.ttft_s == pytest.approx(waited.row.ttft_s, rel=0.35)
    ratio = np.array([chosen[64.0].tpot_s / chosen[32.0].tpot_s, waited.row.tpot_s / chosen[32.0].row.tpot_s])
    assert ratio == pytest.approx(1.0, abs=0.05)


def chosen_by(predicted, backend, origin, model=""):
    return [
        one
        for one in predicted
        if one.row.texts["backend"] == backend
        and origin in one.row.texts["origin_file"]
        and model in one.row.texts["model_path"]
    ]


@pytest.mark.slow
def test_prompts_first_and_equal_lengths_are_lockstep(predicted):
    """SGLang 0.5.1, which processes all prompts before it decodes: times grow with the requests at once."""
    chosen = chosen_by(predicted, "sglang", "0.5.1")
    assert len(chosen) == 27
    verdict = overall(chosen)
    assert verdict.ttft_median_abs_error <= 0.15
    assert verdict.tpot_median_abs_error <= 0.10
    many = [one for one in chosen if one.served.sequences == 128.0]
    assert min(one.row.ttft_s for one in many) > 2.0
    assert all(one.ttft_s == pytest.approx(one.row.ttft_s, rel=0.35) for one in many)


@pytest.mark.slow
def test_a_server_that_gathers_prompts_is_later_by_as_many_steps(predicted):
    """TensorRT-LLM with batch_wait_timeout_iters 20, beside the same servers that do not wait (longer outputs)."""
    by_run = {
        (
            one.served.device,
            one.served.weights,
            one.served.parallelism,
            one.served.sequences,
            one.served.output,
        ): one
        for one in chosen_by(predicted, "trtllm", "2026-", "Llama-3.1-70B")
        if one.served.prompt == 1024
    }
    waited = [
        (one, by_run[(*run[:-1], 8192)])
        for run, one in by_run.items()
        if one.served.settings.host.gather_steps
        and (*run[:-1], 8192) in by_run
        and one.served.sequences <= 64
    ]
    assert len(waited) >= 15
    measured = [(one.row.ttft_s - other.row.ttft_s) / one.row.tpot_s for one, other in waited]
    guessed = [(one.ttft_s - other.ttft_s) / one.tpot_s for one, other in waited]
    assert 12.0 < np.median(measured) < 20.0
    assert np.median(guessed) == pytest.approx(np.median(measured), rel=0.25)


@pytest.mark.slow
def test_equal_lengths_of_generated_deployments(predicted):
    """Qwen3-32B on vLLM and TensorRT-LLM: prompts that share a step stay together in every wave."""
    chosen = [
        *chosen_by(predicted, "vllm", "/Qwen_Qwen3-32B"),
        *chosen_by(predicted, "trtllm", "/Qwen_Qwen3-32B"),
    ]
    assert len(chosen) > 170
    assert overall(chosen).ttft_median_abs_error <= 0.25
