"""NVIDIA ModelOpt: `quantization_config` in config.json, or hf_quant_config.json beside it.

Names of algorithms: QuantAlgo of TensorRT-LLM (tensorrt_llm/quantization/mode.py) and of ModelOpt's unified
Hugging Face export.
"""

from __future__ import annotations

from typing import Final

from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.quantization.block import Block
from rooflines.models.quantization.compressed import kv_format
from rooflines.models.quantization.core import Quantization, Rule
from rooflines.models.quantization.patterns import Patterns

_MIXED: Final = "MIXED_PRECISION"
# {g}: the group size. ModelOpt's AWQ has no zero points (its exports say `has_zero_point: false`).
_ALGORITHMS: Final[dict[str, str | None]] = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8-channel",
    "FP8_BLOCK_SCALES": "fp8-block",
    "FP8_PB_WO": "fp8-block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4@bf16",
    "W4A8_NVFP4_FP8": "nvfp4@fp8",
    "MXFP8": "mxfp8",
    "W4A16_MXFP4": "mxfp4",
    "W4A8_MXFP4_FP8": "mxfp4@fp8",
    "W4A16_AWQ": "int4-g{g}{sym}",
    "INT4_AWQ": "int4-g{g}{sym}",
    "W4A8_AWQ": "int4-g{g}{sym}@fp8",
    "W8A16": "w8a16",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "NO_QUANT": None,
    "NONE": None,
}
_FIXED_GROUPS: Final = {"nvfp4": 16, "mxfp4": 32, "mxfp8": 32}


def read_modelopt(block: Block) -> Quantization:
    """Formats of a ModelOpt checkpoint.

    Raises:
        ConfigError: a field is missing or mistyped.
        UnknownNameError: an algorithm that is not known.
    """
    excluded = Rule(Patterns.read(block.names("ignore", "exclude_modules"), f"{block.where}.ignore"), None)
    algorithm = block.text("quant_algo").upper()
    kv = kv_format(block, "kv_cache_quant_algo") or kv_format(block, "kv_cache_scheme")
    if algorithm == _MIXED:
        return Quantization("modelopt", (excluded, *_layer_rules(block)), kv=kv)
    return Quantization(
        "modelopt",
        (excluded,),
        default=_algorithm_format(block, algorithm),
        default_reaches_head=True,
        kv=kv,
    )


def _layer_rules(block: Block) -> list[Rule]:
    """One rule per format out of `quantized_layers` (module name -> algorithm and group size)."""
    layers = block.child("quantized_layers")
    by_format: dict[str | None, list[str]] = {}
    for name in layers.data:
        layer = layers.child(name)
        storage = _algorithm_format(layer, layer.text("quant_algo").upper())
        by_format.setdefault(storage, []).append(name)
    if not by_format:
        raise ConfigError(f"{layers.where} is empty, but quant_algo is {_MIXED}")
    return [Rule(Patterns.read(names, layers.where), storage) for storage, names in by_format.items()]


def _algorithm_format(block: Block, algorithm: str) -> str | None:
    if algorithm not in _ALGORITHMS:
        known = [*_ALGORITHMS, _MIXED]
        raise UnknownNameError(
            "quant_algo", algorithm, known, f"in {block.where} (known: {', '.join(known)})"
        )
    template = _ALGORITHMS[algorithm]
    if template is None:
        return None
    fixed = _FIXED_GROUPS.get(template.partition("@")[0])
    if fixed is not None and block.integer("group_size", 1, 2**20, otherwise=fixed) != fixed:
        raise block.wrong("group_size", f"{fixed} for {algorithm}")
    if "{g}" not in template:
        return template
    group = block.integer("group_size", 1, 2**20)
    symmetric = "" if block.flag("has_zero_point", otherwise=False) else "-sym"
    return template.format(g=group, sym=symmetric)
