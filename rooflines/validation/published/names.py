"""Facts that tables of speedups leave out: which preset a name means, and which engine a source ran.

Every entry is a fact about the thing named or a stated assumption; none was chosen by looking at a speedup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from rooflines.errors import InputError, RooflinesError
from rooflines.hardware.catalogue import load_hardware
from rooflines.models.catalogue import RELEASES, resolve_preset


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model as a table names it.

    Attributes:
        preset: the preset of its shape.
        weights: number format that the name itself says; None where it says none.
        note: what was assumed; empty where nothing was.
    """

    preset: str
    weights: str | None = None
    note: str = ""


# Names that are no preset's, and what they are. Fine-tunes have the shape of their base.
_MODELS: Final = {
    "qwen3-30b-a3b-instruct-2507": ModelName("qwen3-30b-a3b"),
    "qwen3-coder-30b-a3b-instruct": ModelName("qwen3-30b-a3b"),
    "qwen3-coder-30b-a3b": ModelName("qwen3-30b-a3b"),
    "qwen3-235b-a22b-instruct-2507": ModelName("qwen3-235b-a22b"),
    "qwen3-coder-480b-a35b-instruct": ModelName("qwen3-coder-480b-a35b"),
    "qwen3-next-80b-a3b-instruct-fp8": ModelName("qwen3-next-80b-a3b", "fp8-block"),
    "qwen3-coder-next": ModelName("qwen3-next-80b-a3b"),
    "qwen3.6-35b-a3b": ModelName("qwen3.5-35b-a3b"),
    "llama-3-70b-instruct": ModelName("llama-3-70b"),
    "llama3-70b": ModelName("llama-3-70b"),
    "llama-3-8b-instruct": ModelName("llama-3-8b"),
    "llama2-chat 7b": ModelName("llama-2-7b"),
    "llama2-chat 13b": ModelName("llama-2-13b"),
    "llama2-chat 70b": ModelName("llama-2-70b"),
    "llama-2-7b-32k": ModelName("llama-2-7b"),
    "llama-2-7b-chat int4 g32": ModelName("llama-2-7b", "int4-g32"),
    "llama-2-70b-chat": ModelName("llama-2-70b"),
    "vicuna 7b": ModelName("vicuna-7b-v1.3"),
    "vicuna-7b v1.5": ModelName("vicuna-7b-v1.3", note="v1.5 has the shape of v1.3"),
    "vicuna-13b v1.5": ModelName("vicuna-13b-v1.3", note="v1.5 has the shape of v1.3"),
    "vicuna 13b": ModelName("vicuna-13b-v1.3"),
    "vicuna 33b": ModelName("vicuna-33b-v1.3"),
    "vicuna-33b": ModelName("vicuna-33b-v1.3"),
    "deepseek-r1-distill-llama-8b": ModelName("llama-3.1-8b"),
    "mixtral 8x7b instruct v0.1": ModelName("mixtral-8x7b-v0.1"),
    "deepseek-v3 671b-a37b": ModelName("deepseek-v3"),
    "deepseek-r1-fp4 671b": ModelName("deepseek-r1", "nvfp4"),
    "t5-xxl 11b (encoder-decoder)": ModelName("t5-v1_1-xxl"),
    "tinyllama-1.1b": ModelName("tinyllama-1.1b-v1.0"),
    "qwen3.8-27b": ModelName(
        "qwen3.5-27b",
        note="Qwen3.8-27B is taken as Qwen3.5-27B, which has the same 48 recurrent and 16 attention layers",
    ),
}
_DEVICES: Final = {
    "h200": "h200-sxm-141gb",
    "h100": "h100-sxm5-80gb",
    "h100 80gb": "h100-sxm5-80gb",
    "h100 sxm": "h100-sxm5-80gb",
    "b200": "b200-sxm-180gb",
    "a100": "a100-sxm4-80gb",
    "a100 80gb": "a100-sxm4-80gb",
    "a100 40gb": "a100-sxm4-40gb",
    "a100 80gb pcie": "a100-pcie-80gb",
    "a100-pcie": "a100-pcie-80gb",
    "a800": "a800-sxm4-80gb",
    "apple m1 max": "m1-max",
    "apple m2": None,
    "apple m4": "m4",
    "apple m2 ultra": "m2-ultra",
    "apple m3 ultra": "m3-ultra",
    "apple m5 max": "m5-max",
    "rtx pro 6000 blackwell": "rtx-pro-6000-blackwell",
    "v100": "v100-sxm2-32gb",
    "tesla v100": "v100-sxm2-32gb",
    "rtx 5090 desktop": "rtx-5090",
    "rtx 5090 32gb desktop": "rtx-5090",
    "dgx spark": "dgx-spark-gb10",
    "gb200": "gb200",
}


# Releases of one shape, and spellings of a family.
_RELEASE: Final = re.compile(rf"-(?:{'|'.join(RELEASES)})$")
_FAMILY: Final = re.compile(r"^llama-?(?=\d)")
_STORED: Final = re.compile(r"-(fp8|nvfp4)$")
# Makers whose checkpoints named FP8 hold a scale for each 128 x 128 block (their model cards).
_BLOCKS: Final = ("qwen", "deepseek", "glm", "minimax")
_VENDORS: Final = re.compile(r"^(?:nvidia|amd|apple|tesla)\s+")


def model_of(text: str) -> ModelName:
    """The preset that a table's name means.

    Raises:
        InputError: no preset has its shape.
    """
    if not text:
        raise InputError("the model is not stated")
    plain = re.sub(r" \((?!encoder).*\)$", "", text).strip().lower()
    plain = plain.rpartition("/")[2]
    if plain in _MODELS:
        return _MODELS[plain]
    stored = _STORED.search(plain)
    weights = stored[1] if stored else None
    if weights == "fp8" and plain.startswith(_BLOCKS):
        weights = "fp8-block"
    shape = _RELEASE.sub("", _STORED.sub("", _FAMILY.sub("llama-", plain)))
    if shape in _MODELS:
        return replace(_MODELS[shape], weights=weights)
    try:
        return ModelName(resolve_preset(shape.replace(" ", "-")), weights)
    except RooflinesError:
        raise InputError(f"no preset has the shape of {text!r}") from None


def device_of(name: str) -> str:
    """The profile of a device as a table names it; variants that a name leaves open are the usual ones.

    Raises:
        InputError: no profile, or one whose variant cannot be told.
    """
    plain = name.strip().lower()
    if plain in _DEVICES:
        found = _DEVICES[plain]
    else:
        try:
            found = load_hardware(_VENDORS.sub("", plain).replace(" ", "-")).id
        except RooflinesError:
            found = None
    if found is None:
        raise InputError(f"no profile of device {name!r}")
    return found
