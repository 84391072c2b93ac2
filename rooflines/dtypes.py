"""Number formats: how many bits a weight takes with its scales, and which arithmetic it feeds.

Storage and arithmetic are separate facts: int4 weights with bf16 activations move half a byte a weight
but run at the bf16 peak. `NumberFormat.bits` includes group scales and zero points (operator-costs
references: compressed-tensors and GGUF block layouts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rooflines.errors import UnknownNameError

# Names under which a hardware profile may state a dense peak.
ARITHMETIC: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp6", "fp4")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A storage format of weights, activations or cached keys and values.

    Attributes:
        name: as used on the command line and in files.
        bits: bits per element, scales and zero points included (bits).
        arithmetic: the dtype whose peak a matrix product of such weights runs at.
        meaning: one line for people.
    """

    name: str
    bits: float
    arithmetic: str
    meaning: str

    @property
    def bytes_per_element(self) -> float:
        """Bytes that one element takes, its share of the scales included."""
        return self.bits / 8


def _grouped(bits: int, group: int, scale_bits: int, zero_bits: int = 0) -> float:
    return bits + (scale_bits + zero_bits) / group


# GGUF sizes: bytes per block of GGML_QUANT_SIZES, gguf 0.19.0 (https://pypi.org/project/gguf/).
FORMATS: Final[dict[str, NumberFormat]] = {
    entry.name: entry
    for entry in (
        NumberFormat("fp64", 64, "fp64", "IEEE double"),
        NumberFormat("fp32", 32, "fp32", "IEEE single"),
        NumberFormat("bf16", 16, "bf16", "bfloat16"),
        NumberFormat("fp16", 16, "fp16", "IEEE half"),
        NumberFormat("fp8", 8, "fp8", "8-bit float, one scale a tensor or channel; fp8 arithmetic"),
        NumberFormat("fp8-block", _grouped(8, 128 * 128, 32), "fp8", "8-bit float, fp32 scale per 128x128"),
        NumberFormat("w8a16-fp8", 8, "bf16", "8-bit float weights, bf16 arithmetic"),
        NumberFormat("int8", 8, "int8", "8-bit integer weights and activations (W8A8)"),
        NumberFormat("w8a16", 8, "bf16", "8-bit integer weights, bf16 arithmetic"),
        NumberFormat("int4-g128", _grouped(4, 128, 16, 4), "bf16", "GPTQ/AWQ 4-bit, groups of 128, bf16 math"),
        NumberFormat("int4-g32", _grouped(4, 32, 16), "bf16", "symmetric 4-bit, groups of 32, bf16 math"),
        NumberFormat("mxfp4", _grouped(4, 32, 8), "bf16", "4-bit float, 8-bit scale per 32, bf16 math"),
        NumberFormat("nvfp4", _grouped(4, 16, 8), "fp4", "4-bit float, fp8 scale per 16, fp4 arithmetic"),
        NumberFormat("mxfp8", _grouped(8, 32, 8), "fp8", "8-bit float, 8-bit scale per 32"),
        NumberFormat("q8_0", 8.5, "bf16", "GGUF Q8_0"),
        NumberFormat("q6_k", 6.5625, "bf16", "GGUF Q6_K"),
        NumberFormat("q5_k", 5.5, "bf16", "GGUF Q5_K"),
        NumberFormat("q4_k", 4.5, "bf16", "GGUF Q4_K"),
        NumberFormat("q4_0", 4.5, "bf16", "GGUF Q4_0"),
        NumberFormat("q4_1", 5.0, "bf16", "GGUF Q4_1"),
        NumberFormat("iq4_xs", 4.25, "bf16", "GGUF IQ4_XS"),
        NumberFormat("q3_k", 3.4375, "bf16", "GGUF Q3_K"),
        NumberFormat("q2_k", 2.625, "bf16", "GGUF Q2_K"),
    )
}

_SPELLINGS: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "f32": "fp32",
    "f16": "fp16",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "e4m3": "fp8",
    "w8a8": "int8",
    "int4": "int4-g128",
    "w4a16": "int4-g128",
    "fp4": "nvfp4",
}


def number_format(name: str) -> NumberFormat:
    """Find a format by its name or a common spelling (``bfloat16``, ``torch.float16``).

    Raises:
        UnknownNameError: with near matches.
    """
    key = name.strip().lower().removeprefix("torch.")
    found = FORMATS.get(_SPELLINGS.get(key, key))
    if found is None:
        raise UnknownNameError("dtype", name, [*FORMATS, *_SPELLINGS], f"(known: {', '.join(FORMATS)})")
    return found
