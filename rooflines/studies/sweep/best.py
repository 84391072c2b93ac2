"""The usual questions about a sweep: the best row of each group."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError, UnknownNameError
from rooflines.studies.sweep.columns import EXTRAPOLATED, VERIFY_BOUND
from rooflines.studies.sweep.run import require_extra
from rooflines.studies.sweep.store import Manifest, is_whole, read_manifest
from rooflines.studies.sweep.table import KEYS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SCHEMA_VERSION: Final = 1
# Of these the least is best; of all others the most.
_LEAST: Final = frozenset(
    {
        "memory_bytes",
        "target_step_s",
        "draft_s",
        "verify_s",
        "cycle_cost",
        "cost_ratio",
        "time_per_token_s",
        "time_per_token_low_s",
        "time_per_token_high_s",
    }
)
_CONDITION: Final = re.compile(r"\s*(\w+)\s*(<=|>=|!=|<|>|=)\s*(.+?)\s*")
_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_TEXTS: Final = frozenset(
    {"hardware", "target", "drafter", "weight_dtype", "kv_dtype", "acceptance_given", VERIFY_BOUND}
)
_FLAGS: Final = frozenset({"fits", EXTRAPOLATED})
_NO_GOALS: Final = _FLAGS | {VERIFY_BOUND}
_TIES: Final = ("draft_length", "batch", "context", "acceptance")


@dataclass(frozen=True, slots=True)
class Best:
    """The best row of each group.

    Attributes:
        by: columns whose values make a group.
        goal: what is best.
        where: conditions on rows.
        rows: one a group, in the order of `by`; groups without a row that fits are left out.
        columns: of the rows.
        parts_read: whole parts.
        parts: of the sweep; more than were read where it is not finished.
    """

    by: tuple[str, ...]
    goal: str
    where: tuple[str, ...]
    rows: list[dict[str, Any]]
    columns: tuple[str, ...]
    parts_read: int
    parts: int

    def document(self) -> dict[str, Any]:
        """The answer as JSON takes it (schema: docs/schemas/sweep-best.schema.json)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "by": list(self.by),
            "goal": self.goal,
            "where": list(self.where),
            "parts_read": self.parts_read,
            "parts": self.parts,
            "rows": self.rows,
        }


def best_rows(
    folder: Path,
    by: Sequence[str],
    *,
    goal: str = "speedup",
    where: Sequence[str] = (),
    partial: bool = False,
) -> Best:
    """Find the best row of each group, one part after another.

    Equal rows are decided by the shorter draft, then by the smaller batch, context and acceptance.

    Args:
        folder: of a sweep.
        by: columns, such as hardware and batch; none asks for the best row of all.
        goal: the column to make large, or small where less is better (times, memory, costs).
        where: conditions such as ``batch<=64`` or ``drafter=ngram``; all must hold.
        partial: also answer of a sweep that is not finished.

    Raises:
        FileFormatError: the folder holds no sweep.
        InputError: an unknown column or condition, or a sweep that is not finished.
    """
    require_extra()
    manifest = read_manifest(folder)
    files = _whole_parts(folder, manifest, partial=partial)
    columns = (*KEYS, *manifest.grid["columns"])
    for name in (*by, goal):
        if name not in columns:
            raise UnknownNameError("column", name, columns, f"(this sweep has {', '.join(columns)})")
    if goal in KEYS or goal in _NO_GOALS:
        goals = [name for name in manifest.grid["columns"] if name not in _NO_GOALS]
        raise InputError(f"goal {goal} is no number that was computed: try {', '.join(goals)}")
    conditions = [_condition(text, columns) for text in where]
    best: pd.DataFrame | None = None
    for file in files:
        best = _merged(best, _read(file, conditions, goal), list(by), goal)
    rows = [] if best is None else _plain(best.sort_values(list(by)) if by else best)
    return Best(tuple(by), goal, tuple(where), rows, columns, len(files), len(manifest.rows))


def _whole_parts(folder: Path, manifest: Manifest, *, partial: bool) -> list[Path]:
    named = zip(manifest.files, manifest.rows, strict=True)
    files = [folder / name for name, rows in named if is_whole(folder / name, rows, manifest.fingerprint)]
    if len(files) < len(manifest.rows) and not partial:
        raise InputError(
            f"{folder} has {len(files)} of {len(manifest.rows)} parts: run its sweep again to finish it, or "
            "answer from what is there (--partial)"
        )
    return files


def _condition(text: str, columns: Sequence[str]) -> Any:  # noqa: ANN401 - an expression of pyarrow
    """A condition as Arrow's readers take it.

    Raises:
        InputError: it is none, or compares a text with a number.
    """
    import pyarrow.compute as pc

    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"condition {text!r} is not understood: write batch<=64 or drafter=ngram")
    name, sign, value = match.groups()
    if name not in columns:
        raise UnknownNameError("column", name, columns, f"(this sweep has {', '.join(columns)})")
    if name in _FLAGS:
        if value not in ("true", "false") or sign != "=":
            raise InputError(f"condition {text!r}: write {name}=true or {name}=false")
        return pc.field(name) == (value == "true")
    if name in _TEXTS:
        if sign not in ("=", "!="):
            raise InputError(f"condition {text!r}: {name} is a text, so it is compared with = or !=")
        return _OPERATORS[sign](pc.field(name), value)
    try:
        return _OPERATORS[sign](pc.field(name), float(value))
    except ValueError:
        raise InputError(f"condition {text!r}: {name} is a number, and {value!r} is none") from None


def _read(file: Path, conditions: Sequence[Any], goal: str) -> pa.Table:
    """Rows of a part that meet the conditions and have a goal."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    wanted = pc.field(goal).is_valid()
    for condition in conditions:
        wanted &= condition
    return ds.dataset(file, format="parquet").to_table(filter=wanted)


def _merged(best: pd.DataFrame | None, table: pa.Table, by: list[str], goal: str) -> pd.DataFrame:
    """The best rows of those so far and those of another part."""
    import pandas as pd

    found = _best_of(table, by, goal)
    if best is None:
        return found
    return _first(pd.concat([best, found], ignore_index=True), by, goal)


def _best_of(table: pa.Table, by: list[str], goal: str) -> pd.DataFrame:
    """The best rows of a part, found among few columns and then read in full."""
    few = _frame(table.select(list(dict.fromkeys([*by, goal, *_TIES]))))
    chosen = _first(few.reset_index(names="_row"), by, goal)["_row"]
    return _frame(table.take(chosen.to_numpy()))


def _frame(table: pa.Table) -> pd.DataFrame:
    """A table for pandas, with texts in place of categories, which differ from part to part."""
    frame: pd.DataFrame = table.to_pandas()
    return frame.astype(dict.fromkeys(frame.select_dtypes("category"), object))


def _first(rows: pd.DataFrame, by: list[str], goal: str) -> pd.DataFrame:
    rising = [goal in _LEAST, *(True for _ in _TIES)]
    order = rows.sort_values([goal, *_TIES], ascending=rising, kind="stable")
    return order.drop_duplicates(by) if by else order.head(1)


def _plain(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of Python's own values, nothing for what is missing."""
    return [
        {str(name): None if value is None or value != value else value for name, value in row.items()}  # noqa: PLR0124 - NaN alone differs from itself
        for row in rows.to_dict("records")
    ]
