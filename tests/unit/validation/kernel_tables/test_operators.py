"""Rows are described by the same FLOPs and bytes as the costs of a model's pass."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.costs.passes import decode_pass, prefill_pass
from rooflines.costs.setting import Parallelism, Precision
from rooflines.models.readers import read_model
from rooflines.validation.kernel_tables import read_kernel_table, take
from rooflines.validation.kernel_tables.collective import all_reduces
from rooflines.validation.kernel_tables.linear import PRODUCTS, layer_products, products
from rooflines.validation.kernel_tables.moe import distinct, power_law_loads
from rooflines.validation.kernel_tables.names import format_of


def same(ours, theirs, *names):
    for name in names:
        assert np.asarray(getattr(ours.cost, name)).ravel()[0] == pytest.approx(
            np.asarray(getattr(theirs.cost, name)).ravel()[0]
        ), name


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "nvfp4", "int4-g128"])
def test_a_product_costs_what_it_costs_in_a_model(dtype):
    model = read_model("llama-3-8b")
    theirs = {
        op.name: op for op in decode_pass(model, 16.0, 100.0, precision=Precision(weights=dtype)).operators
    }
    down = products(np.array([16.0]), np.array([4096.0]), np.array([14336.0]), format_of(dtype))
    same(down, theirs["down projection"], "matmul_flops", "weight_bytes", "activation_bytes")
    assert down.arithmetic == theirs["down projection"].arithmetic
    assert down.storage == theirs["down projection"].storage


def test_a_layer_is_that_of_the_model_on_one_device():
    found = layer_products("Llama-3-70B tp8", np.array([4.0]), format_of("bfloat16"))
    assert tuple(op.name for op in found) == PRODUCTS
    qkv, _, up, down = found
    assert qkv.cost.weight_bytes == 2 * 8192 * (64 + 2 * 8) * 128 / 8
    assert up.cost.weight_bytes == 2 * 2 * 8192 * 28672 / 8
    assert down.cost.matmul_flops == pytest.approx(2 * 4 * 8192 * 28672 / 8)
    assert layer_products("Mixtral-8x7B tp1", np.array([4.0]), format_of("bfloat16")) is None
    assert layer_products("a layer", np.array([4.0]), format_of("bfloat16")) is None


def read_rows(tmp_path, text):
    file = tmp_path / "rows.csv"
    file.write_text(text, encoding="utf-8")
    (rows,) = read_kernel_table(file).groups
    return rows


def test_decode_attention_costs_what_it_costs_in_a_model(tmp_path):
    rows = read_rows(
        tmp_path,
        "gpu,engine,engine_version,batch,q_heads,kv_heads,head_dim,context_tokens,kv_cache_dtype,time_us\n"
        "h100_sxm,vllm,1,64,32,8,128,8192,fp8,400\n",
    )
    # The table counts the new token among the context.
    model = decode_pass(read_model("llama-3-8b"), 64.0, 8191.0, precision=Precision(kv="fp8"))
    theirs = next(op for op in model.operators if op.kind == "decode_attention")
    same(rows.operators[0], theirs, "matmul_flops", "kv_bytes", "activation_bytes", "vector_flops")
    assert rows.operators[0].query_rows[0] == theirs.query_rows
    assert rows.operators[0].storage == theirs.storage


def test_prefill_attention_costs_what_it_costs_in_a_model(tmp_path):
    rows = read_rows(
        tmp_path,
        "gpu,engine,engine_version,batch,q_heads,kv_heads,head_dim,query_tokens,kv_cache_dtype,time_us\n"
        "h100_sxm,vllm,1,2,32,8,128,4096,bfloat16,900\n",
    )
    theirs = next(
        op
        for op in prefill_pass(read_model("llama-3-8b"), 2.0, 4096.0, 0.0).operators
        if op.kind == "prefill_attention"
    )
    same(rows.operators[0], theirs, "matmul_flops", "kv_bytes", "activation_bytes")


def test_experts_cost_what_they_cost_in_a_model(tmp_path):
    rows = read_rows(
        tmp_path,
        "gpu,engine,engine_version,moe_dtype,num_tokens,hidden_size,expert_ffn_size,top_k,num_experts,distribution,time_us\n"
        "h100_sxm,vllm,1,bfloat16,3,4096,14336,2,8,uniform,1200\n",
    )
    theirs = next(
        op for op in decode_pass(read_model("mixtral-8x7b"), 3.0, 10.0).operators if op.kind == "moe"
    )
    same(rows.operators[0], theirs, "matmul_flops", "weight_bytes", "activation_bytes")
    assert rows.operators[0].rows[0] == pytest.approx(theirs.rows)


def test_an_all_reduce_costs_what_it_costs_in_a_model():
    model = read_model("llama-3-70b")
    theirs = next(
        op
        for op in decode_pass(model, 16.0, 10.0, parallelism=Parallelism(tensor=4)).operators
        if op.kind == "collective"
    )
    same(all_reduces(np.array([16 * 8192 * 2.0]), 4), theirs, "network_bytes")
    assert theirs.ranks == 4


@pytest.mark.parametrize(
    ("tokens", "experts", "per_token"), [(1, 8, 2), (16, 128, 8), (64, 256, 8), (8192, 128, 4)]
)
def test_power_law_loads_are_a_choice_of_experts(tokens, experts, per_token):
    loads = np.array(power_law_loads(tokens, experts, per_token, 1.2))
    assert loads.sum() == tokens * per_token
    assert loads.min() >= 0
    assert loads.max() <= tokens  # a token takes an expert once
    hit = distinct("power_law_1.2", tokens, experts, per_token)
    assert min(per_token, experts) <= hit <= distinct("balanced", tokens, experts, per_token)


def levelled_one_by_one(tokens, experts, per_token, alpha):
    """AIConfigurator's loop: each round gives or takes one assignment an expert, the extreme ones first."""
    assigned = tokens * per_token
    lower, upper = (1.0, max(tokens * 0.8, 1.0)) if assigned > experts else (0.01, 2.0)
    bend = 1.0 - alpha
    quantile = (np.arange(experts) + 0.5) / experts
    drawn = ((upper**bend - lower**bend) * quantile + lower**bend) ** (1.0 / bend)
    loads = np.minimum(np.round(drawn / drawn.sum() * assigned), tokens).astype(int)
    while missing := assigned - int(loads.sum()):
        order = np.argsort(loads, kind="stable")
        chosen = (order if missing > 0 else order[::-1])[: min(abs(missing), experts)]
        loads[chosen] += 1 if missing > 0 else -1
        loads = np.clip(loads, 0, tokens)
    return loads


