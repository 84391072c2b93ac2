"""Cells of a CSV table: words without blanks around them, numbers, and why a row's numbers cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.rows import read_csv
from rooflines.validation.kernel_tables.rows import Chosen, Floats, Texts

if TYPE_CHECKING:
    import pandas as pd

LINE: Final = "line of the file"  # no table has such a column
# No size or time in microseconds of a kernel is as large; products of a few such numbers are still finite.
LARGEST: Final = 1e12
_HEADER: Final = 2  # the first row of values is line 2 of its file


def read_cells(path: Path) -> pd.DataFrame:
    """Read a CSV file as text, with the line of each row; rows without any text are no rows.

    Raises:
        FileFormatError: the file is missing, is no CSV, or is written with other separators.
    """
    frame = read_csv(path, "table", as_text=True)
    frame.columns = frame.columns.str.strip()
    frame = frame.apply(lambda cells: cells.str.strip())
    written = (frame != "").any(axis=1)
    frame[LINE] = np.arange(len(frame)) + _HEADER
    rows: pd.DataFrame = frame[written].reset_index(drop=True)
    return rows


def read_numbers(frame: pd.DataFrame, sizes: Sequence[str], time: str) -> tuple[dict[str, Floats], Texts]:
    """Columns of sizes and of a time as numbers.

    Args:
        frame: text, rows N.
        sizes: columns of whole numbers.
        time: column of the measured time.

    Returns:
        Numbers by column (N), and for each row why they cannot be used, '' where they can.
    """
    import pandas as pd

    numbers: dict[str, Floats] = {}
    why = np.full(len(frame), "", dtype=object)

    def add(rule: Chosen | np.bool_, reason: str) -> None:
        why[np.asarray(rule, dtype=bool) & (why == "")] = reason

    for name in (*sizes, time):
        values = np.asarray(pd.to_numeric(frame[name], errors="coerce"), dtype=np.float64)
        numbers[name] = values
        unread = np.flatnonzero(~np.isfinite(values))
        if len(unread):
            cell, line = frame[name].iloc[unread[0]], frame[LINE].iloc[unread[0]]
            add(~np.isfinite(values), f"column {name} holds no number ({cell!r} in line {line})")
    stacked = np.stack(list(numbers.values()))
    with np.errstate(invalid="ignore"):  # infinite numbers, which have a reason already
        add((stacked <= 0).any(axis=0), "a size or time is not above zero")
        add((stacked > LARGEST).any(axis=0), f"a size or time is beyond {LARGEST:g}")
        add((stacked[:-1] % 1.0 != 0).any(axis=0), "a size is not a whole number")
    return numbers, np.asarray(why, dtype=np.str_)
