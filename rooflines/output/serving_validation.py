"""Serving benchmarks beside their predictions, as tables and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from rooflines.output.tables import render
from rooflines.rows import Columns, as_records
from rooflines.validation.left_out import with_left_out
from rooflines.validation.serving import (
    LeftOut,
    Order,
    Predicted,
    ServingVerdict,
    judge_serving,
    order_of,
    overall,
)

SCHEMA_VERSION: Final = 1
_SOURCE: Final = ("origin", "system", "backend", "model", "format")


def serving_document(predicted: Sequence[Predicted], left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """The verdicts as JSON takes them (schema: docs/schemas/validate-serving.schema.json)."""
    total, order = overall(predicted), order_of(predicted)
    return {
        "schema_version": SCHEMA_VERSION,
        "rows": len(predicted),
        "overall": as_records(verdict_columns([total]))[0],
        "order": {"pairs": order.pairs, "right": order.right, "share": order.share},
        "verdicts": as_records(verdict_columns(judge_serving(predicted))),
        "left_out": [
            {**_source(source), "rows": rows, "reason": reason} for source, reason, rows in _counted(left_out)
        ],
    }


def _counted(left_out: Sequence[LeftOut]) -> list[tuple[Sequence[str], str, int]]:
    """Source, reason and rows of what was left out."""
    counted = Counter((left.row.source, left.reason) for left in left_out)
    return [(source, reason, rows) for (source, reason), rows in counted.items()]


def _source(source: Sequence[str]) -> dict[str, str]:
    return dict(zip(_SOURCE, source, strict=True))


def verdict_columns(verdicts: Sequence[ServingVerdict]) -> Columns:
    """One row a source."""
    numbers = [name for name in ServingVerdict.__dataclass_fields__ if name != "source"]
    return {
        **_source_columns([verdict.source for verdict in verdicts]),
        **{name: [getattr(verdict, name) for verdict in verdicts] for name in numbers},
    }


def row_columns(predicted: Sequence[Predicted], left_out: Sequence[LeftOut]) -> Columns:
    """One row a benchmark run, as measured and as predicted, or with the reason why it was not."""
    rows = [left.row for left in left_out]
    unused: Columns = {
        "file": [row.file for row in rows],
        "line": [row.line for row in rows],
        **_source_columns([row.source for row in rows]),
    }
    return with_left_out(_used_columns(predicted), unused, [left.reason for left in left_out])


def _used_columns(predicted: Sequence[Predicted]) -> Columns:
    rows, served = [one.row for one in predicted], [one.served for one in predicted]
    return {
        "file": [row.file for row in rows],
        "line": [row.line for row in rows],
        **_source_columns([row.source for row in rows]),
        "tensor_parallel": [one.parallelism.tensor for one in served],
        "expert_parallel": [one.parallelism.expert for one in served],
        "kv_dtype": [one.kv or "" for one in served],
        "prompt_tokens": [one.prompt for one in served],
        "output_tokens": [one.output for one in served],
        "sequences": [one.sequences for one in served],
        "batch": [one.batch for one in predicted],
        "measured_tpot_s": [row.tpot_s for row in rows],
        "predicted_tpot_s": [one.tpot_s for one in predicted],
        "tpot_low_s": [one.ends and one.ends.tpot_s[0] for one in predicted],
        "tpot_high_s": [one.ends and one.ends.tpot_s[1] for one in predicted],
        "plain_tpot_s": [one.plain_tpot_s for one in predicted],
        "measured_ttft_s": [row.ttft_s for row in rows],
        "predicted_ttft_s": [one.ttft_s for one in predicted],
        "ttft_low_s": [one.ends and one.ends.ttft_s[0] for one in predicted],
        "ttft_high_s": [one.ends and one.ends.ttft_s[1] for one in predicted],
        "measured_tokens_per_s_per_card": [one.measured_tokens_per_s for one in predicted],
        "predicted_tokens_per_s_per_card": [one.predicted_tokens_per_s for one in predicted],
        "basis": [one.basis for one in predicted],
    }


def _source_columns(sources: Sequence[Sequence[str]]) -> Columns:
    return {name: [source[place] for source in sources] for place, name in enumerate(_SOURCE)}


def serving_text(predicted: Sequence[Predicted], left_out: Sequence[LeftOut], fmt: str) -> str:
    """The verdict in words, the errors by source, and the rows that were left out with the reason."""
    total = overall(predicted)
    words = (
        f"{total.rows} rows: tokens/s per card within {total.throughput_median_abs_error:.1%} (median), "
        f"time per token within {total.tpot_median_abs_error:.1%} (median), "
        f"{total.tpot_p90_abs_error:.1%} (90 %), bias {total.tpot_bias:+.1%}; the plain roofline "
        f"{total.plain_tpot_median_abs_error:.1%}. {_covered(total)} {_ordered(order_of(predicted))}"
    )
    parts = [words, render(_readable(judge_serving(predicted)), fmt, "Median absolute errors by source")]
    if left_out:
        columns: Columns = {
            "rows": [rows for _, _, rows in _counted(left_out)],
            "source": [" ".join(filter(None, source)) for source, _, _ in _counted(left_out)],
            "reason": [reason for _, reason, _ in _counted(left_out)],
        }
        parts.append(render(columns, fmt, "Left out"))
    return "\n\n".join(parts)


def _covered(total: ServingVerdict) -> str:
    if total.tpot_coverage is None or total.ttft_coverage is None:
        return "Nothing states how wrong the constants are, so that there are no intervals."
    return (
        f"Of 90 % intervals, {total.tpot_coverage:.0%} hold the time per token and {total.ttft_coverage:.0%} "
        "the time to first token."
    )


def _ordered(order: Order) -> str:
    if order.share is None:
        return "No two configurations of one model and lengths differ by more than 10 %."
    return (
        f"Of {order.pairs:,} pairs of configurations that differ by more than 10 %, {order.share:.1%} are in "
        "the right order."
    )


def _readable(verdicts: Sequence[ServingVerdict]) -> Columns:
    errors = {
        "tokens/s/card": "throughput_median_abs_error",
        "TPOT": "tpot_median_abs_error",
        "TPOT 90 %": "tpot_p90_abs_error",
        "TPOT bias": "tpot_bias",
        "plain TPOT": "plain_tpot_median_abs_error",
        "TTFT": "ttft_median_abs_error",
    }
    shares = {"TPOT inside": "tpot_coverage", "TTFT inside": "ttft_coverage"}
    columns: Columns = {
        "source": [" ".join(filter(None, verdict.source)) for verdict in verdicts],
        "rows": [verdict.rows for verdict in verdicts],
        **{title: [f"{getattr(one, name):.1%}" for one in verdicts] for title, name in errors.items()},
    }
    if any(one.tpot_coverage is not None for one in verdicts):
        columns |= {title: [_share(getattr(one, name)) for one in verdicts] for title, name in shares.items()}
    return columns


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.0%}"
