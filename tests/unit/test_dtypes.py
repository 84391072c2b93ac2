from __future__ import annotations

import pytest

from rooflines.dtypes import ARITHMETIC, FORMATS, number_format
from rooflines.errors import InputError, UnknownNameError

# Bits per weight with group scales and zero points: arithmetic on the layouts, and for GGUF the block sizes
# of gguf 0.19.0 (https://pypi.org/project/gguf/).
BITS = {
    "bf16": 16,
    "fp8": 8,
    "fp8-block": 8 + 32 / 128**2,
    "int4-g128": 4 + (16 + 4) / 128,
    "int4-g32-sym": 4.5,
    "int8-g64": 8 + (16 + 8) / 64,
    "mxfp4": 4.25,
    "mxfp8": 8.25,
    "nvfp4": 4.5,
    "nf4": 4.5,
    "nf4-double": 4 + 8 / 64 + 32 / (64 * 256),
    "exl3-3.5": 3.5,
    "q4_0": 4.5,
    "q4_1": 5.0,
    "q4_k": 4.5,
    "q5_k": 5.5,
    "q6_k": 6.5625,
    "q8_0": 8.5,
    "q3_k": 3.4375,
    "q2_k": 2.625,
    "iq4_xs": 4.25,
    "iq1_m": 1.75,
}


@pytest.mark.parametrize(("name", "bits"), BITS.items())
def test_bits_per_weight(name, bits):
    assert number_format(name).bits == pytest.approx(bits, rel=1e-12)
    assert number_format(name).bytes_per_element == pytest.approx(bits / 8, rel=1e-12)


# [outputs, inputs] = [576, 7168] and [256, 512], counted by hand from the tensors a checkpoint holds.
MATRIX_BYTES = [
    ("bf16", 576, 7168, 576 * 7168 * 2),
    ("fp8", 576, 7168, 576 * 7168 + 4),
    ("fp8-channel", 576, 7168, 576 * 7168 + 576 * 4),
    ("fp8-channel-s16", 576, 7168, 576 * 7168 + 576 * 2),
    ("fp8-block", 576, 7168, 576 * 7168 + 5 * 56 * 4),  # the fifth row of tiles is half empty
    ("fp8-block-64x64", 576, 7168, 576 * 7168 + 9 * 112 * 4),
    ("fp8-block-s8", 576, 7168, 576 * 7168 + 5 * 56),
    ("int4-g128", 256, 512, 256 * 512 // 2 + 256 * 4 * 2 + 256 * 4 // 2),
    ("int4-g128-sym", 256, 512, 256 * 512 // 2 + 256 * 4 * 2),
    ("int4-g128-act", 256, 512, 256 * 512 // 2 + 256 * 4 * 2 + 256 * 4 // 2 + 512 * 4),
    ("int4-channel", 256, 512, 256 * 512 // 2 + 256 * 2 + 256 // 2),
    ("int4-tensor-sym", 256, 512, 256 * 512 // 2 + 2),
    ("int8", 256, 512, 256 * 512 + 256 * 4),
    ("mxfp4", 256, 512, 256 * 512 // 2 + 256 * 16),
    ("nvfp4", 256, 512, 256 * 512 // 2 + 256 * 32 + 4),
    ("q4_k", 256, 512, 256 * 2 * 144),
    ("exl3-3", 256, 512, 256 * 512 * 3 // 8 + 2 * (256 + 512)),
]


@pytest.mark.parametrize(("name", "outputs", "inputs", "size"), MATRIX_BYTES)
def test_matrix_bytes_count_every_scale(name, outputs, inputs, size):
    assert number_format(name).matrix_bytes(outputs, inputs) == size


def test_gguf_blocks_equal_the_gguf_package():
    constants = pytest.importorskip("gguf.constants")
    integers = {"F64", "F32", "F16", "BF16", "I8", "I16", "I32", "I64", "MXFP4", "NVFP4"}
    for kind, (elements, size_bytes) in constants.GGML_QUANT_SIZES.items():
        if kind.name not in integers:
            assert number_format(kind.name).matrix_bytes(3, 4 * elements) == 12 * size_bytes, kind.name


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4"])
def test_bits_agree_with_the_gguf_package_for_microscaling(name):
    constants = pytest.importorskip("gguf.constants")
    elements, size_bytes = constants.GGML_QUANT_SIZES[constants.GGMLQuantizationType[name.upper()]]
    assert number_format(name).bits == size_bytes * 8 / elements


def test_arithmetic_is_apart_from_storage():
    stored, computed = number_format("mxfp4"), number_format("mxfp4@fp8")
    assert computed.arithmetic == "fp8"
    assert stored.arithmetic == "bf16"
    assert computed.matrix_bytes(64, 64) == stored.matrix_bytes(64, 64)
    assert number_format(computed.name) == computed


def test_weight_only_formats_compute_in_16_bits():
    for name in ("w8a16", "w8a16-fp8", "int4-g128", "mxfp4", "nf4", "q4_k", "exl3-4"):
        assert number_format(name).arithmetic == "bf16"
    for name in ("fp8", "fp8-block", "fp8-channel"):
        assert number_format(name).arithmetic == "fp8"


def test_every_format_is_found_under_its_own_name_and_feeds_a_known_arithmetic():
    for name, entry in FORMATS.items():
        assert number_format(name) == entry
        assert entry.arithmetic in ARITHMETIC
        assert entry.bits > 0


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("torch.bfloat16", "bf16"),
        ("BFloat16", "bf16"),
        (" float16 ", "fp16"),
        ("float8_e4m3fn", "fp8"),
        ("fp8-block-128x128", "fp8-block"),
        ("Q4_K", "q4_k"),
        ("W4A16", "int4-g128"),
    ],
)
def test_common_spellings(spelling, name):
    assert number_format(spelling).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "int9-g128",
        "int4-g0",
        "int4-",
        "int1-g32",
        "fp8-row",
        "fp8-128x128",
        "fp8-block-0x128",
        "exl3-0.5",
        "exl3-9",
        "bf16-s8",
    ],
)
def test_what_is_no_format_is_refused(name):
    with pytest.raises(UnknownNameError):
        number_format(name)


def test_refusal_offers_near_matches():
    with pytest.raises(UnknownNameError, match=r"did you mean .*'bf16'"):
        number_format("bf-16x")


@pytest.mark.parametrize("name", ["fp8@", "fp8@fp9", "mxfp4@mxfp4"])
def test_unknown_arithmetic_is_refused_with_what_is_allowed(name):
    with pytest.raises(InputError, match=r"after '@' comes .*fp8"):
        number_format(name)
