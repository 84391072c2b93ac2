"""Compares predicted with measured kernels: errors, bias and coverage of intervals, group by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from rooflines.validation.kernel_tables.rows import Group, KernelRows

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Quantity = Literal["time", "verify premium"]

EVERYWHERE: Final = "all"
# A premium compares with the time of few positions: the median over m = 1..4, since some engines have one odd
# kernel for m = 1.
BASE_POSITIONS: Final = 4.0
# Correlation of the errors of two times of one shape. Over nine groups of 16-bit products the 90 % intervals
# of ratios were 0.8 times as wide as those of times where both had m <= 64, and 0.95 times where one had not
# (AIConfigurator 0.12.0 tables, https://pypi.org/project/aiconfigurator-core/).
_SHARED_IN_REGION: Final = 0.7
_SHARED_BEYOND: Final = 0.25
PREMIUM_REGIONS: Final = ((16.0, "n 2-16"), (64.0, "n 17-64"), (128.0, "n 65-128"), (512.0, "n 129-512"))


@dataclass(frozen=True, slots=True)
class Judged:
    """Rows of one group beside their predictions; arrays (N).

    Attributes:
        group: where they belong.
        quantity: kernel times (s), or premiums of a verify pass over few positions (a ratio).
        basis: what the constants rest on.
        file: name of the table.
        line: line of the row in it.
        region: part of the range.
        shape: weight or head shape.
        size: what the region was read from.
        measured: what was measured.
        predicted: what was predicted without fitting to it.
        plain: what the plain roofline says.
        low: lower end of the 90 % interval, NaN where the constants state no residuals.
        high: upper end.
        in_sample: whether the constants were fitted to rows of this shape.
    """

    group: Group
    quantity: Quantity
    basis: str
    file: str
    line: NDArray[np.int64]
    region: NDArray[np.str_]
    shape: NDArray[np.str_]
    size: Floats
    measured: Floats
    predicted: Floats
    plain: Floats
    low: Floats
    high: Floats
    in_sample: Flags


@dataclass(frozen=True, slots=True)
class Verdict:
    """Errors of one group in one region.

    Attributes:
        group: where the rows belong.
        quantity: times or premiums.
        region: part of the range, or ``all``.
        rows: how many.
        in_sample_rows: how many of them have a shape that the constants were fitted to.
        median_abs_error: median of abs(predicted / measured - 1).
        p90_abs_error: its 90 % quantile.
        bias: median of predicted / measured - 1.
        coverage: share of rows inside the 90 % interval; None where no interval is stated.
        plain_median_abs_error: median of the plain roofline.
        basis: what the constants rest on.
    """

    group: Group
    quantity: Quantity
    region: str
    rows: int
    in_sample_rows: int
    median_abs_error: float
    p90_abs_error: float
    bias: float
    coverage: float | None
    plain_median_abs_error: float
    basis: str

    @property
    def standing(self) -> str:
        """``out of sample``, ``in sample`` or ``mixed``."""
        if self.in_sample_rows == 0:
            return "out of sample"
        return "in sample" if self.in_sample_rows == self.rows else "mixed"


def judge_times(
    rows: KernelRows,
    file: str,
    *,
    predicted_s: Floats,
    plain_s: Floats,
    interval_s: tuple[Floats, Floats],
    in_sample: Flags,
    basis: str,
) -> Judged:
    """Rows of a group beside their predictions.

    Args:
        rows: what was measured.
        file: name of the table.
        predicted_s: predictions (N) (s).
        plain_s: plain rooflines (N) (s).
        interval_s: ends of the 90 % intervals (N each) (s); NaN where none is stated.
        in_sample: whether constants were fitted to the row's shape (N).
        basis: what the constants rest on.
    """
    return Judged(
        group=rows.group,
        quantity="time",
        basis=basis,
        file=file,
        line=rows.line,
        region=rows.region,
        shape=rows.shape,
        size=rows.size,
        measured=rows.measured_s,
        predicted=predicted_s,
        plain=plain_s,
        low=interval_s[0],
        high=interval_s[1],
        in_sample=in_sample,
    )


def premiums(times: Judged) -> Judged | None:
    """How much longer m positions take than one to four, shape by shape; None where a table lacks either.

    The errors of its two times cancel in part: those of one region most, others little.
    """
    base = np.full((4, len(times.size)), np.nan)
    for shape in np.unique(times.shape):
        same = times.shape == shape
        few = same & (times.size <= BASE_POSITIONS)
        if few.any():
            values = (times.measured, times.predicted, times.plain, np.log(times.high / times.low))
            for row, value in enumerate(values):
                base[row, same] = np.median(value[few])
    last = PREMIUM_REGIONS[-1][0]
    used = np.isfinite(base[0]) & (times.size > 1) & (times.size <= last)
    if not used.any():
        return None
    measured, predicted, plain = (
        value[used] / under[used]
        for value, under in zip((times.measured, times.predicted, times.plain), base[:3], strict=True)
    )
    few_region = {
        str(shape): str(times.region[(times.shape == shape) & (times.size <= BASE_POSITIONS)][0])
        for shape in np.unique(times.shape[used])
    }
    alike = times.region[used] == np.array([few_region[str(shape)] for shape in times.shape[used]])
    over, under = np.log(times.high / times.low)[used] / 2.0, base[3][used] / 2.0
    shared = np.where(alike, _SHARED_IN_REGION, _SHARED_BEYOND)
    reach = np.sqrt(np.maximum(over**2 + under**2 - 2.0 * shared * over * under, 0.0))
    names = np.array([name for _, name in PREMIUM_REGIONS])
    ends = [end for end, _ in PREMIUM_REGIONS]
    return Judged(
        group=times.group,
        quantity="verify premium",
        basis=times.basis,
        file=times.file,
        line=times.line[used],
        region=np.asarray(names[np.searchsorted(ends, times.size[used], side="left")], dtype=np.str_),
        shape=times.shape[used],
        size=times.size[used],
        measured=measured,
        predicted=predicted,
        plain=plain,
        low=predicted * np.exp(-reach),
        high=predicted * np.exp(reach),
        in_sample=times.in_sample[used],
    )


def verdicts(judged: Iterable[Judged]) -> tuple[Verdict, ...]:
    """Errors of every group, region by region and over all its regions.

    Parts of a group that come from several tables are put together.
    """
    together: dict[tuple[Group, Quantity], list[Judged]] = {}
    for one in judged:
        together.setdefault((one.group, one.quantity), []).append(one)
    return tuple(verdict for key in sorted(together) for verdict in _of_group(together[key]))


def _of_group(parts: Sequence[Judged]) -> Iterator[Verdict]:
    region = np.concatenate([part.region for part in parts])
    names = sorted(set(region.tolist()), key=_first_number)
    for name in (*names, EVERYWHERE) if len(names) > 1 else names:
        chosen = np.ones(len(region), dtype=bool) if name == EVERYWHERE else region == name
        yield _verdict(parts, name, chosen)


def _first_number(region: str) -> tuple[int, str]:
    """Regions in the order of their range: those with <= first, those with > last."""
    return (0 if "<=" in region else 2 if ">" in region else 1, region.zfill(24))


def _verdict(parts: Sequence[Judged], region: str, chosen: Flags) -> Verdict:
    def column(name: str) -> Floats:
        return np.concatenate([np.asarray(getattr(part, name), dtype=float) for part in parts])[chosen]

    measured, low, high = column("measured"), column("low"), column("high")
    error = column("predicted") / measured - 1.0
    plain = np.abs(column("plain") / measured - 1.0)
    stated = np.isfinite(low) & np.isfinite(high)
    inside = (measured >= low) & (measured <= high)
    return Verdict(
        group=parts[0].group,
        quantity=parts[0].quantity,
        region=region,
        rows=len(measured),
        in_sample_rows=int(column("in_sample").sum()),
        median_abs_error=float(np.median(np.abs(error))),
        p90_abs_error=float(np.quantile(np.abs(error), 0.9)),
        bias=float(np.median(error)),
        coverage=float(np.mean(inside[stated])) if stated.any() else None,
        plain_median_abs_error=float(np.median(plain)),
        basis="; ".join(dict.fromkeys(part.basis for part in parts)),
    )
