"""The tables of a capacity answer, row by row."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from rooflines.serving.fleet import Fleet, Load
from rooflines.serving.goodput import Objective
from rooflines.serving.mixed import expert_exchange
from rooflines.serving.steady import at, completions_per_s
from rooflines.serving.workload import Workload
from rooflines.speculation.crossover import crossover

# Loads of one engine that are tabled, as shares of what it carries when it decodes plainly.
_LOADS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
# Points of a Pareto curve.
_POINTS: Final = 24
_TOKENS_PER_MILLION: Final = 1e6
_SECONDS_PER_HOUR: Final = 3600.0


def option_row(
    option: str,
    drafter: str,
    fleet: Fleet,
    workload: Workload,
    *,
    objective: Objective,
    rate: float | None,
    price_per_hour: float | None,
) -> dict[str, Any]:
    """One option with one drafter: what an engine carries, and how many the load needs.

    Without a load, the state is that of one engine at its goodput (none where only saturation bounds it).
    """
    goodput = fleet.goodput_per_s(objective)
    per_request = fleet.cards_per_request_per_s(objective)
    engines = None if rate is None else fleet.needed(rate, objective)
    total = rate
    if rate is None and objective.promises and goodput > 0:
        per_decode = goodput / fleet.prefill_goodput_per_s(objective)
        engines, total = (1, math.ceil(per_decode)), goodput * (1.0 - 1e-6)
    load = None if engines is None or total is None else fleet.under(total, engines, objective)
    cards = None if engines is None else fleet.cards(engines)
    tokens = None if total is None or cards is None else total * workload.mean_output
    return {
        "option": option,
        "drafter": drafter,
        "cards_per_engine": fleet.cards_per_engine,
        "largest_batch": fleet.curve.max_sequences,
        "saturation_requests_per_s": fleet.saturation_per_s,
        "goodput_requests_per_s": goodput,
        "goodput_tokens_per_s_per_card": workload.mean_output / per_request if per_request > 0 else None,
        "engines": None if engines is None or rate is None else sum(engines),
        "prefill_engines": None if engines is None or rate is None else engines[1],
        "cards": None if rate is None else cards,
        **_state(fleet, load, objective),
        "tokens_per_s_per_card": tokens / cards if tokens and cards else None,
        "price_per_hour": price_per_hour * cards if price_per_hour and cards and rate is not None else None,
        "price_per_million_tokens": (
            price_per_hour * cards / _SECONDS_PER_HOUR / tokens * _TOKENS_PER_MILLION
            if price_per_hour and cards and tokens
            else None
        ),
        "energy_upper_bound_j_per_token": _energy(fleet, cards, tokens),
    }


def _energy(fleet: Fleet, cards: int | None, tokens: float | None) -> float | None:
    """All cards at their thermal design power: an upper bound of the energy of a token (J)."""
    tdp = fleet.engine.target.machine.profile.tdp
    if tdp is None or not cards or not tokens:
        return None
    return tdp.value.si * cards / tokens


def _state(fleet: Fleet, load: Load | None, objective: Objective) -> dict[str, Any]:
    """The columns of a state; empty where there is none."""
    if load is None:
        names = ("requests_per_s_per_engine", "utilisation", "batch", "batch_quantile", "draft_length")
        times = (
            "tpot_s",
            "tpot_quantile_s",
            "ttft_s",
            "ttft_quantile_s",
            "gap_p50_s",
            "gap_p95_s",
            "gap_p99_s",
        )
        return dict.fromkeys((*names, *times))
    state = load.state
    return {
        "requests_per_s_per_engine": state.rate_per_s,
        "utilisation": state.utilisation,
        "batch": state.batch,
        "batch_quantile": state.batch_quantile(objective.share),
        "draft_length": int(fleet.curve.draft_length[max(round(state.batch), 1)]),
        "tpot_s": state.tpot_s,
        "tpot_quantile_s": state.tpot_quantile_s(objective.share),
        "ttft_s": load.ttft_s,
        "ttft_quantile_s": load.ttft_quantile_s,
        "gap_p50_s": state.gap_quantile_s(0.5),
        "gap_p95_s": state.gap_quantile_s(0.95),
        "gap_p99_s": state.gap_quantile_s(0.99),
    }


def load_rows(
    option: str, drafter: str, fleet: Fleet, plain: Fleet, workload: Workload, *, objective: Objective
) -> list[dict[str, Any]]:
    """One engine at shares of what it carries plainly: batch, draft length and times by load."""
    rows = []
    for share in _LOADS:
        rate = share * plain.saturation_per_s
        engines = (1, 0 if fleet.pool is None else math.ceil(rate / fleet.pool.saturation_per_s + 1e-9))
        load = fleet.under(rate, engines, objective)
        rows.append(
            {
                "option": option,
                "drafter": drafter,
                "plain_load": share,
                "rate_requests_per_s": rate,
                "overloaded": load is None,
                **_state(fleet, load, objective),
                "tokens_per_s_per_card": None
                if load is None
                else rate * workload.mean_output / fleet.cards(engines),
            }
        )
    return rows


def stops_paying(option: str, drafter: str, fleet: Fleet, plain: Fleet, workload: Workload) -> dict[str, Any]:
    """The batch and the arrival rate from which on no draft length wins, and what binds there."""
    engine = fleet.engine
    lengths = [length for length in engine.schedule.lengths if length > 0]
    found: dict[str, Any] = {"option": option, "drafter": drafter}
    if engine.drafter is None or engine.acceptance is None or not lengths:
        return {
            **found,
            "batch": 1,
            "rate_requests_per_s": 0.0,
            "operator": None,
            "bound": None,
            "searched_to": 0,
        }
    end = crossover(
        engine.target,
        engine.drafter,
        engine.acceptance,
        lengths,
        workload.mean_context,
        largest_batch=fleet.curve.max_sequences,
        overhead_s=engine.cycle_overhead_s,
    )
    rate = (
        None
        if end.batch is None
        else completions_per_s(plain.curve, workload.decode_tokens, float(end.batch))
    )
    return {
        **found,
        "batch": end.batch,
        "rate_requests_per_s": rate,
        "operator": end.operator,
        "bound": end.bound,
        "searched_to": end.searched_to,
    }


def pareto_rows(option: str, drafter: str, fleet: Fleet) -> list[dict[str, Any]]:
    """Tokens per second and card against tokens per second and user, batch by batch.

    Requests are replaced as they end; prefill engines count by the share that the load needs.
    """
    curve, rows = fleet.curve, []
    for batch in np.unique(np.geomspace(1, curve.max_sequences, _POINTS).round()):
        rate = completions_per_s(curve, fleet.decode_tokens, float(batch))
        prefill = 0.0 if fleet.pool is None else rate / fleet.pool.saturation_per_s
        per_user = rate * fleet.decode_tokens / batch
        rows.append(
            {
                "option": option,
                "drafter": drafter,
                "batch": int(batch),
                "draft_length": int(at(curve.draft_length, float(batch))),
                "tokens_per_s_per_user": per_user,
                "tokens_per_s_per_card": per_user * batch / (fleet.cards_per_engine * (1.0 + prefill)),
            }
        )
    return rows


def exchange_rows(option: str, fleet: Fleet, workload: Workload, batched_tokens: int) -> list[dict[str, Any]]:
    """The two regimes of expert parallelism: a full decode step and a full chunk; empty without."""
    target, rows = fleet.engine.target, []
    batch = float(fleet.curve.max_sequences)
    decode = target.decode(batch, workload.mean_context)
    prefill = target.prefill(1.0, float(batched_tokens), 0.0)
    for phase, timed, tokens in (("decode", decode, batch), ("prefill", prefill, float(batched_tokens))):
        found = expert_exchange(target, timed, tokens)
        if found is not None:
            rows.append(
                {
                    "option": option,
                    "phase": phase,
                    "tokens_per_step": found.tokens,
                    "exchange_s": found.seconds,
                    "share_of_step": found.share,
                    "bound": found.bound,
                }
            )
    return rows
