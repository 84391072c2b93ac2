"""Formats of whole models: every layer, the head, drafting layers, and names of modules by family."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.dtypes import number_format
from rooflines.errors import UnsupportedArchitectureError
from rooflines.models.adapters import FAMILIES
from rooflines.models.catalogue import list_presets
from rooflines.models.formats import quantised, remade
from rooflines.models.matrix import Matrix
from rooflines.models.module_names import module_names
from rooflines.models.quantization import Patterns, Quantization, Rule
from rooflines.models.readers import read_config, read_model

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MOE = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "head_dim": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False}


def test_bytes_of_a_quantised_model_term_by_term():
    spec = read_config({**LLAMA, "quantization_config": GPTQ}, "m")
    shapes = [(64, 64), (32, 64), (32, 64), (64, 64), (128, 64), (128, 64), (64, 128)]
    packed = sum(o * i // 2 + o * (i // 32) * 2 + o * (i // 32) // 2 for o, i in shapes)
    norms = 12 * 2 * 64 + 64
    assert spec.weight_bytes == 12 * packed + 2 * (norms + 2 * 256 * 64)


def test_a_tied_head_keeps_the_embeddings_format():
    block = {"quant_algo": "FP8"}
    tied = read_config({**LLAMA, "tie_word_embeddings": True, "quantization_config": block}, "m")
    own = read_config({**LLAMA, "quantization_config": block}, "m")
    assert dict(tied.formats) == {}
    assert dict(own.formats) == {"head": "fp8"}
    assert own.weight_bytes - tied.weight_bytes == 256 * 64 + 4


def test_equal_layers_stay_one_group():
    block = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0", "model.layers.11.mlp"]}
    spec = read_config({**LLAMA, "quantization_config": block}, "m")
    assert [count for _, count in spec.layer_groups] == [1, 10, 1]
    assert spec.layers[0].formats == ()
    assert {name for name, _ in spec.layers[11].formats} == {"query", "key", "value", "output"}


def test_what_was_computed_before_does_not_stay():
    spec = read_config(LLAMA, "m")
    before = spec.weight_bytes
    assert spec.layer_groups
    after = quantised(spec, Quantization("test", default="fp8"))
    assert after.weight_bytes < before
    assert spec.weight_bytes == before
    assert remade(after, name="other").name == "other"


def test_routers_keep_the_models_dtype_and_experts_do_not():
    spec = read_config({**MOE, "quantization_config": GPTQ}, "m")
    formats = dict(spec.layers[0].formats)
    assert "router" not in formats
    assert formats["expert_down"] == "int4-g32"


def test_drafting_layers_are_listed_after_the_model_or_apart():
    config = {
        **LLAMA,
        "model_type": "glm4_moe",
        "head_dim": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 1,
    }
    plain = {"quant_method": "fp8"}
    assert read_config({**config, "quantization_config": plain}, "m").mtp[0].layers[0].formats
    for listed in ("model.layers.12", "mtp"):
        block = {**plain, "modules_to_not_convert": [listed]}
        spec = read_config({**config, "quantization_config": block}, "m")
        assert spec.mtp[0].layers[0].formats == ()
        assert spec.layers[11].formats != ()


ENTRIES = st.sampled_from(
    [
        "lm_head",
        "self_attn",
        "q_proj",
        "model.layers.1",
        "model.layers.1.mlp.down_proj",
        "model.layers.11.self_attn",
        "model.layers.1*",
        "model.layers.10.mlp*",
        "model.layers.*.mlp",
        "*down_proj",
        "mtp.layers.0*",
        "re:.*self_attn.*",
        "re:.*layers\\.(2|3)\\..*",
        "re:.*layers\\..\\.mlp.*",
        "re:.*layers\\.1\\..*q_proj",
    ]
)


@settings(max_examples=200, deadline=None)
@given(first=st.lists(ENTRIES, max_size=4), second=st.lists(ENTRIES, max_size=4))
def test_every_layer_gets_what_the_lists_say_of_it(first, second):
    rules = (Rule(Patterns.read(first, "a"), None), Rule(Patterns.read(second, "b"), "mxfp4"))
    quantization = Quantization("test", rules, default="fp8")
    spec = quantised(read_config(LLAMA, "m"), quantization)
    for index, layer in enumerate(spec.layers):
        expected = {
            matrix.name: quantization.format_of(*module_names("llama", index, layer, matrix.name))
            for matrix in layer.matrices(spec.hidden)
        }
        assert dict(layer.formats) == {name: storage for name, storage in expected.items() if storage}


NAMES = [
    ("llama", "query", "model.layers.7.self_attn.q_proj"),
    ("llama", "gate", "model.layers.7.mlp.gate_proj"),
    ("phi3", "key", "model.layers.7.self_attn.qkv_proj"),
    ("mixtral", "expert_down", "model.layers.7.block_sparse_moe.experts.0.w2"),
    ("qwen3_moe", "expert_up", "model.layers.7.mlp.experts.0.up_proj"),
    ("deepseek_v3", "latent_down", "model.layers.7.self_attn.kv_a_proj_with_mqa"),
    ("deepseek_v3", "shared_gate", "model.layers.7.mlp.shared_experts.gate_proj"),
    ("qwen3_5_moe", "shared_gate", "model.layers.7.mlp.shared_expert.gate_proj"),
    ("qwen3_next", "delta_beta", "model.layers.7.linear_attn.in_proj_ba"),
    ("qwen3_5", "delta_qkv", "model.layers.7.linear_attn.in_proj_qkv"),
    ("nemotron_h", "mamba_in", "backbone.layers.7.mixer.in_proj"),
    ("nemotron_h", "expert_up", "backbone.layers.7.mixer.experts.0.up_proj"),
    ("llama4_text", "shared_up", "model.layers.7.feed_forward.shared_expert.up_proj"),
    ("gpt_neox", "value", "gpt_neox.layers.7.attention.query_key_value"),
    ("opt", "up", "model.decoder.layers.7.fc1"),
    ("gpt2", "down", "transformer.h.7.mlp.c_proj"),
    ("falcon", "output", "transformer.h.7.self_attention.dense"),
    ("chatglm", "query", "transformer.encoder.layers.7.self_attention.query_key_value"),
]


@pytest.mark.parametrize(("family", "matrix", "path"), NAMES)
def test_modules_behind_matrices(family, matrix, path):
    assert path in module_names(family, 7, read_config(LLAMA, "m").layers[0], matrix)
    assert family in FAMILIES


def test_a_matrix_whose_module_is_not_known_is_refused():
    spec = read_config(LLAMA, "m")
    odd = remade(spec.layers[0], extras=(Matrix("oddity", 8, 8),))
    with pytest.raises(UnsupportedArchitectureError, match="the module of the matrix 'oddity'"):
        quantised(remade(spec, layers=(odd,)), Quantization("test", default="fp8"))


def test_every_matrix_of_every_preset_has_a_module():
    for name in list_presets():
        spec = read_model(name)
        found = quantised(spec, Quantization("test", default="mxfp4", default_reaches_head=True))
        stacks = [*found.layers, *found.encoder, *(layer for module in found.mtp for layer in module.layers)]
        for layer in stacks:
            left = {m.name for m in layer.matrices(spec.hidden)} - {matrix for matrix, _ in layer.formats}
            # Routers and index weights are never meant by "all linear layers".
            assert left <= {"router", "shared_expert_gate", "index_weight"}, name
        assert ("head", "mxfp4") in found.formats or spec.tied_embeddings


def test_an_encoder_and_projections_outside_the_layers_are_quantised_too():
    t5 = read_model("t5-v1_1-base")
    whole = quantised(t5, Quantization("test", default="nf4"))
    assert dict(whole.encoder[0].formats)["up"] == "nf4"
    listed = Rule(Patterns.read(["encoder"], "a"), None)
    decoder = quantised(t5, Quantization("test", (listed,), default="nf4"))
    assert decoder.encoder[0].formats == ()
    assert dict(decoder.layers[0].formats)["cross_key"] == "nf4"


def test_every_format_that_is_set_is_known():
    for block in (
        GPTQ,
        {"quant_method": "fp8", "weight_block_size": [128, 64]},
        {"quant_algo": "W4A16_NVFP4"},
    ):
        spec = read_config({**MOE, "quantization_config": block}, "m")
        for layer in spec.layers:
            for _, storage in layer.formats:
                assert number_format(storage).name == storage
