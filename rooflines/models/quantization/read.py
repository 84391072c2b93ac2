"""From a config to a `Quantization`: find the block, tell its kind, read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.quantization.block import Block
from rooflines.models.quantization.compressed import read_compressed_tensors
from rooflines.models.quantization.core import Quantization
from rooflines.models.quantization.kinds import (
    experts_rule,
    read_auto_round,
    read_awq,
    read_bitsandbytes,
    read_exl3,
    read_fbgemm_fp8,
    read_fp8,
    read_gptq,
    read_mxfp4,
)
from rooflines.models.quantization.modelopt import read_modelopt

KINDS: Final[dict[str, Callable[[Block], Quantization]]] = {
    "fp8": read_fp8,
    "fbgemm_fp8": read_fbgemm_fp8,
    "gptq": read_gptq,
    "awq": read_awq,
    "auto-round": read_auto_round,
    "compressed-tensors": read_compressed_tensors,
    "modelopt": read_modelopt,
    "modelopt_fp4": read_modelopt,
    "mxfp4": read_mxfp4,
    "exl3": read_exl3,
    "bitsandbytes": read_bitsandbytes,
}
_KEYS: Final = ("quantization_config", "compression_config")
# Where multimodal configs keep that of the language model.
_TEXT_LEVELS: Final = ("text_config", "llm_config", "language_config", "thinker_config")
_LLAMA4: Final = ("llama4", "llama4_text")
# `expert_dtype` of DeepSeek-V4: 4-bit floats with an 8-bit scale per 32 (its published element count, packed
# bytes and scales, comes out so) under fp8 activations.
_EXPERT_DTYPES: Final = {"fp4": "mxfp4@fp8", "fp8": "fp8-block", "bf16": None, "bfloat16": None}


def read_quantization(
    config: Mapping[str, Any], hf_quant_config: Mapping[str, Any] | None = None
) -> Quantization | None:
    """How a checkpoint stores its weights; None where nothing says that it is quantised.

    Args:
        config: config.json, with the block at the top or in the text model's part.
        hf_quant_config: ModelOpt's hf_quant_config.json beside it, if there is one.

    Raises:
        ConfigError: a field is missing, mistyped or contradicts another.
        UnknownNameError: a kind of checkpoint, or an algorithm in it, that is not known.
    """
    block = _find_block(config)
    found = _read_block(block) if block else None
    if found and block and "ignore" not in block.data:
        found = _with_recipe(found, config)
    if hf_quant_config is not None:
        found = _with_modelopt_file(found, hf_quant_config)
    expert_dtype = _find(config, ("expert_dtype",))
    if expert_dtype:
        found = _with_expert_dtype(found, *expert_dtype)
    return found


def _read_block(block: Block) -> Quantization:
    if block.has("quant_method"):
        method = block.text("quant_method").lower().replace("_", "-")
    elif block.has("quant_algo"):
        method = "modelopt"
    else:
        raise ConfigError(
            f"{block.where} has neither quant_method nor quant_algo: say how the weights are stored, "
            "or remove it"
        )
    readers = {name.replace("_", "-"): reader for name, reader in KINDS.items()}
    reader = readers.get(method)
    if reader is None:
        known = ", ".join(KINDS)
        raise UnknownNameError("quant_method", method, KINDS, f"in {block.where} (known: {known})")
    return reader(block)


def _with_recipe(found: Quantization, config: Mapping[str, Any]) -> Quantization:
    """What is known of a compressed-tensors checkpoint whose list of exceptions was lost on the way.

    compressed-tensors always writes `ignore`; a copy of the config of Llama-4-Maverick-17B-128E-Instruct-FP8
    without it is in circulation. Its published element count has one scale an output row of the routed
    experts (66,060,288) and none else.
    """
    kind = _find(config, ("model_type",), agree=False)
    if found.method != "compressed-tensors" or kind is None or kind[1] not in _LLAMA4:
        return found
    return replace(
        found,
        rules=(*found.rules, experts_rule(found.default, kind[0])),
        default=None,
        assumed=(
            "quantization_config has no ignore list: taken to hold routed experts alone, as Meta's does",
        ),
    )


def _find_block(config: Mapping[str, Any]) -> Block | None:
    found = _find(config, _KEYS)
    if found is None:
        return None
    where, value = found
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is {value!r:.60}: it must be an object")
    return Block(value, where)


def _find(config: Mapping[str, Any], keys: tuple[str, ...], *, agree: bool = True) -> tuple[str, Any] | None:
    """The first of `keys` that is given at the top or in a text level; by default they must all agree."""
    places = [("", config)]
    for level in _TEXT_LEVELS:
        inner = config.get(level)
        if isinstance(inner, Mapping):
            places.append((f"{level}.", inner))
            deeper = inner.get("text_config")
            if isinstance(deeper, Mapping):
                places.append((f"{level}.text_config.", deeper))
    found = [
        (f"{way}{key}", place[key]) for way, place in places for key in keys if place.get(key) is not None
    ]
    if not found:
        return None
    for where, value in found[1:]:
        if agree and value != found[0][1]:
            raise ConfigError(f"{found[0][0]} and {where} contradict each other: remove one")
    return found[0]


def _with_modelopt_file(found: Quantization | None, data: Mapping[str, Any]) -> Quantization:
    where = "hf_quant_config.json"
    beside = read_modelopt(Block(data, where).child("quantization"))
    if found is None:
        return beside
    if (found.method, found.default) != (beside.method, beside.default):
        raise ConfigError(
            f"quantization_config ({found.method}, {found.default}) and {where} ({beside.method}, "
            f"{beside.default}) contradict each other: remove one"
        )
    return replace(found, kv=found.kv or beside.kv)


def _with_expert_dtype(found: Quantization | None, where: str, value: object) -> Quantization | None:
    if not isinstance(value, str) or value.lower() not in _EXPERT_DTYPES:
        raise ConfigError(f"{where} is {value!r:.60}: known are {', '.join(_EXPERT_DTYPES)}")
    rule = experts_rule(_EXPERT_DTYPES[value.lower()], where)
    base = found or Quantization(method="expert_dtype")
    return replace(base, rules=(*base.rules, rule))
