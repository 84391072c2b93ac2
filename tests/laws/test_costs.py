"""Laws of costs, over every kind of layer."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.costs.cost import Cost
from rooflines.costs.pairs import Reach, attention_pairs
from rooflines.costs.passes import decode_pass, forward_pass, prefill_pass, verify_pass
from rooflines.costs.routing import IndependentRouting, distinct_experts
from rooflines.costs.setting import Parallelism, Precision, Shape
from rooflines.costs.storage import kv_cache_bytes, weight_bytes
from rooflines.models.readers import read_model

# GQA, windows beside full attention, MoE, latent, sparse latent, recurrent beside attention, state spaces.
NAMES = (
    "llama-3.1-8b",
    "gemma-3-12b",
    "gpt-oss-20b",
    "deepseek-v3",
    "deepseek-v3.2",
    "qwen3-next-80b-a3b",
    "nvidia-nemotron-3-super-120b-a12b",
    "jamba-v0.1",
    "llama-4-scout-17b-16e",
)
MODELS = {name: read_model(name) for name in NAMES}
DENSE = ("llama-3.1-8b", "gemma-3-12b", "qwen3.5-27b", "opt-6.7b")
models = st.sampled_from(NAMES)
batches = st.integers(1, 512).map(float)
widths = st.integers(1, 32).map(float)
contexts = st.integers(0, 100_000).map(float)


@given(models, batches, contexts)
def test_verify_of_one_position_is_a_decode(name, batch, context):
    model = MODELS[name]
    assert verify_pass(model, batch, context, 1.0).operators == decode_pass(model, batch, context).operators


@given(st.sampled_from(DENSE), batches, contexts, widths)
def test_verify_moves_weights_and_cached_positions_once(name, batch, context, width):
    model = read_model(name)
    decode, verify = decode_pass(model, batch, context).cost, verify_pass(model, batch, context, width).cost
    assert verify.weight_bytes == decode.weight_bytes
    appended = batch * (width - 1) * model.kv_elements_per_token * 2
    assert verify.kv_bytes - decode.kv_bytes == pytest.approx(appended, rel=1e-9, abs=1.0)


@given(models, batches, contexts, st.integers(1, 31).map(float))
def test_more_positions_never_cost_less(name, batch, context, width):
    model = MODELS[name]
    less, more = (verify_pass(model, batch, context, n).cost for n in (width, width + 1))
    for field in fields(Cost):
        assert getattr(more, field.name) >= getattr(less, field.name) * (1 - 1e-12), field.name


@given(models, st.integers(1, 5))
def test_a_pass_over_arrays_equals_passes_over_points(name, seed):
    model, random = MODELS[name], np.random.default_rng(seed)
    batch = random.integers(1, 99, (3, 1)).astype(float)
    width = random.integers(1, 9, (1, 4)).astype(float)
    context = random.integers(0, 9999, (3, 4)).astype(float)
    whole = verify_pass(model, batch, context, width).cost
    for row in range(3):
        for column in range(4):
            point = (float(batch[row, 0]), float(context[row, column]), float(width[0, column]))
            one = verify_pass(model, *point).cost
            for field in fields(Cost):
                values = np.broadcast_to(getattr(whole, field.name), (3, 4))
                assert values[row, column] == pytest.approx(getattr(one, field.name), rel=1e-12)


def test_arrays_stay_as_small_as_their_axes():
    """A grid of 100 batches by 100 lengths by 100 contexts is not spread out where an axis has no effect."""
    batch, width, context = (np.ones(shape) for shape in ((100, 1, 1), (1, 100, 1), (1, 1, 100)))
    grid = verify_pass(MODELS["llama-3.1-8b"], batch, context, width)
    linears = [operator for operator in grid.operators if operator.kind == "linear"]
    assert {np.size(operator.cost.matmul_flops) for operator in linears} == {100 * 100}
    assert {np.size(operator.cost.weight_bytes) for operator in linears} == {1}


@given(st.sampled_from(("llama-3.1-8b", "gpt-oss-20b", "deepseek-v3")), st.sampled_from((2, 4, 8)), widths)
def test_tensor_parallelism_divides_products(name, ranks, width):
    model, shape = MODELS[name], Shape(4.0, width, 1000.0, width)
    one = forward_pass(model, shape, "verify").operators
    many = forward_pass(model, shape, "verify", parallelism=Parallelism(ranks)).operators
    shared = {op.name: op.cost.matmul_flops for op in many}
    for operator in one:
        # Routers and the projections into latents are whole on every device; vocabularies are padded.
        if operator.name not in ("router", "latent projections", "head", "attention gate"):
            assert shared[operator.name] * ranks == pytest.approx(operator.cost.matmul_flops), operator.name
    latents = sum(op.cost.kv_bytes * op.count for op in one)
    whole = sum(op.cost.kv_bytes * op.count for op in many)
    assert whole == pytest.approx(latents if name == "deepseek-v3" else latents / ranks)
    assert sum(op.cost.network_bytes for op in many) > 0 == sum(op.cost.network_bytes for op in one)


@given(
    st.sampled_from(((8, 2), (128, 8), (256, 8), (4, 4))),
    batches,
    widths,
    st.floats(0, 3),
    st.floats(0, 1),
)
def test_distinct_experts_lie_between_k_and_all(sizes, batch, width, skew, correlation):
    found = distinct_experts(IndependentRouting(skew, correlation), *sizes, batch, width)
    uniform = distinct_experts(IndependentRouting(), *sizes, batch, width)
    slack = 1e-9 * sizes[0]
    assert sizes[1] - slack <= found <= min(sizes[0], batch * width * sizes[1]) + slack
    assert found <= uniform + slack


@given(st.integers(0, 60), st.integers(1, 40), st.integers(1, 30))
def test_pairs_equal_a_walk_over_queries(context, new_tokens, limit):
    shape = Shape(1.0, float(new_tokens), float(context))
    ends = range(context + 1, context + new_tokens + 1)  # positions up to each query, itself included
    assert attention_pairs(shape) == sum(ends)
    assert attention_pairs(shape, Reach(window=limit)) == sum(min(end, limit) for end in ends)
    assert attention_pairs(shape, Reach(top_k=limit)) == sum(min(end, limit) for end in ends)
    assert attention_pairs(shape, Reach(chunk=limit)) == sum((end - 1) % limit + 1 for end in ends)
    assert attention_pairs(shape, Reach(causal=False)) == new_tokens * (context + new_tokens)


@given(st.integers(1, 20), contexts)
def test_a_chain_is_a_tree_of_depths(width, context):
    """A tree without branches has node depths 1..n; siblings see less than a chain of as many nodes."""
    model, n = MODELS["llama-3.1-8b"], float(width)
    chain = verify_pass(model, 2.0, context, n).cost
    assert verify_pass(model, 2.0, context, n, ancestors=n * (n + 1) / 2).cost == chain
    star = verify_pass(model, 2.0, context, n, ancestors=1 + 2 * (n - 1)).cost
    assert star.matmul_flops <= chain.matmul_flops
    assert star.kv_bytes == chain.kv_bytes


@given(st.sampled_from(("qwen3-next-80b-a3b", "jamba-v0.1")), batches, widths)
def test_states_are_read_once_and_kept_per_position(name, batch, width):
    model = MODELS[name]
    states = batch * model.state_bytes
    assert verify_pass(model, batch, 100.0, width).cost.state_bytes == pytest.approx((1 + width) * states)
    assert prefill_pass(model, batch, 50.0).cost.state_bytes == pytest.approx(2 * states)


@given(st.sampled_from(("mixtral-8x7b-v0.1", "qwen3-coder-480b-a35b")), st.sampled_from((2, 4, 8)))
def test_expert_parallelism_stores_a_share_of_the_experts(name, degree):
    model = read_model(name)
    one, many = (weight_bytes(model, parallelism=Parallelism(expert=e)) for e in (1, degree))
    block = model.layers[0].feed_forwards[0]
    experts = len(model.layers) * block.experts * 3 * model.hidden * block.width * 2
    assert one - many == pytest.approx(experts * (1 - 1 / degree))


@given(models, contexts)
def test_a_smaller_format_stores_and_moves_less(name, context):
    model, small = MODELS[name], Precision(weights="int4-g128", kv="fp8")
    assert weight_bytes(model, small) < weight_bytes(model, Precision(weights="bf16"))
    assert kv_cache_bytes(model, 1.0, context + 1, small) * 2 == kv_cache_bytes(model, 1.0, context + 1)
