"""Compares predicted with measured kernels: errors, bias and coverage of intervals, group by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from rooflines.estimates import Estimate
from rooflines.validation.kernel_tables.rows import Group, KernelRows

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Quantity = Literal["time", "verify premium"]

EVERYWHERE: Final = "all"
# A premium compares with the time of few positions: the median over m = 1..4, since some engines have one odd
# kernel for m = 1.
BASE_POSITIONS: Final = 4.0
# What rows of several kernels are called among causes of errors.
WHOLE: Final = "whole"
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
        errors: standard deviations of ln(measured / predicted) by cause, of rows of several kernels.
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
    errors: Mapping[str, Floats] = field(default_factory=dict)


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
    errors: Mapping[str, Floats] | None = None,
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
        errors: of rows of several kernels, by cause (N each).
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
        errors=errors or {},
    )


def premiums(times: Judged) -> Judged | None:
    """How much longer m positions take than one to four, shape by shape; None where a table lacks either.

    Causes of errors that both times share drop out.
    """
    base, first = np.full((3, len(times.size)), np.nan), np.zeros(len(times.size), dtype=int)
    for shape in np.unique(times.shape):
        same = times.shape == shape
        few = np.flatnonzero(same & (times.size <= BASE_POSITIONS))
        if few.size:
            first[same] = few[np.argmin(times.size[few])]
            for row, value in enumerate((times.measured, times.predicted, times.plain)):
                base[row, same] = np.median(value[few])
    used = np.isfinite(base[0]) & (times.size > 1) & (times.size <= PREMIUM_REGIONS[-1][0])
    if not used.any():
        return None
    measured, predicted, plain = (
        value[used] / under[used]
        for value, under in zip((times.measured, times.predicted, times.plain), base, strict=True)
    )
    low, high = _premium_interval(times, used, first[used], predicted)
    names, ends = zip(*((name, end) for end, name in PREMIUM_REGIONS), strict=True)
    return Judged(
        group=times.group,
        quantity="verify premium",
        basis=times.basis,
        file=times.file,
        line=times.line[used],
        region=np.asarray(np.array(names)[np.searchsorted(ends, times.size[used])], dtype=np.str_),
        shape=times.shape[used],
        size=times.size[used],
        measured=measured,
        predicted=predicted,
        plain=plain,
        low=low,
        high=high,
        in_sample=times.in_sample[used],
    )


def _premium_interval(
    times: Judged, used: Flags, first: NDArray[np.int64], predicted: Floats
) -> tuple[Floats, Floats]:
    """Ends of the 90 % intervals of premiums: the errors of a wide pass against those of the narrowest."""
    if not times.errors:
        return np.full(len(predicted), np.nan), np.full(len(predicted), np.nan)
    wide = {cause: log_sd[used] for cause, log_sd in times.errors.items()}
    # What belongs to one pass alone is not shared with another one.
    narrow = {
        f"{cause} of few" if cause.endswith(f" in {WHOLE}") else cause: log_sd[first]
        for cause, log_sd in times.errors.items()
    }
    low, high = (Estimate(predicted, wide) / Estimate(1.0, narrow)).interval()
    return np.asarray(low), np.asarray(high)


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
