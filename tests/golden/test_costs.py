"""Costs against published and worked-out numbers; integers of the torch oracle are frozen here."""

from __future__ import annotations

import pytest

from rooflines.costs.passes import decode_pass, forward_pass, verify_pass
from rooflines.costs.routing import IndependentRouting, distinct_experts
from rooflines.costs.setting import Parallelism, Precision, Shape
from rooflines.costs.storage import kv_cache_bytes, state_bytes, weight_bytes
from rooflines.models.catalogue import list_presets
from rooflines.models.readers import read_model

# Equal to FlopCounterMode of torch 2.13.0 over transformers 5.23.0 (tests/oracles/test_flops_transformers.py).
FROZEN = (
    ("llama-3.1-8b", (1, 64, 0), 962_743_762_944),
    ("llama-3.1-8b", (2, 5, 64), 150_454_927_360),
    ("deepseek-v3", (1, 64, 0), 4_708_416_618_496),
)


@pytest.mark.parametrize(("name", "point", "flops"), FROZEN)
def test_frozen_counts(name, point, flops):
    batch, new_tokens, context = map(float, point)
    shape = Shape(batch, new_tokens, context, new_tokens, mask="dense")
    assert forward_pass(read_model(name), shape, "prefill").cost.matmul_flops == flops


def test_expanding_a_latent_cache_costs_what_transformers_spends():
    """2 S r H (d_n + d_v) a layer: 130,996,502,528 at S = 64 on DeepSeek-V3 (oracle), which absorption saves."""
    model = read_model("deepseek-v3")
    shape = Shape(1.0, 1.0, 64.0, mask="dense")
    expanded = forward_pass(model, shape, "prefill").cost.matmul_flops
    absorbed = forward_pass(model, shape, "decode").cost.matmul_flops
    # Attention itself: 2 H (2 r + d_r) P absorbed against 2 H (d_n + d_r + d_v) P.
    dearer = 61 * 2 * 128 * ((2 * 512 + 64) - (128 + 64 + 128)) * 65
    assert expanded - absorbed == 130_996_502_528 - dearer


def test_decode_of_llama_2_7b_reads_its_weights_without_the_embedding():
    """6,738,415,616 parameters, 131,072,000 of them the embedding; KV 512 KiB a token."""
    cost = decode_pass(read_model("llama-2-7b"), 1.0, 1024.0).cost
    assert cost.weight_bytes == 2 * (6_738_415_616 - 131_072_000)
    assert cost.kv_bytes == 1025 * 512 * 1024


def test_latent_attention_has_the_intensity_of_its_paper_form():
    """242 FLOP a byte of cache at n = 1 on DeepSeek-V3: 278,528 FLOP over 1,152 bytes a position."""
    (core,) = [
        op
        for op in decode_pass(read_model("deepseek-v3"), 1.0, 4095.0).operators
        if op.name == "latent attention"
    ]
    assert core.cost.matmul_flops == 278_528 * 4096
    assert core.cost.kv_bytes == 1_152 * 4096


# Distinct experts of uniform tokens, to a tenth (N = 1, 2, 4, 5, 8, 16, 32, 64).
DISTINCT = {
    (8, 2): (2, 3.5, 5.5, 6.1, 7.2, 7.9, 8, 8),
    (32, 4): (4, 7.5, 13.2, 15.6, 21.0, 28.2, 31.6, 32),
    (128, 8): (8, 15.5, 29.1, 35.3, 51.6, 82.4, 111.8, 125.9),
    (256, 8): (8, 15.8, 30.5, 37.6, 57.4, 102.0, 163.3, 222.4),
    (384, 8): (8, 15.8, 31.0, 38.4, 59.5, 109.8, 188.2, 284.2),
    (512, 10): (10, 19.8, 38.8, 48.1, 74.7, 138.6, 239.6, 367.1),
}
# Monte Carlo of Gumbel top-8 of 256 with weights 1 / rank^a at N = 4, 8, 16, 32, 64.
SKEWED = {
    0.5: (29.8, 54.4, 93.6, 148.6, 205.0),
    1.0: (25.0, 42.3, 68.3, 105.4, 152.0),
    1.2: (22.5, 36.5, 57.9, 88.5, 128.0),
}


@pytest.mark.parametrize(("sizes", "expected"), DISTINCT.items())
def test_distinct_experts_of_uniform_tokens(sizes, expected):
    tokens = (1, 2, 4, 5, 8, 16, 32, 64)
    found = [distinct_experts(IndependentRouting(), *sizes, float(n), 1.0) for n in tokens]
    assert found == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize(("skew", "expected"), SKEWED.items())
def test_distinct_experts_of_skewed_tokens(skew, expected):
    routing = IndependentRouting(skew=skew)
    found = [distinct_experts(routing, 256, 8, float(n), 1.0) for n in (4, 8, 16, 32, 64)]
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("name", list_presets())
def test_stored_bytes_equal_the_checkpoint(name):
    """One device, no format chosen: what the model says, for weights, caches and states of every preset."""
    model = read_model(name)
    positions = 64.0 if model.encoder else None
    cross = (
        model.cross_kv_elements_per_encoder_position
        * 64
        * model.kv_bytes_per_token()
        / max(model.kv_elements_per_token, 1)
    )
    assert weight_bytes(model) == model.weight_bytes
    assert kv_cache_bytes(model, 1.0, 5000.0, encoder_positions=positions) == model.kv_bytes(5000) + cross
    assert state_bytes(model, 3.0) == 3 * model.state_bytes


def test_fp8_cache_of_the_checkpoint_is_respected():
    model = read_model("llama-3.1-8b").model_copy(update={"kv_dtype": "fp8"})
    default, forced = (
        kv_cache_bytes(model, 1.0, 100.0, precision) for precision in (Precision(), Precision(kv="bf16"))
    )
    assert (default, forced) == (100 * 65_536, 100 * 131_072)


def test_expert_parallelism_uses_all_experts_and_all_tokens():
    """vLLM pull request 54228: a chance of k / E of the whole model, not of one device's share of experts."""
    model = read_model("qwen3-coder-480b-a35b")
    block = model.layers[0].feed_forwards[0]
    wide = verify_pass(model, 1.0, 1000.0, 4.0, parallelism=Parallelism(expert=8))
    (experts,) = [op for op in wide.operators if op.name == "routed experts"]
    hit = block.experts * (1 - (1 - block.experts_per_token / block.experts) ** 32)
    one = 3 * model.hidden * block.width * 2
    assert experts.cost.weight_bytes == pytest.approx(hit / 8 * one)
    sent = [op.cost.network_bytes for op in wide.operators if op.name.startswith("expert ")]
    assert sent == [4 * block.experts_per_token * model.hidden * 2 * 7 / 8] * 2
