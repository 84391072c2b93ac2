"""Rows that were used and rows that were not, in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rooflines.rows import Columns

# Why a row has no prediction; empty where it has one.
LEFT_OUT: Final = "left_out"


def with_left_out(
    used: Mapping[str, Sequence[Any]], unused: Mapping[str, Sequence[Any]], reasons: Sequence[str]
) -> Columns:
    """Used rows, then those that were left out, told apart by a column with the reason.

    Args:
        used: columns of the rows that were predicted, U each.
        unused: of these columns, those that are known of rows that were not, N each; the others are blank.
        reasons: why they were not (N).

    Returns:
        The columns of `used` and ``left_out``, U + N each.
    """
    count = len(next(iter(used.values())))
    blank = [None] * len(reasons)
    columns = {name: [*values, *unused.get(name, blank)] for name, values in used.items()}
    return {**columns, LEFT_OUT: [""] * count + list(reasons)}
