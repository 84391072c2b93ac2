"""One table, four ways: text for a terminal, Markdown to paste, CSV and JSON for machines.

Numbers are written in full in CSV and JSON, and with a few significant digits for people.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rooflines import rows as table_rows
from rooflines.errors import InputError
from rooflines.units import Dimension, format_quantity

FORMATS: Final = ("text", "markdown", "csv", "json")
Columns = Mapping[str, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that people read with its unit, and machines in SI.

    Attributes:
        value: in SI units.
        dimension: what it is.
    """

    value: float
    dimension: Dimension


def render(columns: Columns, fmt: str, title: str | None = None) -> str:
    """Write a table of equally long columns.

    Args:
        columns: name (with its unit) -> values; None is an empty cell.
        fmt: ``text``, ``markdown``, ``csv`` or ``json`` (a list of objects).
        title: a line above the table, in text and Markdown.

    Returns:
        The table, without a newline at its end.

    Raises:
        InputError: an unknown format, or columns of different lengths.
    """
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"columns differ in length: { {name: len(v) for name, v in columns.items()} }")
    rows = list(zip(*columns.values(), strict=True))
    if fmt == "json":
        return json.dumps([dict(zip(columns, map(plain, row), strict=True)) for row in rows], indent=2)
    if fmt == "csv":
        return _csv(columns, rows)
    if fmt not in FORMATS:
        raise InputError(f"unknown format {fmt!r}; known: {', '.join(FORMATS)}")
    cells = [[readable(value) for value in row] for row in rows]
    right = [
        all(_is_number(value) or value is None for value in values) and bool(values)
        for values in columns.values()
    ]
    body = _markdown(columns, cells, right) if fmt == "markdown" else _text(columns, cells, right)
    heading = [f"**{title}**" if fmt == "markdown" else title, ""] if title else []
    return "\n".join([*heading, *body])


def document_text(document: Mapping[str, Any]) -> str:
    """An answer as JSON."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def not_modeled_text(what: Iterable[str]) -> str:
    """What the numbers of an answer leave out, in one sentence."""
    return f"Not modelled: {'; '.join(what)}."


def quantities(values: Iterable[object], dimension: Dimension) -> list[Quantity | None]:
    """Numbers of one dimension as cells; what is missing stays empty."""
    return [None if value is None else Quantity(float(str(value)), dimension) for value in values]


def plain(value: object) -> object:
    """A value as JSON takes it: NumPy scalars become Python's, what is not finite becomes null."""
    return table_rows.plain(value.value if isinstance(value, Quantity) else value)


def readable(value: object, digits: int = 4) -> str:
    """A value as people read it: a few significant digits, no exponent where none is needed."""
    if isinstance(value, Quantity):
        return format_quantity(value.value, value.dimension)
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value == 0 or 1e-3 <= abs(value) < 1e6:  # noqa: PLR2004 - the range that reads without an exponent
            rounded = float(f"{value:.{digits}g}")
            return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:g}"
        return f"{value:.{digits}g}"
    return str(value)


def _is_number(value: object) -> bool:
    return (
        not isinstance(value, Quantity)
        and isinstance(plain(value), int | float)
        and not isinstance(value, bool)
    )


def _csv(columns: Columns, rows: Sequence[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if plain(value) is None else plain(value) for value in row] for row in rows])
    return buffer.getvalue().rstrip("\n")


def _markdown(names: Columns, cells: list[list[str]], right: list[bool]) -> list[str]:
    def line(parts: Sequence[str]) -> str:
        return "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |"

    return [
        line(list(names)),
        "|" + "|".join("---:" if number else "---" for number in right) + "|",
        *map(line, cells),
    ]


def _text(names: Columns, cells: list[list[str]], right: list[bool]) -> list[str]:
    lines = [list(names), *cells]
    widths = [max(len(line[index]) for line in lines) for index in range(len(right))]
    written = [
        "  ".join(
            part.rjust(width) if number else part.ljust(width)
            for part, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return [written[0], "  ".join("-" * width for width in widths), *written[1:]]
