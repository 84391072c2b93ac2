"""Configs as transformers 5 saves them again, and lists with one entry a layer: read alike, or refused."""

from __future__ import annotations

import pytest

from rooflines.errors import ConfigError, UnsupportedArchitectureError
from rooflines.models.catalogue import load_preset
from rooflines.models.readers import read_model

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


def blocks(spec) -> list[str]:
    return [layer.feed_forwards[0].kind for layer in spec.layers]


def test_global_heads_of_gemma_4_may_be_listed_by_layer():
    config = dict(load_preset("gemma-4-26b-a4b"))
    level = dict(config.pop("text_config", config))
    size, kv_heads = level.pop("global_head_dim"), level.pop("num_global_key_value_heads")
    full = [index for index, kind in enumerate(level["layer_types"]) if kind == "full_attention"]
    listed = {f"{index:02d}": {"head_dim": size, "num_key_value_heads": kv_heads} for index in full}
    spec, usual = read_model({**level, "per_layer_config": listed}), read_model("gemma-4-26b-a4b")
    assert spec.parameters_total == usual.parameters_total
    assert spec.kv_elements(5000) == usual.kv_elements(5000)
    for change in ({"01": listed["05"]}, {"05": {**listed["05"], "head_dim": 128}}, {"05": {"width": 3}}):
        with pytest.raises(ConfigError, match="per_layer_config"):
            read_model({**level, "per_layer_config": {**listed, **change}})


def test_layers_that_all_have_an_indexer_may_be_listed():
    for preset in ("deepseek-v3.2", "glm-5"):
        config, usual = dict(load_preset(preset)), read_model(preset)
        kinds = ["indexed_attention"] * len(usual.layers)
        assert read_model({**config, "layer_types": kinds}).parameters_total == usual.parameters_total
        with pytest.raises(ConfigError, match="layer_types"):
            read_model({**config, "layer_types": ["full_attention", *kinds[1:]]})


def test_what_is_said_twice_must_agree():
    pattern = {
        "hybrid_layer_pattern": [0, 1, 1, 0],
        "layer_types": ["full_attention", *["sliding_attention"] * 3],
    }
    with pytest.raises(ConfigError, match="layer_types"):
        read_model({"model_type": "mimo_v2_flash", **SMALL, **pattern})
    bigcode = {
        "model_type": "gpt_bigcode",
        "n_embd": 64,
        "n_head": 4,
        "n_layer": 2,
        "n_positions": 128,
        "vocab_size": 100,
        "torch_dtype": "bfloat16",
    }
    one = read_model(bigcode | {"multi_query": True, "num_key_value_heads": 1})
    assert one.layers[0].mixer.kv_heads == 1
    with pytest.raises(ConfigError, match="num_key_value_heads"):
        read_model(bigcode | {"multi_query": False, "num_key_value_heads": 1})


def test_experts_of_hunyuan_are_listed_by_layer_and_have_one_width():
    listed = {"num_experts": 8, "moe_topk": [2, 1, 2, 2], "num_shared_expert": [1] * 4}
    spec = read_model({"model_type": "hunyuan_v1_moe", **SMALL, **listed, "moe_intermediate_size": [96] * 4})
    assert [layer.feed_forwards[0].experts_per_token for layer in spec.layers] == [2, 1, 2, 2]
    assert {layer.feed_forwards[0].shared_width for layer in spec.layers} == {96}
    for change in ({"moe_intermediate_size": [96, 96, 96, 64]}, {"num_shared_expert": 2}, {"use_cla": True}):
        with pytest.raises(UnsupportedArchitectureError, match=next(iter(change))):
            read_model({"model_type": "hunyuan_v1_moe", **SMALL, **listed, **change})


def test_layers_with_experts_of_k_exaone_are_listed():
    facts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_shared_experts": 1}
    config = {"model_type": "exaone_moe", **SMALL, **facts}
    listed = read_model(config | {"is_moe_layer": [False, True, False, True]})
    assert blocks(listed) == ["dense", "moe", "dense", "moe"]
    assert blocks(read_model(config | {"first_k_dense_replace": 1})) == ["dense", "moe", "moe", "moe"]
