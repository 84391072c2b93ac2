"""Says how right predicted speedups are: by source and tier, with sign, rank and impossible rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rooflines.errors import CannotTellError
from rooflines.rows import Columns, as_records
from rooflines.validation.left_out import with_left_out
from rooflines.validation.published.predict import ASSUMPTIONS, MachineOf, Predicted, predict_claims
from rooflines.validation.published.rows import Claim, Unused, read_claims
from rooflines.validation.published.sources import FIELD, PRODUCTION

SCHEMA_VERSION: Final = 1
# A speedup is called a loss below the first, and a prediction agrees below the second.
LOSS: Final = 0.95
PREDICTED_LOSS: Final = 1.05
# Share of losses that are to be foreseen.
LOSSES_FORESEEN: Final = 0.8
WITHIN: Final = 0.25
# What predictions are held to: median and 90 % quantile of abs(predicted / measured - 1), rank correlation.
TARGETS: Final = {
    PRODUCTION: {"median_abs_error": 0.10, "p90_abs_error": 0.25, "rank_correlation": 0.9},
    FIELD: {"median_abs_error": 0.20},
}
EVERY_SOURCE: Final = "all sources"
_FEW: Final = 3  # configurations that a rank correlation says nothing of


@dataclass(frozen=True, slots=True)
class SpeedupVerdict:
    """Errors of the rows of one source, or of all of a tier.

    Attributes:
        tier: what the rows can judge.
        source: key of the source, or ``all sources``.
        rows: how many are judged.
        impossible: rows whose speedup exceeds tau, which are not.
        median_abs_error: median of abs(predicted / measured - 1).
        p90_abs_error: its 90 % quantile.
        bias: median of predicted / measured - 1.
        bare_median_abs_error: median error without the host's time, prompts and engine's kernels.
        configurations: distinct ones.
        rank_correlation: Spearman's of cycle cost over configurations; None for less than four.
        losses: rows measured below 0.95.
        losses_predicted: of them, those predicted below 1.05.
        within_quarter: share of rows within 25 %.
        sign: share of rows on the right side of 1.
        coverage: share of rows inside their 90 % interval.
    """

    tier: str
    source: str
    rows: int
    impossible: int
    median_abs_error: float
    p90_abs_error: float
    bias: float
    bare_median_abs_error: float
    configurations: int
    rank_correlation: float | None
    losses: int
    losses_predicted: int
    within_quarter: float
    sign: float
    coverage: float


@dataclass(frozen=True, slots=True)
class SpeedupValidation:
    """Predictions beside published speedups.

    Attributes:
        files: names of the tables.
        predicted: every priced row, impossible ones among them.
        verdicts: by tier and source.
        unused: rows that were not used, with reasons.
    """

    files: tuple[str, ...]
    predicted: tuple[Predicted, ...]
    verdicts: tuple[SpeedupVerdict, ...]
    unused: tuple[Unused, ...]


def validate_speedups(paths: Iterable[Path], machine_of: MachineOf) -> SpeedupValidation:
    """Read tables, predict every row that can be priced, and judge.

    Raises:
        FileFormatError: a file is no table of speedups.
        CannotTellError: no row can be priced.
    """
    claims: list[Claim] = []
    unused: list[Unused] = []
    files = []
    for path in paths:
        read, out = read_claims(path)
        claims += read
        unused += out
        files.append(path.name)
    predicted, unpriced = predict_claims(claims, machine_of)
    unused += unpriced
    if not predicted:
        reasons = dict.fromkeys(one.reason for one in unused)
        raise CannotTellError(f"no row can be priced: {'; '.join(list(reasons)[:3])}")
    return SpeedupValidation(tuple(files), tuple(predicted), judge_speedups(predicted), tuple(unused))


def judge_speedups(predicted: Sequence[Predicted]) -> tuple[SpeedupVerdict, ...]:
    """Verdicts of every tier as a whole, then of each of its sources."""
    tiers: dict[str, dict[str, list[Predicted]]] = defaultdict(lambda: defaultdict(list))
    for one in predicted:
        tiers[one.claim.known.tier][one.claim.source].append(one)
    found = []
    for tier in sorted(tiers, key=lambda name: (name != PRODUCTION, name)):
        sources = tiers[tier]
        groups = {EVERY_SOURCE: [one for group in sources.values() for one in group]} | {
            name: sources[name] for name in sorted(sources)
        }
        found += [_verdict(tier, name, group) for name, group in groups.items()]
    return tuple(found)


def _verdict(tier: str, source: str, group: Sequence[Predicted]) -> SpeedupVerdict:
    possible = [one for one in group if not one.claim.impossible]
    error = np.array([one.error for one in possible])
    bare = np.array([one.bare_speedup / one.claim.speedup - 1.0 for one in possible])
    losses = [one for one in possible if one.claim.speedup < LOSS]
    costs = configuration_costs(possible)
    return SpeedupVerdict(
        tier=tier,
        source=source,
        rows=len(possible),
        impossible=len(group) - len(possible),
        median_abs_error=_quantile(np.abs(error), 0.5),
        p90_abs_error=_quantile(np.abs(error), 0.9),
        bias=_quantile(error, 0.5),
        bare_median_abs_error=_quantile(np.abs(bare), 0.5),
        configurations=len(costs),
        rank_correlation=rank_correlation(costs),
        losses=len(losses),
        losses_predicted=sum(one.speedup < PREDICTED_LOSS for one in losses),
        within_quarter=_share(np.abs(error) <= WITHIN),
        sign=_share([(one.speedup > 1.0) == (one.claim.speedup > 1.0) for one in possible]),
        coverage=_share([one.low <= one.claim.speedup <= one.high for one in possible]),
    )


def _share(held: Iterable[bool]) -> float:
    values = list(held)
    return sum(map(bool, values)) / len(values) if values else float("nan")


def _quantile(values: np.ndarray[Any, np.dtype[np.float64]], share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else float("nan")


def configuration_costs(predicted: Iterable[Predicted]) -> list[tuple[float, float]]:
    """Mean cycle cost of every configuration, predicted and measured; tasks of one differ in tau alone."""
    together: dict[tuple[object, ...], list[tuple[float, float]]] = defaultdict(list)
    for one in predicted:
        together[one.claim.configuration].append((one.cycle_cost, one.measured_cycle_cost))
    return [
        (float(np.mean([cost for cost, _ in costs])), float(np.mean([cost for _, cost in costs])))
        for costs in together.values()
    ]


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; None for too few or equal values."""
    if len(pairs) <= _FEW:
        return None
    ranks = [_ranks(np.array(values)) for values in zip(*pairs, strict=True)]
    if any(np.ptp(rank) == 0.0 for rank in ranks):
        return None
    # Ranks are halves of whole numbers, and what they give is a fraction: 0.9 is not to come out below 0.9.
    return round(float(np.corrcoef(ranks[0], ranks[1])[0, 1]), 12)


