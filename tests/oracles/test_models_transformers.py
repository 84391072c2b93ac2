"""Parameters and caches against transformers' own classes, built on the meta device: equal, or it is a fault.

transformers 5.23.0 is the reference (extra ``[oracle]``): class defaults and tying differ between versions.
"""

from __future__ import annotations

import importlib
import json
import os
import warnings
from pathlib import Path

import pytest

from rooflines.errors import RooflinesError
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("pinned_transformers")]
torch = pytest.importorskip("torch", reason="the oracle needs torch (extra [oracle])")
transformers = pytest.importorskip("transformers", reason="the oracle needs transformers (extra [oracle])")

DATA = Path(os.environ.get("ROOFLINES_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
CONFIGS = sorted((DATA / "configs").glob("*.json")) or [Path("no-reference-data")]
# Names under which transformers does not know an architecture that it has.
SAME_AS = {"kimi_k2": "deepseek_v3"}
UNKNOWN_TO_TRANSFORMERS = {"qwen", "chatglm", "mimo", "nemotron-nas"}
# transformers 5 ties T5's head whatever the config says ("we tie weights always").
ALWAYS_TIED = {"t5"}
# Its router calls .item(), which a meta tensor cannot.
NEEDS_VALUES = {"phimoe"}
POSITIONS = 300  # longer than the windows of gpt-oss, MiMo-V2 and Step, shorter than the others


def text_config(path: Path, spec: ModelSpec) -> dict:
    config = json.loads(path.read_text(encoding="utf-8"))
    tied = config.get("tie_word_embeddings", spec.tied_embeddings)
    config = dict(config.get("text_config", config))
    config.setdefault("tie_word_embeddings", tied)
    config["model_type"] = SAME_AS.get(spec.family, config.get("model_type") or spec.family)
    config["pad_token_id"] = None
    if spec.family == "deepseek_v2":
        # transformers takes a missing q_lora_rank for 1536, which DeepSeek-V2-Lite does not have.
        config.setdefault("q_lora_rank", None)
    return config


def build(config: dict):
    kept = {key: value for key, value in config.items() if key != "quantization_config"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = transformers.AutoConfig.for_model(**kept)
        facts._experts_implementation = "batched_mm"
        encoder_decoder = facts.model_type in ALWAYS_TIED
        auto = transformers.AutoModelForSeq2SeqLM if encoder_decoder else transformers.AutoModelForCausalLM
        with torch.device("meta"):
            model = auto.from_config(facts, attn_implementation="eager", dtype=torch.bfloat16)
    model.tie_weights()
    return model.eval()


def parameters(model) -> int:
    return sum({id(parameter): parameter.numel() for _, parameter in model.named_parameters()}.values())


def readable(path: Path) -> ModelSpec:
    if not path.exists():
        pytest.skip(f"no reference data at {DATA} (set ROOFLINES_DATA)")
    try:
        spec = read_model(path)
    except RooflinesError:
        pytest.skip("refused (see tests/data/test_configs.py)")
    if spec.family in UNKNOWN_TO_TRANSFORMERS:
        pytest.skip(f"transformers has no {spec.family}")
    return spec


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_parameters_and_cache_equal_transformers(path):
    spec = readable(path)
    model = build(text_config(path, spec))
    untied = spec.embedding_parameters if spec.family in ALWAYS_TIED and not spec.tied_embeddings else 0
    assert spec.parameters_total - untied == parameters(model)
    if spec.family in NEEDS_VALUES:
        return
    ids = torch.zeros((1, POSITIONS), dtype=torch.long, device="meta")
    given = {"decoder_input_ids": ids} if spec.encoder else {}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = model(input_ids=ids, use_cache=True, **given)
    cache = getattr(output, "past_key_values", None) or output.cache_params
    if spec.encoder:
        assert kept(cache.cross_attention_cache) == spec.cross_kv_elements_per_encoder_position * POSITIONS
        cache = cache.self_attention_cache
    assert kept(cache) == spec.kv_elements(POSITIONS)
    # transformers keeps c columns of a convolution over c positions; c - 1 of them are needed.
    states = [state for layer in spec.layers for state in layer.states]
    assert held(cache, "recurrent_states") == sum(s.elements for s in states if s.name == "recurrent")
    taps = {getattr(layer.mixer, "convolution", 0) for layer in spec.layers} - {0}
    if taps:
        (c,) = taps
        convolution = sum(s.elements for s in states if s.name == "convolution")
        assert held(cache, "conv_states") * (c - 1) == convolution * c


# transformers fills in a query rank that DeepSeek-V2-Lite does not have, and ties the head of every T5.
SAVED_OTHERWISE = {"deepseek_v2", "t5"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_that_transformers_saves_again_is_the_same_model(path):
    spec = readable(path)
    if spec.family in SAVED_OTHERWISE or spec.family in SAME_AS:
        pytest.skip("its class states something else")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = json.loads(path.read_text(encoding="utf-8"))
        saved = transformers.AutoConfig.for_model(
            **{**given, "model_type": given.get("model_type", spec.family)}
        )
    again = read_model(json.loads(saved.to_json_string()))
    assert again.parameters_total == spec.parameters_total
    assert again.parameters_active == spec.parameters_active
    assert again.kv_elements(5000) == spec.kv_elements(5000)


def kept(cache) -> int:
    """Elements of keys, values and index keys."""
    tensors = [
        tensor
        for layer in cache.layers
        for name, tensor in vars(layer).items()
        if torch.is_tensor(tensor) and (name in ("keys", "values") or "index" in name)
    ]
    return sum(tensor.numel() for tensor in tensors)


def held(cache, name: str) -> int:
    states = [getattr(layer, name, None) for layer in cache.layers]
    return sum(
        tensor.numel()
        for state in states
        if state is not None
        for tensor in (state.values() if isinstance(state, dict) else [state])
        if torch.is_tensor(tensor)
    )


SMALL = {
    "hidden_size": 192,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 320,
    "vocab_size": 512,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}
# Families of the dense table: a geometry of no real model, so that no default can be right by chance.
DENSE = {
    "llama": {},
    "mistral": {"sliding_window": None},
    "ministral": {"sliding_window": 16},
    "ministral3": {"sliding_window": None},
    "qwen2": {"use_sliding_window": False},
    "qwen3": {},
    "phi3": {"sliding_window": None},
    "olmo": {},
    "olmo2": {},
    "olmo3": {"sliding_window": 16, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    "granite": {},
    "cohere": {},
    "cohere2": {"sliding_window": 16},
    "starcoder2": {"sliding_window": None},
    "stablelm": {},
    "nemotron": {},
    "glm": {},
    "glm4": {},
    "smollm3": {},
    "exaone4": {"sliding_window": 16, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    "seed_oss": {},
    "arcee": {},
    "apertus": {},
    "helium": {},
    "ernie4_5": {},
    "hunyuan_v1_dense": {},
    "cwm": {"sliding_window": 16, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    "internlm3": {"qkv_bias": True, "bias": True},
    "phi": {},
    "gemma": {},
    "gemma2": {"sliding_window": 16},
    "gemma3_text": {"sliding_window": 16},
}
FLAGS = {
    "defaults": {},
    "biases": {"attention_bias": True, "mlp_bias": True, "use_bias": True, "use_qkv_bias": True},
    "no biases": {"attention_bias": False, "mlp_bias": False, "use_bias": False, "use_qkv_bias": False},
    "query and key norms": {"qk_layernorm": True, "use_qk_norm": True},
    "parallel": {"use_parallel_residual": True},
    "tied": {"tie_word_embeddings": True},
    "untied": {"tie_word_embeddings": False},
}
# These classes always divide the hidden size by the heads.
SPLIT = {
    "phi",
    "stablelm",
    "cohere",
    "cohere2",
    "olmo",
    "olmo2",
    "olmo3",
    "phi3",
    "qwen2",
    "starcoder2",
    "granite",
}


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("family", DENSE)
def test_dense_families_of_any_geometry(family, flags):
    config = {"model_type": family, **SMALL, **DENSE[family], **FLAGS[flags]}
    if family not in ("phi", "stablelm"):
        config.pop("qk_layernorm", None)
    if family != "cohere":
        config.pop("use_qk_norm", None)
    if family in SPLIT:
        config.pop("head_dim")
    assert read_model(config).parameters_total == parameters(build(config))


EXPERTS = {
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None},
    "qwen2_moe": {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 96,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [1],
    },
    "qwen3_moe": {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [0, 3],
        "attention_bias": True,
    },
    "gpt_oss": {"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": 16},
    "phimoe": {
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": None,
        "lm_head_bias": True,
    },
    "minimax_m2": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "olmoe": {"num_experts": 8, "num_experts_per_tok": 2},
    "granitemoe": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "granitemoeshared": {"num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 96},
    "ernie4_5_moe": {
        "moe_num_experts": 8,
        "moe_k": 2,
        "moe_intermediate_size": 64,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1,
        "moe_layer_end_index": 2,
        "moe_layer_interval": 1,
    },
    "glm4_moe": {
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "n_shared_experts": 2,
        "first_k_dense_replace": 1,
        "use_qk_norm": True,
        "attention_bias": True,
        "n_group": 1,
        "topk_group": 1,
    },
    "dots1": {
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "n_shared_experts": 2,
        "first_k_dense_replace": 1,
        "attention_bias": True,
        "sliding_window": None,
        "n_group": 1,
        "topk_group": 1,
    },
    "exaone_moe": {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "num_shared_experts": 2,
        "mlp_layer_types": ["dense", "sparse", "dense", "sparse"],
        "sliding_window": 16,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
    },
    "solar_open": {
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "n_shared_experts": 2,
        "attention_bias": True,
        "n_group": 1,
        "topk_group": 1,
    },
    "hunyuan_v1_moe": {"num_experts": 8, "moe_topk": [2, 2, 2, 2], "attention_bias": True},
    "llama4_text": {
        "num_local_experts": 8,
        "num_experts_per_tok": 1,
        "intermediate_size_mlp": 448,
        "interleave_moe_layer_step": 2,
        "attention_chunk_size": 16,
        "no_rope_layers": [1, 1, 0, 1],
    },
    "qwen3_next": {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 96,
        "full_attention_interval": 2,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        "linear_conv_kernel_dim": 3,
    },
    "jamba": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "mamba_d_state": 8,
        "mamba_d_conv": 3,
        "mamba_expand": 2,
        "mamba_dt_rank": 12,
    },
    "granitemoehybrid": {
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 96,
        "layer_types": ["linear_attention", "full_attention"] * 2,
        "mamba_n_heads": 8,
        "mamba_n_groups": 2,
        "mamba_d_state": 16,
        "mamba_d_head": "auto",
        "mamba_d_conv": 3,
        "mamba_expand": 2,
        "mamba_proj_bias": True,
    },
    "nemotron_h": {
        "num_hidden_layers": 5,
        "hybrid_override_pattern": "ME*-M",
        "mamba_num_heads": 6,
        "mamba_head_dim": 16,
        "n_groups": 2,
        "ssm_state_size": 8,
        "conv_kernel": 3,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "moe_shared_expert_intermediate_size": 96,
        "n_shared_experts": 1,
        "moe_latent_size": 48,
    },
    "deepseek_v3": {
        "q_lora_rank": 40,
        "kv_lora_rank": 24,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 20,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "n_shared_experts": 2,
        "first_k_dense_replace": 1,
        "n_group": 2,
        "topk_group": 1,
        "attention_bias": True,
    },
    "kimi_linear": {
        "q_lora_rank": None,
        "kv_lora_rank": 24,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 20,
        "num_experts": 8,
        "num_experts_per_token": 2,
        "moe_intermediate_size": 64,
        "num_shared_experts": 2,
        "first_k_dense_replace": 1,
        "linear_attn_config": {
            "full_attn_layers": [4],
            "kda_layers": [1, 2, 3],
            "num_heads": 4,
            "head_dim": 16,
            "short_conv_kernel_size": 3,
        },
    },
}
# Where transformers reads another spelling than released files use.
SPELLED = {
    "kimi_linear": {"num_local_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 2},
}


@pytest.mark.parametrize("family", EXPERTS)
def test_expert_and_hybrid_families_of_any_geometry(family):
    config = {"model_type": family, **SMALL, **EXPERTS[family]}
    if family in ("phimoe", "olmoe", "granitemoe", "granitemoeshared", "granitemoehybrid", "jamba"):
        config.pop("head_dim")
    expected = parameters(build({**config, **SPELLED.get(family, {})}))
    assert read_model(config).parameters_total == expected


def test_falcon_and_its_variants():
    small = {"hidden_size": 192, "num_attention_heads": 6, "num_hidden_layers": 3, "vocab_size": 512}
    for flags in (
        {"multi_query": True, "new_decoder_architecture": False, "parallel_attn": True},
        {"multi_query": False, "new_decoder_architecture": False, "parallel_attn": False, "bias": True},
        {"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 2},
        {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
    ):
        config = {"model_type": "falcon", **small, **flags}
        assert read_model(config).parameters_total == parameters(build(config)), flags


def test_gpt_families_of_any_geometry():
    gpt2 = {"n_embd": 192, "n_head": 6, "n_layer": 3, "n_positions": 64, "vocab_size": 512}
    neox = {
        "hidden_size": 192,
        "num_attention_heads": 6,
        "num_hidden_layers": 3,
        "intermediate_size": 320,
        "vocab_size": 512,
    }
    for config in (
        {"model_type": "gpt2", **gpt2},
        {"model_type": "gpt2", **gpt2, "n_inner": 320},
        {"model_type": "gptj", **gpt2, "rotary_dim": 16},
        {"model_type": "codegen", **gpt2, "rotary_dim": 16, "n_head": 8, "tie_word_embeddings": False},
        {"model_type": "gpt_bigcode", **gpt2},
        {"model_type": "gpt_bigcode", **gpt2, "multi_query": False},
        {"model_type": "gpt_neox", **neox},
        {"model_type": "gpt_neox", **neox, "attention_bias": False},
        {"model_type": "bloom", "hidden_size": 192, "n_head": 6, "n_layer": 3, "vocab_size": 512},
    ):
        assert read_model(config).parameters_total == parameters(build(config)), config


# Text models of multimodal families: the head stands outside their class.
TEXT_MODELS = {
    "qwen2_vl_text": ("qwen2_vl", "Qwen2VLTextModel", {}),
    "qwen2_5_vl_text": ("qwen2_5_vl", "Qwen2_5_VLTextModel", {}),
    "qwen3_vl_text": ("qwen3_vl", "Qwen3VLTextModel", {}),
    "qwen3_vl_moe_text": ("qwen3_vl_moe", "Qwen3VLMoeTextModel", EXPERTS["qwen3_moe"]),
    "glm4v_text": ("glm4v", "Glm4vTextModel", {}),
    "glm4v_moe_text": ("glm4v_moe", "Glm4vMoeTextModel", EXPERTS["glm4_moe"]),
}


@pytest.mark.parametrize("family", TEXT_MODELS)
def test_text_models_of_multimodal_families(family):
    module, name, changes = TEXT_MODELS[family]
    config = {"model_type": family, **SMALL, **changes}
    code = importlib.import_module(f"transformers.models.{module}.modeling_{module}")
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(code, name)(transformers.AutoConfig.for_model(**config))
    head = SMALL["vocab_size"] * SMALL["hidden_size"]
    assert read_model(config).parameters_total == parameters(model) + head
