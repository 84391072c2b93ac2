"""Pint (https://pint.readthedocs.io) has its own table of prefixes and its own algebra of dimensions."""

from __future__ import annotations

import itertools

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import UnitError
from rooflines.units import Dimension, format_quantity, parse_quantity

# Our dimension -> the unit that pint converts to, and our spellings that pint also knows.
SI: dict[Dimension, str] = {
    "byte": "byte",
    "byte/s": "byte/s",
    "FLOP": "FLOP",
    "FLOP/s": "FLOP/s",
    "FLOP/byte": "FLOP/byte",
    "s": "s",
    "Hz": "Hz",
    "W": "W",
}
SPELLINGS: dict[Dimension, tuple[str, ...]] = {
    "byte": ("B", "byte"),
    "byte/s": ("B/s",),
    "FLOP": ("FLOP",),
    "FLOP/s": ("FLOP/s",),
    "FLOP/byte": ("FLOP/B", "FLOP/byte"),
    "s": ("s",),
    "Hz": ("Hz",),
    "W": ("W",),
}
# A byte has no dimension in pint, so these it does not tell apart; we do.
SAME_TO_PINT = ({"byte/s", "Hz"}, {"FLOP/byte", "FLOP"})
DECIMAL = ("", "k", "M", "G", "T", "P", "E")
BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi")
SMALL = ("", "m", "u", "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}", "n")


def prefixes(dimension):
    if dimension == "s":
        return SMALL
    return DECIMAL + (BINARY if dimension in ("byte", "byte/s") else ())


UNITS = [
    (dimension, prefix + spelling)
    for dimension, spellings in SPELLINGS.items()
    for prefix, spelling in itertools.product(prefixes(dimension), spellings)
]


@pytest.fixture(scope="module")
def oracle():
    registry = pint.UnitRegistry()
    registry.define("FLOP = [arithmetic]")
    return registry


def test_the_table_of_units_is_not_empty():
    assert len(UNITS) > 80


@pytest.mark.parametrize(("dimension", "unit"), UNITS)
@pytest.mark.parametrize("number", ["1", "3.35", "81559", "2.5e-3"])
def test_every_unit_means_what_pint_says(oracle, dimension, unit, number):
    expected = oracle.Quantity(float(number), unit).to(SI[dimension]).magnitude
    assert parse_quantity(f"{number} {unit}", dimension) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("dimension", "unit"), UNITS)
def test_no_unit_passes_for_another_dimension(oracle, dimension, unit):
    for other, si in SI.items():
        if other == dimension:
            continue
        assert oracle.Unit(unit).is_compatible_with(si) == ({dimension, other} in SAME_TO_PINT)
        with pytest.raises(UnitError, match=f"{other} is needed"):
            parse_quantity(f"1 {unit}", other)


@pytest.mark.parametrize("dimension", SI)
@given(value=st.floats(1e-9, 1e20))
def test_what_is_written_is_understood_by_pint(oracle, dimension, value):
    number, unit = format_quantity(value, dimension, digits=12).split(" ")
    read = oracle.Quantity(float(number), unit).to(SI[dimension]).magnitude
    assert read == pytest.approx(value, rel=1e-11)