@pytest.mark.parametrize("alpha", [0.3, 1.2, 3.0])
@pytest.mark.parametrize("shape", [(1, 8, 2), (7, 16, 15), (3000, 16, 8), (4096, 64, 60)])
def test_loads_are_levelled_as_in_rounds_of_one(shape, alpha):
    assert list(power_law_loads(*shape, alpha)) == levelled_one_by_one(*shape, alpha).tolist()


def test_loads_of_very_many_tokens_take_no_longer():
    """Rounds of one would be 10^8 of them."""
    assert sum(power_law_loads(10**11, 256, 200, 3.0)) == 200 * 10**11


def test_loads_are_skewed_and_less_so_for_a_gentler_law():
    steep, gentle = (np.array(power_law_loads(512, 64, 4, alpha)) for alpha in (2.0, 0.2))
    assert np.sort(steep)[-6:].sum() > 2 * np.sort(gentle)[-6:].sum()


@pytest.mark.parametrize("name", ["zipf", "power_law_", "power_law_x", "power_law_1"])
def test_distributions_that_are_not_known_have_no_experts(name):
    assert distinct(name, 4, 8, 2) is None


def test_taking_rows_keeps_what_they_share():
    operator = products(np.array([1.0, 2.0, 3.0]), np.full(3, 512.0), np.full(3, 512.0), format_of("bf16"))
    some = take(operator, np.array([True, False, True]))
    assert some.rows.tolist() == [1.0, 3.0]
    assert some.cost.matmul_flops.tolist() == [2 * 512 * 512, 6 * 512 * 512]
    assert some.cost.kernels == 1.0
