"""Number formats: how many bits a weight takes with its scales, and which arithmetic it feeds.

Storage and arithmetic are separate facts: 4-bit integers under 16-bit activations move half a byte a weight
but run at the bf16 peak. A format is written ``storage`` or ``storage@arithmetic`` (``mxfp4@fp8``). Storage
is a name out of `FORMATS` or follows one of these patterns:

==============================  =====================================================================
``fp8-channel``                 one scale per output row; ``fp8`` alone has one per matrix
``fp8-block-64x128``            one scale per tile of 64 outputs by 128 inputs; ``fp8-block`` is 128x128
``fp8-channel-s16``             the scales take 16 bits each (32 where nothing is said)
``int4-g128``                   groups of 128 inputs, each with a 16-bit scale and a zero point (GPTQ, AWQ)
``int4-g32-sym``                the same without zero points
``int4-channel``                one group per output row
``int4-tensor-sym``             one scale per matrix
``int4-g128-act``               with the group index of every input that GPTQ's act-order stores (32 bits)
``exl3-3.5``                    ExLlamaV3, 3.5 bits a weight
==============================  =====================================================================
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from rooflines.errors import InputError, UnknownNameError

# Names under which a hardware profile may state a dense peak.
ARITHMETIC: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp6", "fp4")


@dataclass(frozen=True, slots=True)
class Companion:
    """Numbers stored beside the elements of a matrix: scales, zero points, group indices.

    Attributes:
        bits: bits of each.
        outputs: rows that share one; None for all of them.
        inputs: columns that share one; None for all of them.
    """

    bits: int
    outputs: int | None
    inputs: int | None

    def count(self, outputs: int, inputs: int) -> int:
        """How many a matrix of shape [outputs, inputs] has; the last tile may be partly filled."""
        rows = math.ceil(outputs / self.outputs) if self.outputs else 1
        return rows * (math.ceil(inputs / self.inputs) if self.inputs else 1)

    @property
    def bits_per_element(self) -> float:
        """Its share of a weight of a large matrix (0 where one number serves a whole row or matrix)."""
        return self.bits / (self.outputs * self.inputs) if self.outputs and self.inputs else 0.0


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A storage format of weights, activations or cached keys and values.

    Attributes:
        name: as used on the command line and in files.
        element_bits: bits of an element itself.
        arithmetic: the dtype whose peak a matrix product of such weights runs at.
        meaning: how it is stored, in one line for people.
        companions: what is stored beside the elements. Scales of activations and descriptions of a shape
            are no weights and are left out.
    """

    name: str
    element_bits: float
    arithmetic: str
    meaning: str
    companions: tuple[Companion, ...] = ()

    @property
    def bits(self) -> float:
        """Bits per element of a large matrix, group scales and zero points included."""
        return self.element_bits + sum(companion.bits_per_element for companion in self.companions)

    @property
    def bytes_per_element(self) -> float:
        """Bytes that one element takes, its share of the group scales included."""
        return self.bits / 8

    def matrix_bytes(self, outputs: int, inputs: int) -> int:
        """Bytes of a matrix of shape [outputs, inputs], every scale and zero point counted."""
        elements = math.ceil(outputs * inputs * self.element_bits / 8)
        return elements + sum(
            math.ceil(companion.count(outputs, inputs) * companion.bits / 8) for companion in self.companions
        )

    def scales(self, outputs: int, inputs: int) -> int:
        """How many scales, zero points and indices a matrix of shape [outputs, inputs] has."""
        return sum(companion.count(outputs, inputs) for companion in self.companions)


_WHOLE_32: Final = Companion(32, None, None)
_ROW_32: Final = Companion(32, 1, None)


def _micro(bits: int, arithmetic: str) -> NumberFormat:
    # Microscaling formats: one E8M0 exponent per 32 elements (OCP MX v1.0, section 5).
    meaning = f"{bits}-bit float, 8-bit scale per 32"
    return NumberFormat(f"mxfp{bits}", bits, arithmetic, meaning, (Companion(8, 1, 32),))


