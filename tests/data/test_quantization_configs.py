"""Quantised checkpoints of the reference configs: which matrices, how many scales, how many bytes."""

from __future__ import annotations

import json

import pytest

from rooflines.models.quantization import read_quantization
from rooflines.models.readers import read_config

BESIDE = ".hf_quant_config.json"


def load(configs, name):
    config = json.loads((configs / f"{name}.json").read_text())
    beside = configs / f"{name}{BESIDE}"
    return config, json.loads(beside.read_text()) if beside.exists() else None


def model(configs, name):
    config, beside = load(configs, name)
    return read_config(config, name, beside)


# Hugging Face's element counts hold the scales. What the explanation column of params.csv leaves open is a
# term here: vision towers, and the correction bias (256 numbers) of the multi-token-prediction layer.
ELEMENTS = {
    "Qwen--Qwen3-8B-FP8": 0,
    "deepseek-ai--DeepSeek-V3": 256,
    "deepseek-ai--DeepSeek-R1": 256,
    "deepseek-ai--DeepSeek-V3.2": 256,
    "zai-org--GLM-5-FP8": 256,
    "MiniMaxAI--MiniMax-M2.5": 0,
    "openai--gpt-oss-120b": 0,
    "openai--gpt-oss-20b": 0,
    "moonshotai--Kimi-K2-Instruct": 3_416,  # left unexplained in params.csv too
    # The vision tower of Llama-4 has 871,932,416 parameters (column meta_vision).
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct-FP8": 871_932_416,
}


@pytest.mark.parametrize(("name", "rest"), ELEMENTS.items())
def test_scales_complete_the_published_element_count(configs, params, count_scales, name, rest):
    spec = model(configs, name)
    drafting = sum(count_scales(module.layers, spec.hidden) for module in spec.mtp)
    counted = spec.parameters_total + spec.parameters_mtp + spec.buffers
    counted += count_scales(spec.layers, spec.hidden) + drafting
    assert int(params[name]["hf_safetensors_total"]) - counted == rest


def test_kimi_k25_has_one_scale_per_32_expert_weights(configs, count_scales):
    spec = model(configs, "moonshotai--Kimi-K2.5")
    assert count_scales(spec.layers, spec.hidden) == 31_708_938_240  # column explanation of params.csv
    quantised = {name for layer in spec.layers for name, _ in layer.formats}
    assert quantised == {"expert_gate", "expert_up", "expert_down"}


EXPERTS = {"expert_gate", "expert_up", "expert_down"}
ATTENTION = {"query", "key", "value", "output"}
MLP = {"gate", "up", "down"}
FORMATS = {
    "openai--gpt-oss-120b": {"mxfp4": EXPERTS},
    "moonshotai--Kimi-K2.5": {"int4-g32-sym": EXPERTS},
    "MiniMaxAI--MiniMax-M2.5": {"fp8-block": EXPERTS | ATTENTION},
    "Qwen--Qwen3-32B-FP8-Static-PerTensor": {"fp8": MLP | ATTENTION},
    "nvidia--Llama-3.1-70B-Instruct-FP8": {"fp8": MLP | ATTENTION},
    "mistralai--Devstral-Small-2-24B-Instruct": {"fp8": MLP | ATTENTION},
    "nvidia--Gemma-4-31B-IT-NVFP4": {"nvfp4": MLP},
    "nvidia--Qwen3.5-397B-A17B-NVFP4": {"nvfp4": EXPERTS},
    "nvidia--Qwen3.6-27B-NVFP4": {"nvfp4@bf16": MLP, "fp8": ATTENTION | {"delta_qkv", "delta_gate"}},
    "meta-llama--Meta-Llama-3.1-405B-Instruct-FP8": {"fp8-channel": MLP | ATTENTION},
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct-FP8": {"fp8-channel-s16": EXPERTS},
    "zai-org--GLM-5-FP8": {
        "fp8-block": EXPERTS
        | MLP
        | {"shared_gate", "shared_up", "shared_down", "output", "index_query", "index_key"}
        | {"query_down", "query_up", "latent_down", "latent_up"}
    },
}


@pytest.mark.parametrize(("name", "expected"), FORMATS.items())
def test_which_matrices_are_stored_how(configs, name, expected):
    found = {}
    for layer in model(configs, name).layers:
        for matrix, storage in layer.formats:
            found.setdefault(storage, set()).add(matrix)
    assert found == expected


