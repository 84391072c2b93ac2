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
    assert len(found) + sum(one.rows for one in left) == len(rows)
    return found


@pytest.mark.slow
def test_throughput_per_card(predicted):
    assert len(predicted) > 800
    assert overall(predicted).throughput_median_abs_error <= 0.10
    assert overall(predicted).ttft_median_abs_error <= 0.50


@pytest.mark.slow
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
    assert verdict.ttft_median_abs_error <= 0.20
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
