"""One engine under a fixed number of requests, as benchmark clients measure it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rooflines.serving.benchmark import WAVES, benchmark_state
from rooflines.serving.fleet import Fleet
from rooflines.serving.workload import Workload


def closed_rows(
    option: str, drafter: str, fleet: Fleet, workload: Workload, concurrency: Sequence[int]
) -> list[dict[str, Any]]:
    """What a client measures that keeps so many requests running and sends all of them at the start."""
    rows = []
    for sequences in concurrency:
        state = benchmark_state(fleet.curve, fleet.decode_tokens, float(sequences), WAVES)
        batch = min(max(round(state.batch), 1), fleet.curve.max_sequences)
        rows.append(
            {
                "option": option,
                "drafter": drafter,
                "concurrency": sequences,
                "requests_per_s": state.rate_per_s,
                "batch": state.batch,
                "draft_length": int(fleet.curve.draft_length[batch]),
                "tpot_s": state.tpot_s,
                "ttft_s": state.ttft_s,
                "tokens_per_s_per_card": state.rate_per_s * workload.mean_output / fleet.cards_per_engine,
            }
        )
    return rows
