"""A table as rows, as columns, and as JSON takes it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Columns = dict[str, list[Any]]


def as_rows(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Equally long columns as rows."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def as_columns(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Rows as columns, in the order in which their keys come up; a key that a row lacks is an empty cell.

    No rows have no columns.
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return {name: [row.get(name) for row in listed] for name in names}


def as_records(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Equally long columns as the list of objects that JSON takes."""
    return [{name: plain(value) for name, value in row.items()} for row in as_rows(columns)]


def plain(value: object) -> object:
    """A value as JSON takes it: NumPy scalars become Python's, what is not finite becomes null."""
    item = getattr(value, "item", None)
    value = item() if callable(item) and getattr(value, "ndim", 0) == 0 else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