def _ranks(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2.0)[inverse], dtype=float)


def verdict_columns(found: Sequence[SpeedupVerdict]) -> dict[str, list[Any]]:
    """Verdicts as a table; errors are fractions."""
    return {name: [getattr(one, name) for one in found] for name in SpeedupVerdict.__dataclass_fields__}


def unused_columns(unused: Iterable[Unused]) -> dict[str, list[Any]]:
    """What was left out; rows of one source and reason are added up, most first."""
    counted: dict[tuple[str, str], int] = defaultdict(int)
    for one in unused:
        counted[one.source, one.reason] += 1
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return {
        "source": [source for (source, _), _ in ordered],
        "rows": [rows for _, rows in ordered],
        "reason": [reason for (_, reason), _ in ordered],
    }


def row_columns(found: SpeedupValidation) -> Columns:
    """Every row of every file with its prediction, or with the reason why it has none; times in seconds."""
    used = {"file": [one.claim.file for one in found.predicted], **predicted_columns(found.predicted)}
    unused = {name: [getattr(one, name) for one in found.unused] for name in ("file", "line", "source")}
    return with_left_out(used, unused, [one.reason for one in found.unused])


def predicted_columns(predicted: Sequence[Predicted]) -> dict[str, list[Any]]:
    """Every predicted row; times in seconds."""
    claims = [one.claim for one in predicted]
    return {
        **{
            name: [getattr(one, name) for one in claims]
            for name in ("source", "url", "table", "line", "task")
        },
        "tier": [one.known.tier for one in claims],
        "device": [one.device for one in claims],
        "tensor_parallel": [one.tensor for one in predicted],
        "model": [one.model for one in claims],
        "weights": [one.weights or "checkpoint" for one in claims],
        "drafter": [one.proposal.text for one in claims],
        "draft_length": [one.proposal.draft_length for one in claims],
        "batch": [one.batch for one in claims],
        "tokens_per_cycle": [one.tokens_per_cycle for one in claims],
        "measured_speedup": [one.speedup for one in claims],
        "predicted_speedup": [one.speedup for one in predicted],
        "error": [one.error for one in predicted],
        "low": [one.low for one in predicted],
        "high": [one.high for one in predicted],
        "bare_speedup": [one.bare_speedup for one in predicted],
        "measured_cycle_cost": [one.measured_cycle_cost for one in predicted],
        "predicted_cycle_cost": [one.cycle_cost for one in predicted],
        **{
            name: [getattr(one.parts, name) for one in predicted]
            for name in ("step_s", "draft_s", "verify_s", "plain_host_s", "cycle_host_s", "prompt_s")
        },
        "host_source": ["" if one.host is None else one.host.source for one in predicted],
        "impossible": [one.impossible for one in claims],
        "assumed": ["; ".join(one.notes) for one in claims],
    }


def document(found: SpeedupValidation) -> dict[str, Any]:
    """The result for machines (docs/schemas/validate-speedups.schema.json)."""
    return {
        "schema_version": SCHEMA_VERSION,
        "files": list(found.files),
        "rows_used": sum(not one.claim.impossible for one in found.predicted),
        "rows_impossible": sum(one.claim.impossible for one in found.predicted),
        "rows_left_out": len(found.unused),
        "assumptions": list(ASSUMPTIONS),
        "sources": as_records(verdict_columns(found.verdicts)),
        "left_out": as_records(unused_columns(found.unused)),
    }
