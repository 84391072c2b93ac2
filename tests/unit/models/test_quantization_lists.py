"""Exclusion lists decide the real size: names, globs and regexes, spelt as checkpoints spell them."""

from __future__ import annotations

import pytest

from rooflines.errors import ConfigError
from rooflines.models.quantization import Patterns, read_quantization

QUERY = "model.layers.3.self_attn.q_proj"


def covers(entry, path, plain="components"):
    return Patterns.read([entry], "ignore", plain).match(path)


MATCHES = [
    # plain names: a module, what contains it, and a run of whole components
    ("model.layers.3.self_attn.q_proj", QUERY),
    ("model.layers.3.self_attn", QUERY),
    ("model.layers.3", QUERY),
    ("self_attn", QUERY),
    ("q_proj", QUERY),
    ("layers.3.", QUERY),
    ("gate", "model.layers.3.block_sparse_moe.gate"),
    ("lm_head", "lm_head"),
    # the way to the language model is spelt in several ways
    ("model.language_model.layers.3.self_attn.q_proj", QUERY),
    ("language_model.model.layers.3.self_attn.q_proj", QUERY),
    ("model.layers.3.self_attn.q_proj", "model.language_model.layers.3.self_attn.q_proj"),
    ("language_model.lm_head", "lm_head"),
    ("transformer.h.3.attn", "transformer.h.3.attn.c_attn"),
    # globs
    ("model.layers.*.self_attn", QUERY),
    ("model.language_model.layers.3.self_attn*", QUERY),
    ("*.self_attn.*", QUERY),
    ("*self_attn*", QUERY),
    ("*lm_head*", "lm_head"),
    ("model.layers.?.self_attn", QUERY),
    ("mtp*", "mtp.layers.0.mlp.down_proj"),
    ("*.mlp.shared_expert.*", "model.layers.7.mlp.shared_expert.down_proj"),
    # regexes match from the beginning
    ("re:.*self_attn.*", QUERY),
    ("re:model\\.layers\\.\\d+\\.self_attn.*", QUERY),
    ("re:model\\.language_model\\.layers\\.3\\.self_attn.*", QUERY),
    ("re:.*lm_head", "lm_head"),
    ("re:^lm_head$", "lm_head"),
    ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.gate_proj"),
    ("re:.*layers\\.(3|4)\\..*", QUERY),
]
MISSES = [
    ("gate", "model.layers.3.mlp.gate_proj"),
    ("q_pro", QUERY),
    ("model.layers.33", QUERY),
    ("model.layers.3", "model.layers.33.self_attn.q_proj"),
    ("shared_expert", "model.layers.3.mlp.shared_experts.down_proj"),
    ("model.layers.1.self_attn*", "model.layers.11.self_attn.q_proj"),
    ("model.layers.?.self_attn", "model.layers.13.self_attn.q_proj"),
    ("*.mlp.shared_expert.*", "model.layers.7.mlp.shared_expert_gate"),
    ("visual*", QUERY),
    ("model.vision_tower*", QUERY),
    ("re:self_attn", QUERY),
    ("re:layers.*", QUERY),
    ("re:.*q_proj$", "model.layers.3.self_attn.kq_proj_norm"),
    ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.5.mlp.experts.0.gate_proj"),
    ("re:.*layers\\.(3|4)\\..*", "model.layers.13.self_attn.q_proj"),
    ("re:.*layers\\..\\..*", "model.layers.13.self_attn.q_proj"),
]


@pytest.mark.parametrize(("entry", "path"), MATCHES)
def test_covered(entry, path):
    assert covers(entry, path)


@pytest.mark.parametrize(("entry", "path"), MISSES)
def test_not_covered(entry, path):
    assert not covers(entry, path)


def test_the_same_regex_tells_short_from_long_layer_numbers():
    patterns = Patterns.read(["re:.*layers\\..\\.mlp.*"], "ignore")
    assert patterns.match("model.layers.4.mlp.up_proj")
    assert not patterns.match("model.layers.14.mlp.up_proj")
    assert patterns.match("model.layers.5.mlp.up_proj")