def test_the_405b_keeps_what_its_list_names(configs):
    spec = model(configs, "meta-llama--Meta-Llama-3.1-405B-Instruct-FP8")
    assert spec.layers[0].formats == ()
    assert {name for name, _ in spec.layers[125].formats} == ATTENTION
    assert {name for name, _ in spec.layers[1].formats} == ATTENTION | MLP
    kept = spec.layers[0].parameters(spec.hidden) + sum(
        matrix.elements for matrix in spec.layers[125].matrices(spec.hidden) if matrix.name in MLP
    )
    h, kv, ffn = 16_384, 1_024, 53_248
    linear = 126 * (2 * h * h + 2 * h * kv + 3 * h * ffn)
    eight_bits = linear - (kept - 2 * h)
    rows = 4 * (125 * (2 * h + 2 * kv) + 124 * (2 * ffn + h))
    assert spec.weight_bytes == 2 * (spec.parameters_total - eight_bits) + eight_bits + rows


def test_mixed_precision_reaches_the_head_it_lists(configs):
    spec = model(configs, "nvidia--Qwen3.6-27B-NVFP4")
    assert dict(spec.formats) == {"head": "nvfp4@bf16"}
    assert dict(spec.layers[0].formats)["output"] == "fp8"
    assert "delta_beta" not in dict(spec.layers[0].formats)


KV = {
    "Qwen--Qwen3-32B-FP8-Static-PerTensor": "fp8",
    "nvidia--Llama-3.1-70B-Instruct-FP8": "fp8",
    "nvidia--Gemma-4-31B-IT-NVFP4": "fp8",
    "nvidia--Qwen3.5-397B-A17B-NVFP4": "fp8",
    "nvidia--Qwen3.6-27B-NVFP4": "fp8",
    "Qwen--Qwen3-8B-FP8": None,
    "openai--gpt-oss-120b": None,
    "moonshotai--Kimi-K2.5": None,
}


@pytest.mark.parametrize(("name", "kv"), KV.items())
def test_the_kv_cache_has_a_format_of_its_own(configs, name, kv):
    spec = model(configs, name)
    assert spec.kv_dtype == kv
    per_token = spec.kv_elements_per_token * (1 if kv else 2)
    assert spec.kv_bytes_per_token() == per_token


def test_a_checkpoint_without_its_list_says_what_was_assumed(configs):
    spec = model(configs, "meta-llama--Llama-4-Maverick-17B-128E-Instruct-FP8")
    assert any("no ignore list" in line for line in spec.assumed)


def test_every_block_is_read(configs):
    methods = {}
    for path in sorted(configs.glob("*.json")):
        if path.name.endswith(BESIDE):
            continue
        config, beside = load(configs, path.stem)
        found = read_quantization(config, beside)
        if found is not None:
            methods.setdefault(found.method, set()).add(path.stem)
    assert {method: len(names) for method, names in methods.items()} == {
        "awq": 1,
        "compressed-tensors": 3,
        "fbgemm_fp8": 1,
        "fp8": 11,
        "gptq": 1,
        "modelopt": 5,
        "mxfp4": 2,
    }


def test_bare_blocks(configs):
    awq, _ = load(configs, "quant-block--QuantTrio--Qwen3.6-35B-A3B-AWQ")
    found = read_quantization(awq)
    expert = "model.language_model.layers.3.mlp.experts.0.down_proj"
    assert found.format_of(expert, copies=256) == "int4-g128"
    for kept in (
        "model.language_model.layers.3.self_attn.q_proj",
        "model.language_model.layers.4.linear_attn.in_proj_qkv",
        "model.language_model.layers.3.mlp.shared_expert.down_proj",
        "model.language_model.layers.3.mlp.gate",
        "model.language_model.layers.0.mlp.experts.0.down_proj",
        "mtp.layers.0.mlp.experts.0.down_proj",
        "lm_head",
    ):
        assert found.format_of(kept) is None, kept
    assert found.format_of("model.language_model.layers.10.mlp.experts.0.up_proj") == "int4-g128"
    gptq, _ = load(configs, "quant-block--TheBloke--Llama-2-7B-Chat-GPTQ")
    assert read_quantization(gptq).format_of("model.layers.0.self_attn.q_proj") == "int4-g128-act"
