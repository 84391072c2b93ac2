"""GGUF files of small transformers models, named by gguf's own table, against the same models' configs."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.models.gguf import read_gguf
from rooflines.models.readers import read_config, read_model

pytestmark = pytest.mark.torch
transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")

LAYERS = 4
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 128,
    "max_position_embeddings": 256,
    "head_dim": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WIDE = {"head_dim": 32}
WINDOW = {"sliding_window": 8}
LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
QWEN = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
ROUTED = {
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
LATENT = {
    **ROUTED,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
}
# model_type -> (GGUF architecture, what the config adds, which metadata the converter adds)
CASES = {
    "llama": ("llama", WIDE, {}),
    "mistral": ("llama", {"sliding_window": None}, {}),
    "mixtral": ("llama", LOCAL, {}),
    "qwen2": ("qwen2", {}, {}),
    "qwen3": ("qwen3", WIDE, {}),
    "qwen2_moe": (
        "qwen2moe",
        {**QWEN, "shared_expert_intermediate_size": 48},
        {"expert_feed_forward_length": 32, "expert_shared_feed_forward_length": 48},
    ),
    "qwen3_moe": ("qwen3moe", {**QWEN, **WIDE}, {"expert_feed_forward_length": 32}),
    "gemma": ("gemma", WIDE, {}),
    "gemma2": ("gemma2", {**WIDE, **WINDOW}, {"attention.sliding_window": 8}),
    "gemma3_text": ("gemma3", {**WIDE, **WINDOW}, {"attention.sliding_window": 8}),
    "phi": ("phi2", {"num_key_value_heads": 4}, {}),
    "phi3": ("phi3", WINDOW, {"attention.sliding_window": 8}),
    "starcoder2": ("starcoder2", {}, {}),
    "cohere": ("command-r", {"use_qk_norm": True}, {}),
    "cohere2": ("cohere2", WINDOW, {"attention.sliding_window": 8}),
    "olmo2": ("olmo2", {}, {}),
    "granite": ("granite", {}, {}),
    "nemotron": ("nemotron", {}, {}),
    "glm4": ("glm4", {"attention_bias": True}, {}),
    "glm4_moe": (
        "glm4moe",
        {**ROUTED, "use_qk_norm": True, "attention_bias": True, "num_nextn_predict_layers": 0},
        {"expert_feed_forward_length": 32, "expert_shared_count": 1, "leading_dense_block_count": 1},
    ),
    "smollm3": ("smollm3", {}, {}),
    "exaone4": ("exaone4", WINDOW, {"attention.sliding_window": 8}),
    "gpt_oss": (
        "gpt-oss",
        {**LOCAL, **WINDOW, **WIDE},
        {"attention.sliding_window": 8, "expert_feed_forward_length": 96},
    ),
    "minimax_m2": ("minimax-m2", {**LOCAL, **WIDE}, {"expert_feed_forward_length": 96}),
    "deepseek_v2": (
        "deepseek2",
        {**LATENT, "q_lora_rank": None},
        {
            "attention.kv_lora_rank": 32,
            "attention.key_length": 24,
            "attention.value_length": 16,
            "rope.dimension_count": 8,
            "expert_feed_forward_length": 32,
            "expert_shared_count": 1,
            "leading_dense_block_count": 1,
        },
    ),
    "deepseek_v3": (
        "deepseek2",
        {**LATENT, "q_lora_rank": 24, "num_nextn_predict_layers": 0},
        {
            "attention.q_lora_rank": 24,
            "attention.kv_lora_rank": 32,
            "attention.key_length": 40,
            "attention.value_length": 32,
            "attention.key_length_mla": 24,
            "attention.value_length_mla": 16,
            "rope.dimension_count": 8,
            "expert_feed_forward_length": 32,
            "expert_shared_count": 1,
            "leading_dense_block_count": 1,
        },
    ),
}


def tensors_of(model, architecture):
    """Shapes of a model's tensors under the names that llama.cpp's converter gives them."""
    kinds = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    table = gguf.get_tensor_name_map(kinds[architecture], LAYERS)
    named = dict(model.named_parameters())
    named |= {name: buffer for name, buffer in model.named_buffers() if "e_score_correction_bias" in name}
    found = {}
    for name, tensor in named.items():
        shape = tuple(tensor.shape)
        layer = name.split(".")[2] if name.startswith("model.layers.") else ""
        transposed = architecture == "gpt-oss"  # its experts are [E, inputs, outputs]
        if name.endswith("experts.gate_up_proj"):
            half = (shape[0], shape[2] // 2, shape[1]) if transposed else (shape[0], shape[1] // 2, shape[2])
            found |= {f"blk.{layer}.ffn_{part}_exps.weight": half for part in ("gate", "up")}
        elif name.endswith("experts.gate_up_proj_bias"):
            half = (shape[0], shape[1] // 2)
            found |= {f"blk.{layer}.ffn_{part}_exps.bias": half for part in ("gate", "up")}
        elif name.endswith("experts.down_proj_bias"):
            found[f"blk.{layer}.ffn_down_exps.bias"] = shape
        elif name.endswith("experts.down_proj") and transposed:
            found[f"blk.{layer}.ffn_down_exps.weight"] = (shape[0], shape[2], shape[1])
        elif "e_score_correction_bias" in name:
            found[f"blk.{layer}.exp_probs_b.bias"] = shape
        else:
            key = table.get_name(name, try_suffixes=(".weight", ".bias"))
            assert key is not None, name
            # Experts are parameters without a suffix in transformers, weights in GGUF.
            found[key if key.endswith((".weight", ".bias")) else f"{key}.weight"] = shape
    return found


def write(path, architecture, config, extra, tensors):
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(1 if "kv_lora_rank" in config else config["num_key_value_heads"])
    if "kv_lora_rank" not in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    for ours in ("num_local_experts", "num_experts", "n_routed_experts"):
        if ours in config:
            writer.add_expert_count(config[ours])
            writer.add_expert_used_count(config["num_experts_per_tok"])
    for key, value in extra.items():
        writer.add_uint32(f"{architecture}.{key}", value)
    for name, shape in tensors.items():
        # The converter keeps vectors, norms and routers in fp32.
        matrix = len(shape) > 1 and not any(part in name for part in ("_norm", "gate_inp", ".bias"))
        writer.add_tensor(name, np.zeros(shape, dtype=np.float16 if matrix else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("model_type", CASES)
def test_a_gguf_file_says_what_the_config_says(tmp_path, model_type):
    architecture, more, metadata = CASES[model_type]
    config = {**SIZES, **more}
    made = transformers.AutoConfig.for_model(model_type, **config)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(made)
    tensors = tensors_of(model, architecture)
    path = tmp_path / f"{model_type}.gguf"
    write(path, architecture, config, metadata, tensors)

    found = read_model(path)
    expected = read_config({**made.to_dict(), **more, "model_type": model_type}, model_type)
    assert found.parameters_total == sum(tensor.numel() for tensor in model.parameters())
    assert found.tied_embeddings == expected.tied_embeddings
    assert [layer.mixer for layer in found.layers] == [layer.mixer for layer in expected.layers]
    assert [layer.feed_forwards for layer in found.layers] == [
        layer.feed_forwards for layer in expected.layers
    ]
    stored = read_gguf(path).stored
    buffers = sum(t.size_bytes for t in stored.tensors if "exp_probs_b" in t.name)
    assert found.weight_bytes == stored.size_bytes - buffers
