"""Sizes of published quantised checkpoints, from the numbers in their configs."""

from __future__ import annotations

import pytest

from rooflines.models.readers import read_config

# https://huggingface.co/openai/gpt-oss-120b/blob/main/config.json and .../gpt-oss-20b/...
GPT_OSS = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "head_dim": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "vocab_size": 201_088,
    "tie_word_embeddings": False,
    "attention_bias": True,
    "torch_dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
}
# "Checkpoint size" in table 1 of the gpt-oss model card (arXiv 2508.10925), in GiB to one decimal.
CARD = [(36, 128, 60.8, 65_248_815_744), (24, 32, 12.8, 13_761_264_768)]


def gpt_oss(layers, experts):
    kinds = ["sliding_attention", "full_attention"] * (layers // 2)
    return {**GPT_OSS, "num_hidden_layers": layers, "num_local_experts": experts, "layer_types": kinds}


@pytest.mark.parametrize(("layers", "experts", "gibibytes", "size_bytes"), CARD)
def test_gpt_oss(layers, experts, gibibytes, size_bytes):
    spec = read_config(gpt_oss(layers, experts), "gpt-oss")
    assert round(spec.weight_bytes / 2**30, 1) == gibibytes
    expert_weights = layers * experts * 3 * 2880 * 2880
    assert spec.weight_bytes == size_bytes
    assert spec.weight_bytes == 2 * (spec.parameters_total - expert_weights) + expert_weights * 17 // 32


# https://huggingface.co/Qwen/Qwen3-8B-FP8/blob/main/config.json; 8,191,159,296 elements in its safetensors
# files, of which 423,936 are scales (36 layers of 11,776 tiles).
def test_qwen3_8b_fp8():
    config = {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "head_dim": 128,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 36,
        "vocab_size": 151_936,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "sliding_window": None,
        "use_sliding_window": False,
        "torch_dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
        },
    }
    spec = read_config(config, "Qwen3-8B-FP8")
    linear = 36 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 12_288)
    assert spec.parameters_total == 8_191_159_296 - 423_936
    assert spec.weight_bytes == linear + 423_936 * 4 + 2 * (spec.parameters_total - linear)
    # The same model without its block is twice the size but for embedding and head.
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    assert read_config(plain, "Qwen3-8B").weight_bytes == 2 * spec.parameters_total
