"""Verdicts of a validation as people read them: the answer in words, then errors in percent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rooflines.output.tables import render
from rooflines.validation.judge import EVERYWHERE, Verdict
from rooflines.validation.judge_tables import Validation, left_out_columns


def kernel_validation_text(found: Validation, fmt: str) -> str:
    """A validation of kernel tables as text or Markdown.

    Args:
        found: the result.
        fmt: ``text`` or ``markdown``.
    """
    parts = [validation_words(found), render(readable_verdicts(found.verdicts), fmt, "Errors")]
    if found.left_out:
        columns = left_out_columns(found.left_out)
        groups = zip(*(columns[name] for name in ("device", "engine", "operator", "dtype")), strict=True)
        shown = {
            "group": [" ".join(part for part in group if part) for group in groups],
            "rows": columns["rows"],
            "reason": columns["reason"],
        }
        parts.append(render(_added(shown), fmt, "Rows left out"))
    return "\n\n".join(parts)


def validation_words(found: Validation) -> str:
    """One paragraph: how many rows, how wrong, how often inside the interval, beside the plain roofline."""
    times = [one for one in found.judged if one.quantity == "time"]
    error = np.concatenate([np.abs(one.predicted / one.measured - 1.0) for one in times])
    plain = np.concatenate([np.abs(one.plain / one.measured - 1.0) for one in times])
    inside = np.concatenate([(one.measured >= one.low) & (one.measured <= one.high) for one in times])
    stated = np.concatenate([np.isfinite(one.low) for one in times])
    fitted = sum(int(one.in_sample.sum()) for one in times)
    coverage = (
        f"{percent(float(np.mean(inside[stated])))} of those with a 90 % interval lie inside it"
        if stated.any()
        else "no interval is stated"
    )
    lengths = [one.rows for one in found.left_out]
    return (
        f"{len(error):,} rows of {len(found.files)} file(s), {len(times)} groups; {sum(lengths):,} rows left "
        f"out, with reasons below. Median error {percent(float(np.median(error)))} (plain roofline "
        f"{percent(float(np.median(plain)))}); {coverage}. {fitted:,} of the rows have shapes that their "
        "constants were fitted to and are marked in sample. Groups differ: read them one by one."
    )


def readable_verdicts(found: Sequence[Verdict]) -> dict[str, list[Any]]:
    """Verdicts with errors in percent; the name of a group stands in its first row."""
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "group",
            "quantity",
            "region",
            "rows",
            "standing",
            "median error",
            "p90",
            "bias",
            "in 90 %",
            "plain",
        )
    }
    before = ""
    for one in found:
        name = str(one.group)
        shown = name if name != before else ""
        before = name
        coverage = "" if one.coverage is None else percent(one.coverage)
        for column, value in zip(
            columns,
            (
                shown,
                one.quantity,
                one.region if one.region != EVERYWHERE else "all regions",
                one.rows,
                one.standing,
                percent(one.median_abs_error),
                percent(one.p90_abs_error),
                f"{100 * one.bias:+.1f} %",
                coverage,
                percent(one.plain_median_abs_error),
            ),
            strict=True,
        ):
            columns[column].append(value)
    return columns


def percent(share: float | None) -> str:
    """A share as people read it; empty where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"


def _added(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows with the same group and reason added up."""
    counted: dict[tuple[str, str], int] = {}
    for group, rows, reason in zip(*columns.values(), strict=True):
        counted[group, reason] = counted.get((group, reason), 0) + rows
    return {
        "group": [group for group, _ in counted],
        "rows": list(counted.values()),
        "reason": [reason for _, reason in counted],
    }
