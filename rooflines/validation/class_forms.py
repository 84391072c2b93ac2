"""The time form of every operator class: which constants are free, and between which values.

Every class has few free constants, each with a meaning; what a class leaves fixed is textbook. The forms, and
what was tried beside them, are in docs/calibration.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.dtypes import number_format
from rooflines.errors import InputError
from rooflines.hardware.constants import DEFAULT_SHARPNESS, TEXTBOOK, Constants
from rooflines.hardware.profile import HardwareProfile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the search for a constant starts, and between which values it stays."""

    start: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class ClassForm:
    """The time form of one operator class.

    Attributes:
        name: as calibrations call it.
        free: field of `Constants` -> bounds, for those that are fitted.
        fixed: field -> value, for those that are not textbook.
        fewest_shapes: shapes without which the free constants are not separable.
        advice: what to measure when they are not.
    """

    name: str
    free: Mapping[str, Bounds]
    fixed: Mapping[str, float] = field(default_factory=dict)
    fewest_shapes: int = 1
    advice: str = ""

    def constants(self, logs: Floats) -> Constants:
        """Constants out of the logarithms of the free ones, in their order."""
        values = {name: float(value) for name, value in zip(self.free, np.exp(logs), strict=True)}
        return replace(TEXTBOOK, **self.fixed, **values)


# Shares of bandwidth stay below the datasheet's; those of peaks may exceed it where a peak is stated too low.
_SHARE: Final = Bounds(0.85, 0.005, 1.0)
_PEAK_SHARE: Final = Bounds(0.6, 0.02, 1.3)
_FLOOR: Final = Bounds(12e-6, 1e-9, 1e-3)

_BANDWIDTH_SHARE: Final = Bounds(0.8, 0.02, 1.0)
_COMPUTE_SHARE: Final = Bounds(0.75, 0.02, 1.3)
_LINEAR_FLOOR: Final = Bounds(4e-6, 1e-8, 1e-3)
_SHARPNESS: Final = Bounds(DEFAULT_SHARPNESS, 1.0, 8.0)
_SIZES: Final = "3 shapes or more, a few MiB to a few hundred MiB, with m of 1, 16, 64, 256, 1024 and 4096"
_FEWEST_SHAPES: Final = 3

# Products with a weight matrix; which of these forms serves is told by `_linear_form`.
SMOOTH: Final = ClassForm(
    "smooth maximum and floor",
    {
        "bandwidth_efficiency": _BANDWIDTH_SHARE,
        "compute_efficiency": _COMPUTE_SHARE,
        "overhead_s": _LINEAR_FLOOR,
    },
    {"sharpness": DEFAULT_SHARPNESS},
    _FEWEST_SHAPES,
    _SIZES,
)
PADDED: Final = ClassForm(
    "smooth maximum over padded rows, and floor",
    {**SMOOTH.free, "sharpness": _SHARPNESS},
    {"padded_to_rows": 128.0},
    _FEWEST_SHAPES,
    _SIZES,
)
WAVES: Final = ClassForm(
    "smooth maximum over tiles in waves, and floor",
    {**SMOOTH.free, "sharpness": _SHARPNESS, "tile_half_intensity": Bounds(10.0, 0.5, 500.0)},
    {"smallest_tile_rows": 64.0},
    _FEWEST_SHAPES,
    _SIZES,
)
NARROW: Final = ClassForm(
    "smooth maximum over narrow tiles in waves, and floor",
    {**SMOOTH.free, "tile_half_intensity": Bounds(10.0, 0.5, 500.0)},
    {"sharpness": DEFAULT_SHARPNESS, "smallest_tile_rows": 16.0},
    _FEWEST_SHAPES,
    _SIZES,
)
LINEAR_FORMS: Final = (SMOOTH, PADDED, WAVES, NARROW)
# Fewer shapes do not show how tiles fill a device.
_SHAPES_FOR_TILES: Final = 6
_ONE_BYTE: Final = 8
_SIXTEEN_BITS: Final = 16

# Rows of the tiles of grouped products up to one position per expert, over those beyond: the rule of kernels
# that vLLM and SGLang had in common (``get_default_config``: BLOCK_SIZE_M of 16 while M <= E, else 64,
# https://github.com/vllm-project/vllm/blob/v0.6.0/vllm/model_executor/layers/fused_moe/fused_moe.py).
_NARROW_TILES: Final = 16.0 / 64.0

