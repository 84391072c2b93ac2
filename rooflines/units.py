"""The one place that knows prefixes: quoted strings with units outside, plain SI numbers inside.

>>> parse_quantity("3.35 TB/s", "byte/s")
3350000000000.0
>>> parse_quantity("80 GiB", "byte") == 80 * 2**30
True
>>> format_quantity(3.35e12, "byte/s")
'3.35 TB/s'

Decimal prefixes are powers of 1000 and binary ones (Ki, Mi, Gi, Ti) powers of 1024; they are never
exchanged. A bare number is refused, since 80 GB and 80 GiB differ by 7 %.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from rooflines.errors import UnitError

Dimension = Literal["byte", "byte/s", "FLOP/s", "FLOP", "s", "Hz", "W", "FLOP/byte"]

_DECIMAL: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
# Unicode has two letters that look like mu, and keyboards differ in which one they type.
_SMALL: Final = {"m": 1e-3, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "\N{GREEK SMALL LETTER MU}": 1e-6, "n": 1e-9}

# Spelling of each base unit -> its dimension. "OP" is an integer operation, counted like a FLOP.
_BASES: Final[dict[str, Dimension]] = {
    "B": "byte",
    "byte": "byte",
    "bytes": "byte",
    "B/s": "byte/s",
    "FLOP/s": "FLOP/s",
    "FLOPS": "FLOP/s",
    "FLOPs/s": "FLOP/s",
    "OP/s": "FLOP/s",
    "OPS": "FLOP/s",
    "FLOP": "FLOP",
    "FLOPs": "FLOP",
    "s": "s",
    "Hz": "Hz",
    "W": "W",
    "FLOP/B": "FLOP/byte",
    "FLOP/byte": "FLOP/byte",
}
_SYMBOL: Final[dict[Dimension, str]] = {
    "byte": "B",
    "byte/s": "B/s",
    "FLOP/s": "FLOP/s",
    "FLOP": "FLOP",
    "s": "s",
    "Hz": "Hz",
    "W": "W",
    "FLOP/byte": "FLOP/B",
}
_EXAMPLE: Final[dict[Dimension, str]] = {
    "byte": "'80 GB' or '80 GiB'",
    "byte/s": "'3.35 TB/s'",
    "FLOP/s": "'989 TFLOP/s'",
    "FLOP": "'2 GFLOP'",
    "s": "'4 us'",
    "Hz": "'1.83 GHz'",
    "W": "'700 W'",
    "FLOP/byte": "'295 FLOP/B'",
}
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")


def parse_quantity(text: object, dimension: Dimension) -> float:
    """Read a quoted quantity such as ``"3.35 TB/s"`` as a number in SI.

    Args:
        text: a string of a number, an optional space and a unit.
        dimension: what the quantity must be; bits are not bytes and are refused.

    Returns:
        The value in bytes, bytes/s, FLOP/s, FLOP, seconds, hertz, watts or FLOP/byte.

    Raises:
        UnitError: no unit, an unknown unit, another dimension, a negative or non-finite number.
    """
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        if isinstance(text, int | float) and not isinstance(text, bool):
            raise UnitError(
                f"{text!r} has no unit: write a quantity as a quoted string such as {_EXAMPLE[dimension]}"
            )
        raise UnitError(
            f"{text!r} is not a quantity: write a number and a unit such as {_EXAMPLE[dimension]}"
        )
    number, unit = match.groups()
    if not unit:
        raise UnitError(f"{text!r} has no unit: write one, such as {_EXAMPLE[dimension]}")
    value = float(number.replace("_", "")) * _scale(unit, dimension, str(text))
    if value < 0 or not math.isfinite(value):
        raise UnitError(f"{text!r} must be finite and not negative")
    return abs(value)  # -0.0 would turn a division by it into minus infinity


def _scale(unit: str, dimension: Dimension, text: str) -> float:
    for base, meaning in sorted(_BASES.items(), key=lambda item: -len(item[0])):
        prefix = unit[: -len(base)] if unit.endswith(base) else None
        if prefix is None:
            continue
        binary = _BINARY if meaning in ("byte", "byte/s") else {}
        small = _SMALL if meaning == "s" else {}
        factor = (small or {**_DECIMAL, **binary}).get(prefix, 1.0 if prefix == "" else None)
        if factor is None:
            continue
        if meaning != dimension:
            raise UnitError(f"{text!r} is in {meaning}; {dimension} is needed, such as {_EXAMPLE[dimension]}")
        return factor
    bits = re.fullmatch(r"([kKMGTP]i?)?(b|bit|bits|bps)(/s)?", unit)
    reason = "is in bits, not bytes" if bits else f"has an unknown unit {unit!r}"
    raise UnitError(f"{text!r} {reason}: write {_EXAMPLE[dimension]} (capital B is byte)")


def format_quantity(value: float, dimension: Dimension, digits: int = 3) -> str:
    """Write an SI number with a readable decimal prefix, e.g. ``3.35 TB/s``, ``6.75 ms``.

    Args:
        value: in SI units.
        dimension: what it is.
        digits: significant digits.
    """
    symbol = _SYMBOL[dimension]
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {symbol}"
    if dimension == "FLOP/byte":
        steps = {"": 1.0}  # an intensity is read against a plain axis
    elif dimension == "s":
        steps = {"": 1.0, **{name: step for name, step in _SMALL.items() if name.isascii()}}
    else:
        steps = {name: step for name, step in _DECIMAL.items() if name != "K"}
    rounded = float(f"{abs(value):.{digits}g}")
    prefix, factor = max(
        ((name, step) for name, step in steps.items() if step <= rounded),
        key=lambda item: item[1],
        default=min(steps.items(), key=lambda item: item[1]),
    )
    return f"{float(f'{value / factor:.{digits}g}'):.{max(digits, 6)}g} {prefix}{symbol}"