_PLAIN: Final = (
    NumberFormat("fp64", 64, "fp64", "IEEE double"),
    NumberFormat("fp32", 32, "fp32", "IEEE single"),
    NumberFormat("bf16", 16, "bf16", "bfloat16"),
    NumberFormat("fp16", 16, "fp16", "IEEE half"),
    NumberFormat("fp8", 8, "fp8", "8-bit float, one fp32 scale a matrix", (_WHOLE_32,)),
    NumberFormat(
        "fp8-block", 8, "fp8", "8-bit float, fp32 scale per 128x128 tile", (Companion(32, 128, 128),)
    ),
    NumberFormat("w8a16-fp8", 8, "bf16", "8-bit float weights (W8A16)", (_WHOLE_32,)),
    NumberFormat("int8", 8, "int8", "8-bit integer weights and activations (W8A8)", (_ROW_32,)),
    NumberFormat("w8a16", 8, "bf16", "8-bit integer weights (W8A16)", (_ROW_32,)),
    _micro(4, "bf16"),
    _micro(6, "bf16"),
    _micro(8, "fp8"),
    # NVFP4 has one fp32 scale a matrix above its fp8 scales (https://docs.nvidia.com/cuda/cublas,
    # "1D block scaling for FP4 data types").
    NumberFormat(
        "nvfp4",
        4,
        "fp4",
        "4-bit float, fp8 scale per 16, fp32 scale a matrix",
        (Companion(8, 1, 16), _WHOLE_32),
    ),
    # bitsandbytes stores one fp32 absmax per 64 weights; double quantisation makes that 8 bits with one fp32
    # per 256 of them (QLoRA, arXiv 2305.14314, section 3).
    NumberFormat("nf4", 4, "bf16", "bitsandbytes 4-bit, fp32 scale per 64", (Companion(32, 1, 64),)),
    NumberFormat(
        "nf4-double",
        4,
        "bf16",
        "bitsandbytes 4-bit, double quantised scales",
        (Companion(8, 1, 64), Companion(32, 1, 64 * 256)),
    ),
)

# GGUF blocks: (elements, bytes, bits of an element); the rest of the bytes are scales and minima. Source:
# ggml-common.h of llama.cpp as restated by GGML_QUANT_SIZES of gguf 0.19.0 (https://pypi.org/project/gguf/).
GGUF_BLOCKS: Final = {
    "q1_0": (128, 18, 1),
    "q4_0": (32, 18, 4),
    "q4_1": (32, 20, 4),
    "q5_0": (32, 22, 5),
    "q5_1": (32, 24, 5),
    "q8_0": (32, 34, 8),
    "q8_1": (32, 40, 8),
    "q2_k": (256, 84, 2),
    "q3_k": (256, 110, 3),
    "q4_k": (256, 144, 4),
    "q5_k": (256, 176, 5),
    "q6_k": (256, 210, 6),
    "q8_k": (256, 292, 8),
    "iq1_s": (256, 50, 1),
    "iq1_m": (256, 56, 1),
    "iq2_xxs": (256, 66, 2),
    "iq2_xs": (256, 74, 2),
    "iq2_s": (256, 82, 2),
    "iq3_xxs": (256, 98, 3),
    "iq3_s": (256, 110, 3),
    "iq4_nl": (32, 18, 4),
    "iq4_xs": (256, 136, 4),
    "tq1_0": (256, 54, 1),
    "tq2_0": (256, 66, 2),
}


def _gguf(name: str, elements: int, size_bytes: int, bits: int) -> NumberFormat:
    rest = size_bytes * 8 - elements * bits
    return NumberFormat(name, bits, "bf16", f"GGUF {name.upper()}", (Companion(rest, 1, elements),))


_SPELLINGS: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "f64": "fp64",
    "f32": "fp32",
    "f16": "fp16",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8-tensor": "fp8",
    "fp8-block-128x128": "fp8-block",
    "e4m3": "fp8",
    "w8a8": "int8",
    "int4": "int4-g128",
    "w4a16": "int4-g128",
    "fp4": "nvfp4",
}

