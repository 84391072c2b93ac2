"""A table as rows, as columns, as JSON takes it, and as CSV files hold it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}
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


def read_csv(path: Path, what: str, *, as_text: bool) -> pd.DataFrame:
    """Read a CSV file with a header line.

    Args:
        path: the file.
        what: the file is, for messages: ``table``.
        as_text: cells as they are written, blank lines among them; else numbers where a column holds such.

    Raises:
        FileFormatError: the file is missing, is no CSV, or is written with other separators.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # A row that is longer than the header is warned of, and cut.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                dtype=str if as_text else None,
                keep_default_na=not as_text,
                skip_blank_lines=not as_text,
                encoding="utf-8-sig",
                index_col=False,
                low_memory=False,
            )
    except OSError as error:
        raise FileFormatError(f"{what} {path} cannot be read: {error.strerror or error}") from None
    except pd.errors.ParserWarning:
        raise FileFormatError(
            f"{what} {path} is not a CSV file: a row has more cells than the header has names"
        ) from None
    except ValueError as error:  # pandas' parser errors, and text of another encoding
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise FileFormatError(f"{what} {path} is not a CSV file: {reason}") from None
    for mark, name in _SEPARATORS.items():
        if len(frame.columns) == 1 and mark in str(frame.columns[0]):
            raise FileFormatError(f"{what} {path} is written with {name}: save it with commas")
    return frame
