"""Traces: when requests arrived, how long their prompts and outputs were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import FileFormatError, InputError
from rooflines.rows import read_csv
from rooflines.serving.lengths import LONGEST
from rooflines.serving.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

# Column -> spellings: ours; the Azure LLM inference traces
# (https://github.com/Azure/AzurePublicDataset/blob/master/AzureLLMInferenceDataset2023.md); BurstGPT
# (https://github.com/HPMLL/BurstGPT).
_COLUMNS: Final = {
    "arrival_s": ("arrival_s", "TIMESTAMP", "Timestamp"),
    "prompt_tokens": ("prompt_tokens", "ContextTokens", "Request tokens"),
    "output_tokens": ("output_tokens", "GeneratedTokens", "Response tokens"),
}
# The busiest stretch is looked for in windows of a minute.
_WINDOW_S: Final = 60.0
_FEWEST: Final = 2


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace, read.

    Attributes:
        workload: its requests, each as likely as the others.
        requests: how many.
        duration_s: from the first arrival to the last (s).
        rate_per_s: mean arrival rate (requests/s).
        peak_rate_per_s: rate of the busiest minute (requests/s); the mean where the trace is shorter.
        gap_variation: squared coefficient of variation of the gaps between arrivals: 1 for Poisson.
    """

    workload: Workload
    requests: int
    duration_s: float
    rate_per_s: float
    peak_rate_per_s: float
    gap_variation: float


def read_trace(path: Path, prefix_hit: float = 0.0) -> Trace:
    """Read a CSV with ``arrival_s``, ``prompt_tokens`` and ``output_tokens``, in any order of rows.

    The columns of the Azure and BurstGPT traces are understood too; times are seconds or timestamps.

    Args:
        path: the file.
        prefix_hit: share of prompt tokens that a prefix cache holds.

    Raises:
        FileFormatError: not a table, a missing column, fewer than two requests, or a value that cannot be;
            the message names the row.
    """
    table = _table(path)
    columns = {name: _column(table, name, path) for name in _COLUMNS}
    arrivals = np.sort(columns["arrival_s"])
    duration = float(arrivals[-1] - arrivals[0])
    if duration <= 0:
        raise FileFormatError(f"{path}: all requests arrive at once, so there is no arrival rate")
    gaps = np.diff(arrivals)
    rate = gaps.size / duration
    count = arrivals.size
    try:
        workload = Workload(
            columns["prompt_tokens"], columns["output_tokens"], np.full(count, 1.0 / count), prefix_hit
        )
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from None
    return Trace(
        workload,
        count,
        duration,
        rate,
        _peak(arrivals) if duration > _WINDOW_S else rate,
        float(gaps.var() / gaps.mean() ** 2),
    )


def _table(path: Path) -> pd.DataFrame:
    table = read_csv(path, "trace", as_text=False)
    if len(table) < _FEWEST:
        raise FileFormatError(f"trace {path} has {len(table)} requests: give two or more")
    return table


def _column(table: pd.DataFrame, name: str, path: Path) -> NDArray[np.float64]:
    import pandas as pd

    found = next((known for known in _COLUMNS[name] if known in table.columns), None)
    if found is None:
        raise FileFormatError(
            f"trace {path} has no column {name} (it has: {', '.join(map(str, table.columns[:8]))}): give "
            f"{', '.join(_COLUMNS)}"
        )
    column = table[found]
    values = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    if name == "arrival_s" and not np.isfinite(values).any():
        moments = pd.to_datetime(column, errors="coerce", format="ISO8601", utc=True)
        seconds = (moments - moments.min()).dt.total_seconds()
        values = np.asarray(seconds, dtype=np.float64)
    least = 1.0 if name == "output_tokens" else 0.0
    with np.errstate(invalid="ignore"):
        wrong = ~((values >= least) & np.isfinite(values))
        if name != "arrival_s":
            wrong |= (values > LONGEST) | (values != np.floor(values))
    if wrong.any():
        row = int(np.argmax(wrong))
        kind = "a time in seconds, 0 or more" if name == "arrival_s" else f"a whole number, {least:g} or more"
        more = f" ({int(wrong.sum())} such rows)" if wrong.sum() > 1 else ""
        raise FileFormatError(
            f"trace {path}, line {row + 2}: {found} is {column.iloc[row]}, but it must be {kind}{more}"
        )
    return values


def _peak(arrivals: NDArray[np.float64]) -> float:
    """Arrivals in the busiest minute that begins with one, per second."""
    ends = np.searchsorted(arrivals, arrivals + _WINDOW_S, side="right")
    return float((ends - np.arange(arrivals.size)).max() / _WINDOW_S)
