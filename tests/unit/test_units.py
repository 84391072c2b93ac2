from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import UnitError
from rooflines.units import format_quantity, parse_quantity

READ = [
    ("3.35 TB/s", "byte/s", 3.35e12),
    ("3350GB/s", "byte/s", 3.35e12),
    ("80 GB", "byte", 80e9),
    ("80 GiB", "byte", 85_899_345_920),
    # What the driver reports on an H100 and the same memory in bytes.
    ("81559 MiB", "byte", 85_520_809_984),
    ("512 KiB", "byte", 524_288),
    ("1 kB", "byte", 1000),
    ("1 KB", "byte", 1000),
    ("7 bytes", "byte", 7),
    ("8EB", "byte", 8e18),
    ("1_000 B", "byte", 1000),
    (" 80 GB\n", "byte", 80e9),
    ("989.5 TFLOP/s", "FLOP/s", 9.895e14),
    ("989.5 TFLOPS", "FLOP/s", 9.895e14),
    ("1979 TOPS", "FLOP/s", 1.979e15),
    ("1979 TOP/s", "FLOP/s", 1.979e15),
    ("2 GFLOP", "FLOP", 2e9),
    ("1.4e14 FLOPs", "FLOP", 1.4e14),
    ("6.75 ms", "s", 6.75e-3),
    ("4 us", "s", 4e-6),
    ("4 \N{MICRO SIGN}s", "s", 4e-6),
    ("4 \N{GREEK SMALL LETTER MU}s", "s", 4e-6),
    ("30 ns", "s", 30e-9),
    ("2 s", "s", 2),
    ("1.83 GHz", "Hz", 1.83e9),
    ("0.7 kW", "W", 700),
    ("295 FLOP/B", "FLOP/byte", 295),
    ("+.5 FLOP/byte", "FLOP/byte", 0.5),
    ("0 B", "byte", 0),
]


@pytest.mark.parametrize(("text", "dimension", "si"), READ)
def test_a_quoted_quantity_reads_as_si(text, dimension, si):
    assert parse_quantity(text, dimension) == pytest.approx(si, rel=1e-15)


def test_decimal_and_binary_prefixes_are_never_exchanged():
    assert parse_quantity("80 GiB", "byte") / parse_quantity("80 GB", "byte") == 2**30 / 1e9


@pytest.mark.parametrize("bare", [80, 80.0, "80", " 80 ", "8e10", 0])
def test_a_bare_number_is_refused_with_the_fix(bare):
    with pytest.raises(UnitError, match="has no unit") as caught:
        parse_quantity(bare, "byte")
    assert repr(bare) in str(caught.value)
    assert "'80 GB' or '80 GiB'" in str(caught.value)


@pytest.mark.parametrize(
    "given", [None, True, [80], "", "GB", "fast", "3,350 GB/s", "80 G B", "nan B", "inf B", "1.2.3 B"]
)
def test_what_is_no_quantity_is_refused(given):
    with pytest.raises(UnitError, match="is not a quantity"):
        parse_quantity(given, "byte")


@pytest.mark.parametrize("given", ["100 Gb", "100 Gbit", "100 Gbps", "100 Gb/s", "100 Gib"])
def test_bits_are_not_bytes(given):
    with pytest.raises(UnitError, match="is in bits, not bytes"):
        parse_quantity(given, "byte/s" if "s" in given else "byte")


@pytest.mark.parametrize(
    ("given", "dimension"),
    [
        ("80 gb", "byte"),
        ("80 XB", "byte"),
        ("5 mW", "W"),
        ("5 ks", "s"),
        ("5 mB", "byte"),
        ("5 GiFLOP/s", "FLOP/s"),
        ("5 GiHz", "Hz"),
        ("5 %", "FLOP/s"),
    ],
)
def test_an_unknown_unit_or_prefix_is_refused(given, dimension):
    with pytest.raises(UnitError, match="has an unknown unit"):
        parse_quantity(given, dimension)


@pytest.mark.parametrize(
    ("given", "dimension", "says"),
    [
        ("80 GB", "byte/s", "is in byte; byte/s is needed"),
        ("3.35 TB/s", "byte", "is in byte/s; byte is needed"),
        ("989 TFLOPs", "FLOP/s", "is in FLOP; FLOP/s is needed"),
        ("989 TFLOP/s", "FLOP", "is in FLOP/s; FLOP is needed"),
        ("1 s", "Hz", "is in s; Hz is needed"),
        ("295 FLOP/B", "FLOP", "is in FLOP/byte; FLOP is needed"),
    ],
)
def test_another_dimension_is_refused(given, dimension, says):
    with pytest.raises(UnitError, match=says):
        parse_quantity(given, dimension)


@pytest.mark.parametrize("given", ["-1 GB", "1e400 B", "1e300 EB"])
def test_negative_and_infinite_quantities_are_refused(given):
    with pytest.raises(UnitError, match="must be finite and not negative"):
        parse_quantity(given, "byte")


def test_minus_zero_reads_as_zero():
    assert math.copysign(1.0, parse_quantity("-0 B", "byte")) == 1.0


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.text())))
def test_any_input_gives_a_number_or_a_unit_error(anything):
    try:
        value = parse_quantity(anything, "byte")
    except UnitError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most inputs are refused, and none may raise another error
    else:
        assert 0 <= value < math.inf


WRITTEN = [
    (3.35e12, "byte/s", "3.35 TB/s"),
    (85_520_809_984, "byte", "85.5 GB"),
    (9.895e14, "FLOP/s", "990 TFLOP/s"),
    (6.75e-3, "s", "6.75 ms"),
    (4e-6, "s", "4 us"),
    (1e-12, "s", "0.001 ns"),
    (100.0, "s", "100 s"),
    (0.5, "byte", "0.5 B"),
    (0.0, "s", "0 s"),
    (math.inf, "s", "inf s"),
    (999.9e9, "byte/s", "1 TB/s"),  # rounding reaches the next prefix
    (999.4e9, "byte/s", "999 GB/s"),
    (295.4, "FLOP/byte", "295 FLOP/B"),
    (2048.0, "FLOP/byte", "2050 FLOP/B"),  # no exponent, no prefix
    (0.0625, "FLOP/byte", "0.0625 FLOP/B"),
    (-2e9, "FLOP", "-2 GFLOP"),
    (1e3, "byte", "1 kB"),
]


@pytest.mark.parametrize(("si", "dimension", "text"), WRITTEN)
def test_si_is_written_with_a_readable_prefix(si, dimension, text):
    assert format_quantity(si, dimension) == text


def test_more_digits_can_be_asked_for():
    assert format_quantity(85_520_809_984, "byte", digits=6) == "85.5208 GB"
    assert format_quantity(85_520_809_984, "byte", digits=11) == "85.520809984 GB"


@pytest.mark.parametrize("dimension", ["byte", "byte/s", "FLOP", "FLOP/s", "s", "Hz", "W", "FLOP/byte"])
@given(value=st.floats(1e-9, 1e20), digits=st.integers(1, 12))
def test_what_is_written_reads_back_within_its_digits(dimension, value, digits):
    text = format_quantity(value, dimension, digits)
    assert parse_quantity(text, dimension) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))
