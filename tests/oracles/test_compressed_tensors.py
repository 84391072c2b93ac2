"""Bytes of one matrix against what the compressed-tensors package writes for each of its preset schemes."""

from __future__ import annotations

import pytest

from rooflines.dtypes import number_format
from rooflines.models.quantization import read_quantization

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
package = pytest.importorskip("compressed_tensors", reason="pip install compressed-tensors==0.20.1")

OUTPUTS, INPUTS = 384, 512
# preset -> (format it is saved in, name of ours)
PRESETS = {
    "W3A16": ("pack-quantized", "int3-g128-sym"),
    "W4A16": ("pack-quantized", "int4-g128-sym"),
    "W4A16_ASYM": ("pack-quantized", "int4-g128"),
    "W8A16": ("pack-quantized", "int8-g128-sym"),
    "NVFP4": ("nvfp4-pack-quantized", "nvfp4"),
    "NVFP4A16": ("nvfp4-pack-quantized", "nvfp4@bf16"),
    "MXFP4": ("mxfp4-pack-quantized", "mxfp4@fp4"),
    "MXFP6A16": ("mxfp6-pack-quantized", "mxfp6"),
    "MXFP8": ("mxfp8-quantized", "mxfp8"),
    "FP8": ("float-quantized", "fp8-s16"),
    "FP8_DYNAMIC": ("float-quantized", "fp8-channel-s16"),
    "FP8_BLOCK": ("float-quantized", "fp8-block-128x128-s16"),
    "W8A8": ("int-quantized", "int8-channel-sym@int8"),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_bytes_of_a_matrix(preset):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization.lifecycle.initialize import initialize_module_for_quantization
    from compressed_tensors.quantization.quant_scheme import preset_name_to_scheme

    layout, name = PRESETS[preset]
    scheme = preset_name_to_scheme(preset, ["Linear"])
    module = torch.nn.Linear(INPUTS, OUTPUTS, bias=False, dtype=torch.bfloat16)
    initialize_module_for_quantization(module, scheme)
    for key, value in module.named_parameters():
        if key != "weight":
            value.data.fill_(1 if "scale" in key else 0)
    saved = BaseCompressor.get_value_from_registry(layout).compress(dict(module.state_dict()), scheme)
    # Scales of activations and the description of the shape are no weights.
    weights = {
        key: value for key, value in saved.items() if not key.startswith("input") and key != "weight_shape"
    }
    held = sum(value.numel() * value.element_size() for value in weights.values())

    block = {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": {"group_0": scheme.model_dump(mode="json")},
    }
    found = read_quantization({"quantization_config": block}).format_of("model.layers.0.mlp.up_proj")
    assert found == name
    assert number_format(found).matrix_bytes(OUTPUTS, INPUTS) == held