_FP8: Final = re.compile(r"fp8(?:-(?P<scope>channel|block)(?:-(?P<tile>\d+x\d+))?)?(?:-s(?P<scale>8|16|32))?")
_INTEGER: Final = re.compile(
    r"int(?P<bits>[2-8])-(?:g(?P<group>\d+)|(?P<scope>channel|tensor))(?P<sym>-sym)?(?P<act>-act)?"
)
_EXL3: Final = re.compile(r"exl3-(?P<bits>[1-8](?:\.\d+)?)")


def _fp8(match: re.Match[str]) -> NumberFormat | None:
    scope, tile = match["scope"], match["tile"]
    if tile and scope != "block":
        return None
    rows, columns = (int(side) for side in (tile or "128x128").split("x"))
    if rows == 0 or columns == 0:
        return None
    scale_bits = int(match["scale"] or 32)
    companion, per = {
        None: (Companion(scale_bits, None, None), "matrix"),
        "channel": (Companion(scale_bits, 1, None), "output row"),
        "block": (Companion(scale_bits, rows, columns), f"{rows}x{columns} tile"),
    }[scope]
    return NumberFormat(
        match.string, 8, "fp8", f"8-bit float, {scale_bits}-bit scale per {per}", (companion,)
    )


def _integer(match: re.Match[str]) -> NumberFormat | None:
    bits, group = int(match["bits"]), int(match["group"] or 0)
    if match["group"] and group == 0:
        return None
    outputs, inputs = (None, None) if match["scope"] == "tensor" else (1, group or None)
    companions = [Companion(16, outputs, inputs)]
    if not match["sym"]:
        companions.append(Companion(bits, outputs, inputs))
    if match["act"]:
        companions.append(Companion(32, None, 1))
    per = (
        f"group of {group} inputs" if group else {"channel": "output row", "tensor": "matrix"}[match["scope"]]
    )
    zero = "" if match["sym"] else " and zero point"
    order = ", with group indices" if match["act"] else ""
    return NumberFormat(
        match.string,
        bits,
        "bf16",
        f"{bits}-bit integer, scale{zero} per {per}{order}",
        tuple(companions),
    )


def _exl3(match: re.Match[str]) -> NumberFormat:
    # One fp16 sign-and-scale vector per side of a matrix (suh and svh, ExLlamaV3's doc/exl3.md).
    vectors = (Companion(16, 1, None), Companion(16, None, 1))
    return NumberFormat(
        match.string, float(match["bits"]), "bf16", "ExLlamaV3 trellis, fp16 vectors per side", vectors
    )


def _patterned(name: str) -> NumberFormat | None:
    """The format that a patterned name describes, or None."""
    for pattern, build in ((_FP8, _fp8), (_INTEGER, _integer), (_EXL3, _exl3)):
        if match := pattern.fullmatch(name):
            return build(match)
    return None


def _common() -> tuple[NumberFormat, ...]:
    named = (_patterned(name) for name in ("int4-g128", "int4-g32-sym"))
    return (*_PLAIN, *(found for found in named if found))


FORMATS: Final[dict[str, NumberFormat]] = {
    entry.name: entry for entry in (*_common(), *(_gguf(name, *block) for name, block in GGUF_BLOCKS.items()))
}


@lru_cache(maxsize=1024)
def number_format(name: str) -> NumberFormat:
    """Find a format by name, common spelling (``bfloat16``, ``torch.float16``) or pattern (``int4-g64-sym``).

    ``storage@arithmetic`` keeps the storage and sets the arithmetic: ``mxfp4@fp8``.

    Raises:
        UnknownNameError: with near matches.
        InputError: the arithmetic after ``@`` is no dtype that hardware profiles know.
    """
    key, at, arithmetic = name.strip().lower().removeprefix("torch.").partition("@")
    key = _SPELLINGS.get(key, key)
    found = FORMATS.get(key) or _patterned(key)
    if found is None:
        raise UnknownNameError("dtype", name, [*FORMATS, *_SPELLINGS], f"(known: {', '.join(FORMATS)})")
    if not at or arithmetic == found.arithmetic:
        return found
    if arithmetic not in ARITHMETIC:
        allowed = ", ".join(ARITHMETIC)
        raise InputError(f"unknown arithmetic {arithmetic!r} in dtype {name!r}: after '@' comes {allowed}")
    return replace(found, name=f"{key}@{arithmetic}", arithmetic=arithmetic)
