"""Bytes counted from a config against bytes in the headers of the checkpoint that the config describes."""

from __future__ import annotations

import json
import struct

import pytest

from rooflines.errors import FileFormatError
from rooflines.models.checkpoint import read_stored
from rooflines.models.readers import read_model

CONFIG = {
    "model_type": "qwen3",
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 384,
    "vocab_size": 512,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "sliding_window": None,
    "torch_dtype": "bfloat16",
}
BITS = {"BF16": 16, "F32": 32, "F16": 16, "F8_E4M3": 8, "F8_E8M0": 8, "U8": 8, "I32": 32}
LINEAR = {
    "self_attn.q_proj": (256, 256),
    "self_attn.k_proj": (128, 256),
    "self_attn.v_proj": (128, 256),
    "self_attn.o_proj": (256, 256),
    "mlp.gate_proj": (384, 256),
    "mlp.up_proj": (384, 256),
    "mlp.down_proj": (256, 384),
}
NORMS = {
    "input_layernorm": 256,
    "post_attention_layernorm": 256,
    "self_attn.q_norm": 64,
    "self_attn.k_norm": 64,
}


def plain(name, shape):
    return {f"{name}.weight": ("BF16", shape)}


def fp8_tiles(name, shape):
    tiles = (-(-shape[0] // 128), -(-shape[1] // 128))
    return {f"{name}.weight": ("F8_E4M3", shape), f"{name}.weight_scale_inv": ("F32", tiles)}


def gptq(name, shape):
    outputs, inputs = shape
    return {
        f"{name}.qweight": ("I32", (inputs // 8, outputs)),
        f"{name}.qzeros": ("I32", (inputs // 128, outputs // 8)),
        f"{name}.scales": ("F16", (inputs // 128, outputs)),
        f"{name}.g_idx": ("I32", (inputs,)),
    }


def nvfp4(name, shape):
    outputs, inputs = shape
    return {
        f"{name}.weight_packed": ("U8", (outputs, inputs // 2)),
        f"{name}.weight_scale": ("F8_E4M3", (outputs, inputs // 16)),
        f"{name}.weight_global_scale": ("F32", (1,)),
    }


def packed(name, shape):
    outputs, inputs = shape
    return {
        f"{name}.weight_packed": ("I32", (outputs, inputs // 8)),
        f"{name}.weight_scale": ("BF16", (outputs, inputs // 32)),
    }


def channel(name, shape):
    return {f"{name}.weight": ("F8_E4M3", shape), f"{name}.weight_scale": ("F32", (shape[0], 1))}


def group(bits, kind, **more):
    return {"group_0": {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, **more}}}


LISTED = ["lm_head", "re:.*self_attn.*"]
KINDS = {
    "none": (None, plain, plain),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, fp8_tiles, fp8_tiles),
    "fbgemm": ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["self_attn"]}, plain, channel),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, gptq, gptq),
    "nvfp4": (
        {
            "quant_method": "compressed-tensors",
            "format": "nvfp4-pack-quantized",
            "ignore": LISTED,
            "config_groups": group(4, "float", group_size=16, strategy="tensor_group"),
        },
        plain,
        nvfp4,
    ),
    "packed": (
        {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "ignore": LISTED,
            "config_groups": group(4, "int", group_size=32, strategy="group", symmetric=True),
        },
        plain,
        packed,
    ),
}


def tensors(attention, mlp):
    found = {**plain("model.embed_tokens", (512, 256)), **plain("lm_head", (512, 256))}
    found |= {"model.norm.weight": ("BF16", (256,))}
    for index in range(2):
        for name, shape in LINEAR.items():
            layout = attention if name.startswith("self_attn") else mlp
            found |= layout(f"model.layers.{index}.{name}", shape)
        for name, width in NORMS.items():
            found[f"model.layers.{index}.{name}.weight"] = ("BF16", (width,))
    return found


def write(folder, config, held):
    header, end = {}, 0
    for name, (kind, shape) in held.items():
        count = 1
        for axis in shape:
            count *= axis
        size = count * BITS[kind] // 8
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("kind", KINDS)
def test_a_config_and_its_checkpoint_have_the_same_bytes(tmp_path, kind):
    block, attention, mlp = KINDS[kind]
    config = {**CONFIG, "quantization_config": block} if block else CONFIG
    write(tmp_path, config, tensors(attention, mlp))
    spec = read_model(tmp_path)
    for path in (tmp_path, tmp_path / "config.json", tmp_path / "model.safetensors"):
        assert read_stored(path).size_bytes == spec.weight_bytes


def test_a_config_alone_has_no_checkpoint(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert read_stored(tmp_path) is None
    assert read_stored(tmp_path / "config.json") is None


def test_a_damaged_checkpoint_is_not_taken_for_none(tmp_path):
    write(tmp_path, CONFIG, tensors(plain, plain))
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match="truncated"):
        read_stored(tmp_path)
    with pytest.raises(FileFormatError, match="No such file"):
        read_stored(tmp_path / "absent.gguf")


def test_gguf(smollm2_gguf):
    assert read_stored(smollm2_gguf).size_bytes == 96_576_768
