"""Published speedups and acceptance beside predictions, as text, Markdown and documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rooflines.output.tables import render
from rooflines.rows import as_records
from rooflines.validation.published.acceptance import (
    SCHEMA_VERSION,
    AcceptanceValidation,
    acceptance_columns,
    source_columns,
)
from rooflines.validation.published.judge import (
    EVERY_SOURCE,
    TARGETS,
    SpeedupValidation,
    SpeedupVerdict,
    unused_columns,
)
from rooflines.validation.published.predict import ASSUMPTIONS

_LONGEST_REASON: Final = 100


def speedups_text(found: SpeedupValidation, fmt: str) -> str:
    """A validation of speedups as text or Markdown: in words, by source, left out, assumed."""
    parts = [speedups_words(found), render(readable_verdicts(found.verdicts), fmt, "Errors by source")]
    impossible = impossible_columns(found)
    if impossible["source"]:
        parts.append(render(impossible, fmt, "Impossible rows: the speedup exceeds the tokens per cycle"))
    if found.unused:
        columns = unused_columns(found.unused)
        columns["reason"] = [reason[:_LONGEST_REASON] for reason in columns["reason"]]
        parts.append(render(columns, fmt, "Rows left out"))
    parts.append("Assumed where a source is silent: " + "; ".join(ASSUMPTIONS) + ".")
    return "\n\n".join(parts)


def speedups_words(found: SpeedupValidation) -> str:
    """One paragraph: how many rows, how wrong, and what was asked for."""
    impossible = sum(one.claim.impossible for one in found.predicted)
    used = len(found.predicted) - impossible
    first = (
        f"{used:,} rows of {len(found.files)} file(s) predicted from facts alone; {impossible} impossible, "
        f"{len(found.unused):,} left out, with reasons below."
    )
    tiers = [one for one in found.verdicts if one.source == EVERY_SOURCE and one.rows]
    return " ".join([first, *map(_tier_words, tiers)])


def _tier_words(verdict: SpeedupVerdict) -> str:
    rank = "" if verdict.rank_correlation is None else f", rank correlation {verdict.rank_correlation:.2f}"
    asked = TARGETS.get(verdict.tier, {})
    goals = ", ".join(f"{name.replace('_', ' ')} {_goal(name, value)}" for name, value in asked.items())
    goal = f" (asked: {goals})" if goals else ""
    return (
        f"{verdict.tier.capitalize()}: {verdict.rows} rows, median error "
        f"{percent(verdict.median_abs_error)}, p90 {percent(verdict.p90_abs_error)}{rank}{goal}."
    )


def _goal(name: str, value: float) -> str:
    return f">= {value:g}" if name == "rank_correlation" else f"<= {percent(value)}"


def readable_verdicts(found: Sequence[SpeedupVerdict]) -> dict[str, list[Any]]:
    """Verdicts with errors in percent."""
    return {
        "tier": [one.tier for one in found],
        "source": [one.source for one in found],
        "rows": [one.rows for one in found],
        "impossible": [one.impossible for one in found],
        "median error": [percent(one.median_abs_error) for one in found],
        "p90": [percent(one.p90_abs_error) for one in found],
        "bias": [_signed(one.bias) for one in found],
        "within 25 %": [percent(one.within_quarter) for one in found],
        "sign": [percent(one.sign) for one in found],
        "in 90 %": [percent(one.coverage) for one in found],
        "device time alone": [percent(one.bare_median_abs_error) for one in found],
        "rank": [None if one.rank_correlation is None else round(one.rank_correlation, 2) for one in found],
        "losses foreseen": [f"{one.losses_predicted} of {one.losses}" for one in found],
    }


def impossible_columns(found: SpeedupValidation) -> dict[str, list[Any]]:
    """Rows whose speedup exceeds tau."""
    rows = [one for one in found.predicted if one.claim.impossible]
    return {
        "source": [one.claim.source for one in rows],
        "table": [one.claim.table for one in rows],
        "line": [one.claim.line for one in rows],
        "model": [one.claim.model for one in rows],
        "task": [one.claim.task for one in rows],
        "tokens per cycle": [one.claim.tokens_per_cycle for one in rows],
        "speedup": [one.claim.speedup for one in rows],
    }


def acceptance_text(found: AcceptanceValidation, fmt: str) -> str:
    """A validation of acceptance as text or Markdown."""
    columns = source_columns(found.judged)
    shown = {
        "kind": columns["kind"],
        "source": columns["source"],
        "rows": columns["rows"],
        **{
            title: [percent(value) for value in columns[name]]
            for name, title in (
                ("median_abs_error", "median error"),
                ("p90_abs_error", "p90"),
                ("worst", "worst"),
                ("worst_constant", "worst, one constant rate"),
            )
        },
    }
    curves = [one for one in found.judged if one.kind == "curve"]
    words = f"{len(found.judged)} profiles and curves of {len(found.files)} file(s); "
    words += f"{len(found.unused)} rows left out, with reasons below."
    if curves:
        words += (
            f" alpha r^(k-1) follows every curve within {percent(max(one.worst_error for one in curves))}, "
            f"one constant rate within {percent(max(one.constant_error for one in curves))}."
        )
    parts = [words, render(shown, fmt, "Errors by source")]
    if found.unused:
        parts.append(render(unused_columns(found.unused), fmt, "Rows left out"))
    return "\n\n".join(parts)


def acceptance_document(found: AcceptanceValidation) -> dict[str, Any]:
    """The result for machines (docs/schemas/validate-acceptance.schema.json)."""
    return {
        "schema_version": SCHEMA_VERSION,
        "files": list(found.files),
        "rows_used": len(found.judged),
        "rows_left_out": len(found.unused),
        "sources": as_records(source_columns(found.judged)),
        "rows": as_records(acceptance_columns(found.judged)),
        "left_out": as_records(unused_columns(found.unused)),
    }


def percent(share: float) -> str:
    """A share as people read it; a dash where there is none."""
    return f"{100 * share:.1f} %" if np.isfinite(share) else "-"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %" if np.isfinite(share) else "-"
