from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.dtypes import number_format
from rooflines.errors import ConfigError, RooflinesError, UnknownNameError
from rooflines.models.quantization import read_quantization

DOWN = "model.layers.3.mlp.down_proj"
EXPERT = "model.layers.3.mlp.experts.0.down_proj"
ROUTER = "model.layers.3.mlp.gate"
QUERY = "model.layers.3.self_attn.q_proj"


def read(block, hf_quant_config=None, **config):
    return read_quantization({"quantization_config": block, **config}, hf_quant_config)


def weights(bits, kind, **more):
    return {"num_bits": bits, "type": kind, **more}


def compressed(group, fmt="float-quantized", **more):
    groups = {"group_0": {"targets": ["Linear"], **group}}
    return {"quant_method": "compressed-tensors", "format": fmt, "config_groups": groups, **more}


FP8_TOKEN = weights(8, "float", strategy="token", dynamic=True)
W = {"strategy": "group", "symmetric": True}

KINDS = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
    ({"quant_method": "fp8", "weight_block_size": [64, 32], "fmt": "e4m3"}, "fp8-block-64x32"),
    ({"quant_method": "fp8", "weight_block_size": None, "activation_scheme": "static"}, "fp8"),
    ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, "fp8-channel"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}, "int4-g128"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True}, "int4-g32-act"),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8-channel"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"}, "int4-g128-sym"),
    ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}, "int4-g64"),
    ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "zero_point": False}, "int4-g128-sym"),
    ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, "int4-g128"),
    ({"quant_method": "exl3", "bits": 3.5, "head_bits": 6}, "exl3-3.5"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4-double"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
    # ModelOpt, with and without the name of the method
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ({"quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 128}, "int4-g128-sym"),
    ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ", "group_size": 64}, "int4-g64-sym@fp8"),
    ({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "group_size": 16}, "nvfp4@bf16"),
    ({"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}, "fp8-channel"),
    ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "fp8-block"),
    ({"quant_method": "modelopt", "quant_algo": "MXFP8"}, "mxfp8"),
    # compressed-tensors: weights alone run at 16 bits, with 8-bit activations at 8
    (
        compressed({"weights": weights(8, "float", strategy="channel"), "input_activations": FP8_TOKEN}),
        "fp8-channel-s16",
    ),
    (
        compressed({"weights": weights(8, "float", strategy="tensor"), "input_activations": FP8_TOKEN}),
        "fp8-s16",
    ),
    (compressed({"weights": weights(8, "float", strategy="channel")}), "fp8-channel-s16@bf16"),
    (
        compressed(
            {
                "weights": weights(8, "float", strategy="block", block_structure=[128, 128]),
                "input_activations": FP8_TOKEN,
            }
        ),
        "fp8-block-128x128-s16",
    ),
    (compressed({"weights": weights(4, "int", group_size=32, **W)}, "pack-quantized"), "int4-g32-sym"),
    (
        compressed(
            {"weights": weights(4, "int", group_size=128, strategy="group", symmetric=False)},
            "pack-quantized",
        ),
        "int4-g128",
    ),
    (
        compressed({"weights": weights(4, "int", group_size=128, actorder="group", **W)}, "pack-quantized"),
        "int4-g128-sym-act",
    ),
    (
        compressed({"weights": weights(4, "int", group_size=128, actorder="weight", **W)}, "pack-quantized"),
        "int4-g128-sym",
    ),
    (
        compressed(
            {"weights": weights(4, "int", group_size=128, **W), "input_activations": FP8_TOKEN},
            "pack-quantized",
        ),
        "int4-g128-sym@fp8",
    ),
    (
        compressed(
            {"weights": weights(8, "int", strategy="channel"), "input_activations": weights(8, "int")},
            "int-quantized",
        ),
        "int8-channel-sym@int8",
    ),
    # a 4-bit integer that is not packed takes a byte all the same
    (compressed({"weights": weights(4, "int", strategy="channel")}, "int-quantized"), "int8-channel-sym"),
    (
        compressed(
            {
                "weights": weights(4, "float", group_size=16, strategy="tensor_group"),
                "input_activations": weights(4, "float", group_size=16),
            },
            "nvfp4-pack-quantized",
        ),
        "nvfp4",
    ),
    (
        compressed(
            {"weights": weights(4, "float", group_size=16, strategy="tensor_group")}, "nvfp4-pack-quantized"
        ),
        "nvfp4@bf16",
    ),
    (
        compressed({"weights": weights(4, "float", group_size=32, strategy="group")}, "mxfp4-pack-quantized"),
        "mxfp4",
    ),
    (
        compressed(
            {
                "weights": weights(4, "float", group_size=32, strategy="group"),
                "format": "mxfp4-pack-quantized",
            },
            "mixed-precision",
        ),
        "mxfp4",
    ),
    (compressed({"weights": weights(8, "float", strategy="channel")}, "dense"), None),
]


@pytest.mark.parametrize(("block", "storage"), KINDS, ids=[f"{b.get('quant_method')}-{s}" for b, s in KINDS])
def test_every_kind_names_the_format_of_a_linear_layer(block, storage):
    found = read(block)
    assert found.format_of(DOWN) == storage
    assert found.format_of(QUERY) == storage
    if storage is not None:
        assert number_format(storage).name == storage


@pytest.mark.parametrize(("block", "storage"), KINDS, ids=[f"{b.get('quant_method')}-{s}" for b, s in KINDS])
def test_routers_and_embeddings_are_never_linear_layers(block, storage):
    del storage
    for name in (
        ROUTER,
        "model.embed_tokens",
        "model.layers.3.mlp.shared_expert_gate",
        "model.layers.3.block_sparse_moe.gate",
    ):
        assert read(block).format_of(name) is None


def test_nothing_said_is_nothing_quantised():
    assert read_quantization({"hidden_size": 8}) is None
    assert read(None) is None


def test_heads_are_kept_where_recipes_keep_them_and_taken_where_the_list_would_have_to_name_them():
    kept = [
        {"quant_method": "fp8"},
        {"quant_method": "fbgemm_fp8"},
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {"quant_method": "awq", "bits": 4, "group_size": 128},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
    ]
    for block in kept:
        assert read(block).format_of("lm_head") is None, block
    assert read({"quant_method": "modelopt", "quant_algo": "NVFP4"}).format_of("lm_head") == "nvfp4"
    assert (
        read({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}).format_of("lm_head")
        is None
    )
    assert (
        read(compressed({"weights": weights(8, "float", strategy="tensor")})).format_of("lm_head")
        == "fp8-s16@bf16"
    )
    head = {"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}
    assert read(head).format_of("lm_head") == "int4-g128"
    assert read({"quant_method": "exl3", "bits": 2.5, "head_bits": 6}).format_of("lm_head") == "exl3-6"


def test_mxfp4_of_transformers_holds_for_routed_experts_alone():
    found = read({"quant_method": "mxfp4"})
    assert found.format_of(EXPERT) == "mxfp4"
    assert found.format_of(DOWN) is None
    assert found.format_of("model.layers.3.mlp.shared_experts.down_proj") is None


def test_expert_dtype_outside_the_block_holds_for_routed_experts():
    found = read({"quant_method": "fp8", "weight_block_size": [128, 128]}, expert_dtype="fp4")
    assert found.format_of(EXPERT) == "mxfp4@fp8"
    assert found.format_of("model.layers.3.mlp.shared_experts.down_proj") == "fp8-block"
    assert found.format_of(QUERY) == "fp8-block"
    alone = read_quantization({"expert_dtype": "fp4"})
    assert (alone.format_of(EXPERT), alone.format_of(QUERY)) == ("mxfp4@fp8", None)


@pytest.mark.parametrize("value", ["fp2", 4, ["fp4"]])
def test_unknown_expert_dtype_is_refused(value):
    with pytest.raises(ConfigError, match="expert_dtype is"):
        read({"quant_method": "fp8"}, expert_dtype=value)


def test_kv_cache_is_apart_from_weights():
    scheme = weights(8, "float", dynamic=False)
    assert read({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": scheme}).kv == "fp8"
    assert read({"quant_algo": "FP8", "kv_cache_scheme": "FP8"}).kv == "fp8"
    assert read({"quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}).kv == "int8"
    assert read({"quant_algo": "FP8", "kv_cache_quant_algo": None}).kv is None
    group = {"weights": weights(4, "int", group_size=128, **W)}
    assert read(compressed(group, "pack-quantized", kv_cache_scheme=scheme)).kv == "fp8"
    assert read(compressed(group, "pack-quantized", kv_cache_scheme=None)).kv is None
    assert read({"quant_method": "fp8"}).kv is None


def test_modelopt_file_beside_the_config():
    beside = {
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    }
    found = read_quantization({}, beside)
    assert (found.format_of(QUERY), found.format_of("lm_head"), found.kv) == ("fp8", None, "fp8")
    both = read({"quant_algo": "FP8", "ignore": ["lm_head"]}, beside)
    assert (both.format_of(QUERY), both.kv) == ("fp8", "fp8")


def test_modelopt_file_that_contradicts_the_config_is_refused():
    beside = {"quantization": {"quant_algo": "NVFP4"}}
    with pytest.raises(ConfigError, match="contradict"):
        read({"quant_algo": "FP8"}, beside)
    with pytest.raises(ConfigError, match="contradict"):
        read({"quant_method": "fp8"}, beside)


def test_mixed_precision_quantises_what_it_lists_and_nothing_else():
    layers = {
        "model.language_model.layers.3.mlp.down_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        "model.language_model.layers.3.self_attn.q_proj": {"quant_algo": "FP8"},
        "lm_head": {"quant_algo": "NVFP4"},
        "mtp.layers.0.mlp.down_proj": {"quant_algo": "FP8"},
    }
    block = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": layers,
        "ignore": ["mtp*"],
    }
    found = read(block)
    assert found.format_of(DOWN) == "nvfp4@bf16"
    assert found.format_of(QUERY) == "fp8"
    assert found.format_of("lm_head") == "nvfp4"
    assert found.format_of("model.layers.4.mlp.down_proj") is None
    assert found.format_of("mtp.layers.0.mlp.down_proj") is None


def test_groups_of_named_modules_go_before_the_class():
    groups = {
        "group_0": {"targets": ["Linear"], "weights": weights(8, "float", strategy="channel")},
        "group_1": {"targets": ["re:.*mlp.*down_proj"], "weights": weights(8, "float", strategy="tensor")},
        "group_2": {"targets": ["Linear"], "weights": None, "output_activations": FP8_TOKEN},
    }
    found = read({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": groups})
    assert found.format_of(DOWN) == "fp8-s16@bf16"
    assert found.format_of(QUERY) == "fp8-channel-s16@bf16"


def test_block_may_sit_at_the_top_or_with_the_text_model_or_both():
    block = {"quant_method": "fp8"}
    for config in (
        {"quantization_config": block},
        {"compression_config": block},
        {"text_config": {"quantization_config": block}},
        {"thinker_config": {"text_config": {"quantization_config": block}}},
        {"quantization_config": block, "text_config": {"quantization_config": dict(block)}},
    ):
        assert read_quantization(config).default == "fp8"
    assert read_quantization({"vision_config": {"quantization_config": block}}) is None


def test_two_blocks_that_differ_are_refused():
    config = {
        "quantization_config": {"quant_method": "fp8"},
        "text_config": {"quantization_config": {"quant_method": "mxfp4"}},
    }
    with pytest.raises(
        ConfigError, match=r"quantization_config and text_config.quantization_config contradict"
    ):
        read_quantization(config)


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
BAD = [
    ({"quant_method": "hqq"}, "unknown quant_method 'hqq'"),
    ({"quant_method": "quip#"}, "known: fp8"),
    ({"quant_method": 7}, "quant_method is 7"),
    ({}, "neither quant_method nor quant_algo"),
    ({"bits": 4}, "neither quant_method nor quant_algo"),
    ("fp8", "must be an object"),
    ({**GPTQ, "bits": None}, "bits is None: it must be a whole number from 2 to 8"),
    ({**GPTQ, "bits": "4"}, "bits is '4'"),
    ({**GPTQ, "bits": 16}, "bits is 16"),
    ({**GPTQ, "bits": True}, "bits is True"),
    ({**GPTQ, "group_size": 0}, "group_size is 0"),
    ({**GPTQ, "group_size": -2}, "group_size is -2"),
    ({**GPTQ, "group_size": 10**30}, "group_size is 1"),
    ({"quant_method": "gptq", "bits": 4}, "group_size is missing"),
    ({**GPTQ, "desc_act": "yes"}, "desc_act is 'yes': it must be true or false"),
    ({**GPTQ, "dynamic": {"-:(": {}}}, "no valid regular expression"),
    ({**GPTQ, "modules_in_block_to_quantize": [["a"], [3]]}, "modules_in_block_to_quantize"),
    ({"quant_method": "fp8", "fmt": "e9m9"}, "fmt is 'e9m9'"),
    ({"quant_method": "fp8", "weight_block_size": [128]}, "two whole numbers"),
    ({"quant_method": "fp8", "weight_block_size": [128, -128]}, "two whole numbers"),
    ({"quant_method": "fp8", "weight_block_size": [128.0, 128]}, "two whole numbers"),
    ({"quant_method": "fp8", "activation_scheme": "sometimes"}, "dynamic or static"),
    ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "a list of module names"),
    ({"quant_method": "fp8", "modules_to_not_convert": ["lm_head", None]}, "a list of module names"),
    ({"quant_method": "fp8", "modules_to_not_convert": [""]}, "empty module name"),
    ({"quant_method": "exl3", "bits": 12}, "a number from 1 to 8"),
    ({"quant_method": "exl3", "bits": float("nan")}, "a number from 1 to 8"),
    ({"quant_method": "bitsandbytes"}, "neither load_in_4bit nor load_in_8bit"),
    ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "data_type": "mx_fp"}, "data_type"),
    ({"quant_method": "modelopt"}, "quant_algo is missing"),
    ({"quant_algo": "FP9"}, "unknown quant_algo 'FP9'; did you mean 'FP8'"),
    ({"quant_algo": "NVFP4", "group_size": 32}, "group_size is 32: it must be 16 for NVFP4"),
    ({"quant_algo": "W4A16_AWQ"}, "group_size is missing"),
    ({"quant_algo": "MIXED_PRECISION"}, "quantized_layers is missing"),
    ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {}}, "quantized_layers is empty"),
    ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP3"}, "unknown KV cache format 'FP3'"),
    ({"quant_algo": "FP8", "kv_cache_scheme": weights(3, "int")}, "3-bit int keys and values"),
    (
        compressed({"weights": weights(4, "int", group_size=32, **W)}, "zip"),
        "unknown compressed-tensors format 'zip'",
    ),
    (compressed({"weights": weights(4, "int", group_size=32, **W)}, None), "format is None"),
    (
        compressed({"weights": weights(4, "int", group_size=32, **W)}, "mixed-precision"),
        "given for each group",
    ),
    (compressed({"targets": [], "weights": weights(8, "float")}), "targets is []"),
    (
        compressed({"targets": ["Embedding"], "weights": weights(8, "float")}),
        "unknown target class 'Embedding'",
    ),
    (compressed({"weights": weights(8, "complex")}), "unknown weight type 'complex'"),
    (compressed({"weights": weights(8, "float", strategy="token")}), "strategy is 'token'"),
    (compressed({"weights": weights(4, "float", group_size=64)}), "4-bit float weights in groups of 64"),
    (
        compressed({"weights": weights(8, "float"), "input_activations": weights(5, "int")}),
        "5-bit int activations",
    ),
    (compressed({"weights": weights(1, "int", strategy="channel")}, "pack-quantized"), "num_bits is 1"),
    (compressed({"weights": weights(4, "int", strategy="group")}, "pack-quantized"), "group_size is missing"),
    (
        compressed({"weights": weights(8, "float")}, sparsity_config={"format": "sparse-24-bitmask"}),
        "sparse storage",
    ),
    ({"quant_method": "compressed-tensors", "format": "dense"}, "config_groups is missing"),
]


@pytest.mark.parametrize(("block", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_blocks_are_refused_in_one_line_that_names_the_key(block, message):
    with pytest.raises(RooflinesError) as refused:
        read(block)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_defaults_are_refused():
    groups = {
        "group_0": {"targets": ["Linear"], "weights": weights(8, "float", strategy="channel")},
        "group_1": {"targets": ["Linear"], "weights": weights(8, "float", strategy="tensor")},
    }
    with pytest.raises(ConfigError, match="two groups target 'Linear'"):
        read({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": groups})


def test_modelopt_file_without_its_block_is_refused():
    with pytest.raises(ConfigError, match=r"hf_quant_config.json.quantization is missing"):
        read_quantization({}, {"producer": {"name": "modelopt"}})
    with pytest.raises(UnknownNameError):
        read_quantization({}, {"quantization": {"quant_algo": "FP7"}})


# Whatever a block holds, it is read or refused in one line: no traceback, no format that is not known.
KEYS = sorted({key for block, _ in KINDS for key in block} | {"modules_to_not_convert", "ignore", "dynamic"})
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=True),
        st.sampled_from(["", "FP8", "re:(", "*", "Linear", "float", "int", "pack-quantized", "-1", "é\n"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*KEYS, "weights", "targets", "x"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=1500, deadline=None)
@given(data=st.data(), kind=st.integers(0, len(KINDS) - 1), beside=st.booleans())
def test_mutated_blocks_are_read_or_refused(data, kind, beside):
    block = copy.deepcopy(KINDS[kind][0])
    for _ in range(data.draw(st.integers(1, 3))):
        place = block
        while True:
            key = data.draw(st.sampled_from([*place, *KEYS]))
            inner = place.get(key)
            if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
                break
            place = inner
        if data.draw(st.booleans()):
            place[key] = data.draw(JUNK)
        else:
            place.pop(key, None)
    try:
        found = read(block, {"quantization": {"quant_algo": "FP8"}} if beside else None)
    except RooflinesError as mistake:
        message = str(mistake)
    else:
        message = ""
    assert "\n" not in message
    if message:
        return
    for path in (DOWN, EXPERT, ROUTER, QUERY, "lm_head"):
        storage = found.format_of(path)
        assert storage is None or number_format(storage).name == storage
    assert found.kv is None or number_format(found.kv).name == found.kv