def test_awq_lists_are_substrings():
    for entry, path in [
        ("layers.0.", "model.layers.0.mlp.up_proj"),
        ("self_attn", QUERY),
        ("mlp.gate", "model.layers.3.mlp.gate"),
        ("visual", "model.visual.blocks.0.mlp"),
        ("shared_expert", "model.layers.3.mlp.shared_experts.up_proj"),
    ]:
        assert covers(entry, path, "substrings"), entry
    assert not covers("layers.0.", "model.layers.10.mlp.up_proj", "substrings")


@pytest.mark.parametrize("entry", ["re:(", "re:*", "re:[a"])
def test_a_broken_regex_is_refused_by_name(entry):
    with pytest.raises(ConfigError, match=r"ignore: .* is no valid regular expression"):
        Patterns.read([entry], "ignore")


# https://github.com/ai-dynamo/aiconfigurator/issues/1396: bf16 layers named in `ignore` were counted as FP4.
# The whole kind: every way to write the list, under every key that holds one.
def _nvfp4(ignore):
    group = {
        "targets": ["Linear"],
        "weights": {"num_bits": 4, "type": "float", "group_size": 16},
        "input_activations": {"num_bits": 4, "type": "float", "group_size": 16},
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {"group_0": group},
        "ignore": ignore,
    }


WAYS = [
    _nvfp4(["lm_head", "re:.*self_attn.*"]),
    _nvfp4(["lm_head", "*self_attn*"]),
    _nvfp4(["lm_head", "model.layers.3.self_attn.q_proj"]),
    {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.3.self_attn*"]},
    {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head", "*.self_attn.*"]},
    {"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "self_attn"]},
    {"quant_method": "fp8", "ignored_layers": ["lm_head", "model.layers.3.self_attn.q_proj"]},
    {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.3.self_attn.q_proj"]},
    {"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["self_attn"]},
    {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"-:.*self_attn.*": {}}},
    {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 128,
        "modules_in_block_to_quantize": [["mlp.up_proj", "mlp.down_proj"]],
    },
    {"quant_method": "auto-round", "bits": 4, "group_size": 128, "extra_config": {QUERY: {"bits": 16}}},
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": ["self_attn", "lm_head"]},
    {"quant_method": "exl3", "bits": 4.0, "modules_to_not_convert": ["self_attn"]},
]


@pytest.mark.parametrize("block", WAYS, ids=[f"{b['quant_method']}-{i}" for i, b in enumerate(WAYS)])
def test_listed_layers_keep_16_bits_and_the_others_do_not(block):
    found = read_quantization({"quantization_config": block})
    assert found.format_of(QUERY) is None
    assert found.format_of("model.layers.3.mlp.down_proj") is not None
    assert found.format_of("lm_head") is None


def test_exceptions_may_have_numbers_of_their_own():
    dynamic = {"+:.*down_proj": {"bits": 8, "group_size": 32}}
    gptq = read_quantization(
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": dynamic}}
    )
    assert gptq.format_of("model.layers.3.mlp.down_proj") == "int8-g32"
    assert gptq.format_of("model.layers.3.mlp.up_proj") == "int4-g128"
    extra = {"model.layers.3.mlp.down_proj": {"bits": 8}}
    rounded = read_quantization(
        {
            "quantization_config": {
                "quant_method": "auto-round",
                "bits": 4,
                "group_size": 64,
                "extra_config": extra,
            }
        }
    )
    assert rounded.format_of("model.layers.3.mlp.down_proj") == "int8-g64"


def test_experts_of_one_layer_in_different_formats_are_refused():
    expert = "model.layers.3.mlp.experts.0.down_proj"
    some = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.3.mlp.experts.5.down_proj"]}
    found = read_quantization({"quantization_config": some})
    with pytest.raises(ConfigError, match="different formats"):
        found.format_of(expert, copies=8)
    assert found.format_of(expert, copies=5) == "fp8"
    assert found.format_of("model.layers.4.mlp.experts.0.down_proj", copies=8) == "fp8"


def test_experts_that_are_all_listed_are_all_kept():
    names = [f"model.layers.3.mlp.experts.{index}.down_proj" for index in range(8)]
    block = {"quant_method": "fp8", "modules_to_not_convert": names}
    found = read_quantization({"quantization_config": block})
    assert found.format_of("model.layers.3.mlp.experts.0.down_proj", copies=8) is None
