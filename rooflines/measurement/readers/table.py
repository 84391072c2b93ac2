"""A CSV of one's own: a column with the name of a definition of acceptance.

position,survival      one row a position (or `conditional`)
1,0.72
2,0.51

draft_length,accepted-length      one row a run (or any other definition that needs the draft length)
2,2.1
4,2.9

accepted,cycles        how many cycles accepted 0, 1, .. tokens
"""

from __future__ import annotations

import csv
import io
import math
from typing import Final

from rooflines.errors import FileFormatError
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, Source
from rooflines.speculation.definitions import DEFINITIONS

_BY_LENGTH: Final = tuple(known.name for known in DEFINITIONS if known.needs_draft_length)
_BY_POSITION: Final = ("survival", "conditional")


def read_table(source: Source) -> Imported:
    """A CSV with a header, of one of the three shapes.

    Raises:
        FileFormatError: another header, no rows, or a cell that is no number.
    """
    rows = list(csv.reader(io.StringIO(source.text.strip())))
    header = tuple(name.strip() for name in rows[0]) if rows else ()
    records = _records(header, _numbers(rows[1:], header, source.where), source.where)
    return Imported(source=f"CSV, {source.where}", acceptance=records)


def _records(
    header: tuple[str, ...], cells: list[tuple[float, float]], where: str
) -> tuple[AcceptanceRecord, ...]:
    key, name = header if len(header) == 2 else ("", "")  # noqa: PLR2004 - key and value
    if key == "position" and name in _BY_POSITION:
        values = _in_order(cells, 1, where, key)
        return (_record(name, name, values, len(values)),)
    if (key, name) == ("accepted", "cycles"):
        counts = _in_order(cells, 0, where, key)
        return (_record("histogram", "cycles by accepted tokens", counts, max(1, len(counts) - 1)),)
    if key == "draft_length" and name in _BY_LENGTH:
        return tuple(_record(name, name, (value,), _whole(length, where, key)) for length, value in cells)
    raise FileFormatError(
        f"{where} has the columns {', '.join(header) or 'none'}: write position,survival or "
        f"position,conditional, or accepted,cycles, or draft_length and one of {', '.join(_BY_LENGTH)}"
    )


def _record(definition: str, meaning: str, values: tuple[float, ...], draft_length: int) -> AcceptanceRecord:
    return AcceptanceRecord(
        label=f"draft length {draft_length}",
        definition=definition,
        values=values,
        draft_length=draft_length,
        cycles=round(sum(values)) if definition == "histogram" else None,
        tokens_per_cycle=None,
        meaning=f"column {meaning}",
    )


def _numbers(rows: list[list[str]], header: tuple[str, ...], where: str) -> list[tuple[float, float]]:
    cells = []
    for line, row in enumerate(rows, start=2):
        try:
            key, value = (float(cell) for cell in row)
        except ValueError:
            raise FileFormatError(f"{where} line {line}: {row} is not {' and '.join(header)}") from None
        if not (math.isfinite(key) and math.isfinite(value)):
            raise FileFormatError(f"{where} line {line}: {row} is not finite")
        cells.append((key, value))
    if not cells:
        raise FileFormatError(f"{where} has no rows under its header")
    return cells


def _in_order(cells: list[tuple[float, float]], first: int, where: str, key: str) -> tuple[float, ...]:
    places = [place for place, _ in cells]
    if places != [float(first + index) for index in range(len(cells))]:
        raise FileFormatError(f"{where}: {key} must count {first}, {first + 1}, ... without a gap")
    return tuple(value for _, value in cells)


def _whole(value: float, where: str, what: str) -> int:
    if value != int(value) or value < 1:
        raise FileFormatError(f"{where}: {what} is {value:g}, which is no whole number of 1 or more")
    return int(value)