FORMS: Final[Mapping[str, ClassForm]] = {
    # One more constant (a compute term, a smooth maximum) changed no held-out error by 0.1 points.
    "decode_attention": ClassForm(
        "bandwidth and floor",
        {"bandwidth_efficiency": _SHARE, "overhead_s": _FLOOR},
        {"sharpness": DEFAULT_SHARPNESS},
        advice="caches of 2x to 100x the last-level cache, such as batch 1..64 with 2k..64k of context",
    ),
    # Writing the cache is a kernel of its own before the products, so the times add; the loop over the keys
    # of one tile is serial, which a constant prices. New keys and values are read in 16 bits before they are
    # written in the format of the cache (`form_of`): counting both brought held-out errors with an fp8 cache
    # from 13.4 / 13.7 / 6.8 to 11.7 / 8.7 / 4.6 % (up to 512, 2048 and beyond), at 16 bits it changed little.
    "prefill_attention": ClassForm(
        "sum of products, bytes, a serial loop and a floor",
        {
            "compute_efficiency": _PEAK_SHARE,
            "bandwidth_efficiency": Bounds(0.35, 0.005, 1.0),
            "token_overhead_s": Bounds(10e-9, 1e-12, 1e-6),
            "overhead_s": _FLOOR,
        },
        {"sharpness": 1.0},
        advice="prompts of 64 to 16k tokens, with one sequence and with several",
    ),
    # An expert's products waste a part of a tile of rows, so their share saturates in rows per expert hit; up
    # to one position per expert kernels take narrow tiles (`_NARROW_TILES`).
    "moe": ClassForm(
        "smooth maximum, floor, and saturation in rows per expert by two tiles",
        {
            "bandwidth_efficiency": _SHARE,
            "compute_efficiency": Bounds(0.35, 0.02, 1.3),
            "overhead_s": Bounds(25e-6, 1e-9, 1e-3),
            "saturation_tokens": Bounds(50.0, 0.1, 500.0),
        },
        {"sharpness": DEFAULT_SHARPNESS, "narrow_tile_share": _NARROW_TILES},
        advice="1 to 4096 tokens",
    ),
    # NCCL takes the faster of its protocols (rooflines.timing.forms.faster_protocol_s): beyond 2 MiB this
    # brought held-out errors from 19 to 8 %.
    "collective": ClassForm(
        "latency and bandwidth by number of devices, the faster of two protocols",
        {
            "bandwidth_efficiency": Bounds(0.6, 0.005, 1.0),
            "overhead_s": Bounds(5e-6, 1e-7, 1e-3),
            "rank_overhead_s": Bounds(1e-6, 1e-9, 1e-4),
            "rank_contention": Bounds(0.3, 0.01, 4.0),
            "bulk_overhead_s": Bounds(1e-5, 1e-8, 1e-3),
        },
        {"sharpness": 1.0},
        fewest_shapes=3,
        advice="messages of 1 KiB to 64 MiB on 2, 4 and 8 devices",
    ),
    "small": ClassForm(
        "bandwidth and floor",
        {"bandwidth_efficiency": _SHARE, "overhead_s": Bounds(2.5e-6, 1e-7, 1e-4)},
        {"sharpness": 1.0},
        advice="1 to 4096 tokens",
    ),
}


# Custom all-reduces of serving engines take one stage below so many bytes (vLLM, csrc/custom_all_reduce.cuh,
# https://github.com/vllm-project/vllm); NCCL's rings have no such kernel.
_ONE_STAGE_BYTES: Final = 512 * 2.0**10
STAGES: Final = replace(
    FORMS["collective"],
    name="latency and bandwidth by number of devices, in one stage or two, and NCCL beyond",
    fixed={**FORMS["collective"].fixed, "one_stage_bytes": _ONE_STAGE_BYTES},
)
_MIB: Final = 2.0**20
# Messages that kernels of engines leave to NCCL; from there on the tables have the same times for both. vLLM:
# ``max_size`` of custom_all_reduce.py, on Hopper the tables of all_reduce_utils.py for symmetric memory (64
# MiB; on Blackwell 8 to 128 by the number of devices, 32 for four). SGLang: ``_MAX_CAR_SIZE`` of
# custom_all_reduce.py, which sums that size itself, and twice as much in custom_all_reduce_v2.py.
# TensorRT-LLM: customAllReduceUtils.h (16 MB for two devices).
_NCCL_FROM_BYTES: Final[Mapping[str, Mapping[str, float]]] = {
    "vllm": {"Hopper": 64 * _MIB, "Blackwell": 32 * _MIB, "": 8 * _MIB},
    "sglang": {"Hopper": 16 * _MIB + 1, "Blackwell": 16 * _MIB + 1, "": 8 * _MIB + 1},
    "trtllm": {"": 8e6},
}

# Classes that have a form.
FITTED: Final = ("linear", *FORMS)


def form_of(
    operator: str, storage: str, profile: HardwareProfile, shapes: int, engine: str = ""
) -> ClassForm:
    """The form of a class.

    Args:
        operator: class.
        storage: format of the weights.
        profile: the device.
        shapes: distinct shapes that it is fitted to.
        engine: what ran the kernels.

    Raises:
        InputError: the class has none.
    """
    if operator == "linear":
        return _linear_form(storage, profile, shapes)
    if operator not in FORMS:
        raise InputError(f"operator class {operator!r} has no form here: fit one of {', '.join(FITTED)}")
    if operator == "collective" and engine in _NCCL_FROM_BYTES:
        limits = _NCCL_FROM_BYTES[engine]
        limit = limits.get(profile.architecture.split(" ", maxsplit=1)[0], limits[""])
        return replace(STAGES, fixed={**STAGES.fixed, "bulk_from_bytes": limit})
    form = FORMS[operator]
    if operator == "prefill_attention":
        traffic = 1.0 + _SIXTEEN_BITS / number_format(storage).bits
        return replace(form, fixed={**form.fixed, "kv_traffic": traffic})
    return form


def _linear_form(storage: str, profile: HardwareProfile, shapes: int) -> ClassForm:
    """Tiles in waves, with three exceptions.

    Weights of 8 bits or less under wider arithmetic, or integers, have kernels with narrow tiles; 16-bit
    kernels on Ampere step at powers of two of the rows; and few shapes do not show how tiles fill a device.
    """
    weights = number_format(storage)
    if weights.element_bits <= _ONE_BYTE and weights.arithmetic in ("bf16", "fp16", "int8"):
        return NARROW
    if shapes < _SHAPES_FOR_TILES:
        return SMOOTH
    return PADDED if profile.architecture.startswith("Ampere") else WAVES
