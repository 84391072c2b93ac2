"""The tables of a capacity answer, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rooflines.serving.benchmark import WAVES, benchmark_state
from rooflines.serving.fleet import Fleet, Load
from rooflines.serving.goodput import Objective
from rooflines.serving.mixed import expert_exchange
from rooflines.serving.steady import at, completions_per_s
from rooflines.serving.workload import Workload
from rooflines.speculation.crossover import end_of, search_batches
from rooflines.studies.capacity_intervals import (
    STATE_ENDS,
    Served,
    carried_ends,
    closed_ends,
    draft_length_at,
    engines_for,
    gain_columns,
    search_ends,
    speedup_columns,
    state_ends,
)

# Loads of one engine that are tabled, as shares of what it carries when it decodes plainly.
_LOADS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
# Points of a Pareto curve.
_POINTS: Final = 24
# Share of what an engine carries at which requests hardly meet.
_IDLE: Final = 1e-6
_TOKENS_PER_MILLION: Final = 1e6
_SECONDS_PER_HOUR: Final = 3600.0


def option_row(
    one: Served,
    plain: Served,
    workload: Workload,
    *,
    objective: Objective,
    rate: float | None,
    price_per_hour: float | None,
) -> dict[str, Any]:
    """One option with one drafter: what an engine carries, and how many the load needs.

    Without a load, the state is that of one engine at its goodput (none where only saturation bounds it).
    """
    fleet = one.fleet
    goodput = fleet.goodput_per_s(objective)
    per_request = fleet.cards_per_request_per_s(objective)
    engines = None if rate is None else fleet.needed(rate, objective)
    total = rate
    prefill_goodput = fleet.prefill_goodput_per_s(objective)
    if rate is None and objective.promises and goodput > 0 and prefill_goodput > 0:
        engines, total = (1, math.ceil(goodput / prefill_goodput)), goodput * (1.0 - 1e-6)
    load = None if engines is None or total is None else fleet.under(total, engines, objective)
    cards = None if engines is None else fleet.cards(engines)
    tokens = None if total is None or cards is None else total * workload.mean_output
    return {
        "option": one.option,
        "drafter": one.drafter,
        "cards_per_engine": fleet.cards_per_engine,
        "largest_batch": fleet.curve.max_sequences,
        **_alone(fleet, objective),
        "saturation_requests_per_s": fleet.saturation_per_s,
        "goodput_requests_per_s": goodput,
        "goodput_tokens_per_s_per_card": workload.mean_output / per_request if per_request > 0 else None,
        **gain_columns(one, plain, objective),
        "engines": None if engines is None or rate is None else sum(engines),
        "prefill_engines": None if engines is None or rate is None else engines[1],
        "cards": None if rate is None else cards,
        **carried_ends(one, workload, objective, rate),
        **_state(one, load, objective),
        **(
            dict.fromkeys(STATE_ENDS)
            if load is None or total is None or engines is None
            else state_ends(one, load, total, engines, objective)
        ),
        "tokens_per_s_per_card": tokens / cards if tokens and cards else None,
        "price_per_hour": price_per_hour * cards if price_per_hour and cards and rate is not None else None,
        "price_per_million_tokens": (
            price_per_hour * cards / _SECONDS_PER_HOUR / tokens * _TOKENS_PER_MILLION
            if price_per_hour and cards and tokens
            else None
        ),
        "energy_upper_bound_j_per_token": _energy(fleet, cards, tokens),
    }


def _alone(fleet: Fleet, objective: Objective) -> dict[str, float | None]:
    """Times of a request that meets no other: no promise below them can be kept (s)."""
    rate = _IDLE * fleet.saturation_per_s
    load = fleet.under(rate, engines_for(fleet, rate, objective), objective)
    return {
        "alone_tpot_s": None if load is None else load.state.tpot_s,
        "alone_ttft_s": None if load is None else load.ttft_s,
    }


def _energy(fleet: Fleet, cards: int | None, tokens: float | None) -> float | None:
    """All cards at their thermal design power: an upper bound of the energy of a token (J)."""
    tdp = fleet.engine.target.machine.profile.tdp
    if tdp is None or not cards or not tokens:
        return None
    return tdp.value.si * cards / tokens


def _state(one: Served, load: Load | None, objective: Objective) -> dict[str, Any]:
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
        "draft_length": draft_length_at(one.fleet, state.batch),
        "tpot_s": state.tpot_s,
        "tpot_quantile_s": state.tpot_quantile_s(objective.share),
        "ttft_s": load.ttft_s,
        "ttft_quantile_s": load.ttft_quantile_s,
        "gap_p50_s": state.gap_quantile_s(0.5),
        "gap_p95_s": state.gap_quantile_s(0.95),
        "gap_p99_s": state.gap_quantile_s(0.99),
    }


def load_rows(one: Served, plain: Served, workload: Workload, objective: Objective) -> list[dict[str, Any]]:
    """One engine at shares of what it carries plainly: batch, draft length and times by load."""
    fleet, rows = one.fleet, []
    for share in _LOADS:
        rate = share * plain.fleet.saturation_per_s
        engines = engines_for(fleet, rate, objective)
        load = fleet.under(rate, engines, objective)
        rows.append(
            {
                "option": one.option,
                "drafter": one.drafter,
                "plain_load": share,
                "rate_requests_per_s": rate,
                "prefill_engines": engines[1],
                "overloaded": load is None,
                **_state(one, load, objective),
                **(
                    dict.fromkeys(STATE_ENDS)
                    if load is None
                    else state_ends(one, load, rate, engines, objective)
                ),
                **speedup_columns(one, plain, rate),
                "tokens_per_s_per_card": None
                if load is None
                else rate * workload.mean_output / fleet.cards(engines),
            }
        )
    return rows


def closed_rows(one: Served, workload: Workload, concurrency: Sequence[int]) -> list[dict[str, Any]]:
    """What a client measures that keeps so many requests running and sends all of them at the start."""
    fleet, rows = one.fleet, []
    for sequences in concurrency:
        state = benchmark_state(
            fleet.curve,
            fleet.decode_tokens,
            float(sequences),
            WAVES,
            equal_lengths=workload.equal_lengths,
        )
        rows.append(
            {
                "option": one.option,
                "drafter": one.drafter,
                "concurrency": sequences,
                "waiting": max(sequences - fleet.curve.max_sequences, 0),
                "requests_per_s": state.rate_per_s,
                "batch": state.batch,
                "draft_length": draft_length_at(fleet, state.batch),
                "tpot_s": state.tpot_s,
                "ttft_s": state.ttft_s,
                "tokens_per_s_per_card": state.rate_per_s * workload.mean_output / fleet.cards_per_engine,
                **closed_ends(one, workload, sequences, state),
            }
        )
    return rows


def stops_paying(one: Served, plain: Served, workload: Workload) -> dict[str, Any]:
    """The batch and the arrival rate from which on no draft length wins, and what binds there."""
    engine = one.fleet.engine
    lengths = sorted({length for length in engine.schedule.lengths if length > 0})
    found: dict[str, Any] = {"option": one.option, "drafter": one.drafter}
    if engine.drafter is None or engine.acceptance is None or not lengths:
        names = ("batch", "batch_low", "batch_high")
        rates = ("rate_requests_per_s", "rate_low_requests_per_s", "rate_high_requests_per_s")
        never = dict.fromkeys(names, 1) | dict.fromkeys(rates, 0.0)
        return {**found, **never, "operator": None, "bound": None, "searched_to": 0, "interval": False}
    search = search_batches(
        engine.target,
        engine.drafter,
        engine.acceptance,
        lengths,
        workload.mean_context,
        largest_batch=one.fleet.curve.max_sequences,
        host=engine.cycle_host,
    )
    end = end_of(search, engine.target, engine.drafter, workload.mean_context)
    unsure = search_ends(search, one.errors)
    low, high = (
        (None, None)
        if unsure is None
        else (end_of(bound, engine.target, engine.drafter, workload.mean_context).batch for bound in unsure)
    )

    def rate(batch: int | None) -> float | None:
        if batch is None:
            return None
        return completions_per_s(plain.fleet.curve, workload.decode_tokens, float(batch))

    return {
        **found,
        "batch": end.batch,
        "batch_low": low,
        "batch_high": high,
        "rate_requests_per_s": rate(end.batch),
        "rate_low_requests_per_s": rate(low),
        "rate_high_requests_per_s": rate(high),
        "operator": end.operator,
        "bound": end.bound,
        "searched_to": end.searched_to,
        "interval": unsure is not None,
    }


def pareto_rows(one: Served) -> list[dict[str, Any]]:
    """Tokens per second and card against tokens per second and user, batch by batch.

    Requests are replaced as they end; prefill engines count by the share that the load needs.
    """
    fleet, rows = one.fleet, []
    curve = fleet.curve
    for batch in np.unique(np.geomspace(1, curve.max_sequences, _POINTS).round()):
        rate = completions_per_s(curve, fleet.decode_tokens, float(batch))
        prefill = 0.0 if fleet.pool is None else rate / fleet.pool.saturation_per_s
        per_user = rate * fleet.decode_tokens / batch
        rows.append(
            {
                "option": one.option,
                "drafter": one.drafter,
                "batch": int(batch),
                "draft_length": int(at(curve.draft_length, float(batch))),
                "tokens_per_s_per_user": per_user,
                "tokens_per_s_per_card": per_user * batch / (fleet.cards_per_engine * (1.0 + prefill)),
            }
        )
    return rows


def exchange_rows(one: Served, workload: Workload, batched_tokens: int) -> list[dict[str, Any]]:
    """The two regimes of expert parallelism: a full decode step and a full chunk; empty without."""
    target, rows = one.fleet.engine.target, []
    batch = float(one.fleet.curve.max_sequences)
    decode = target.decode(batch, workload.mean_context)
    prefill = target.prefill(1.0, float(batched_tokens), 0.0)
    for phase, timed, tokens in (("decode", decode, batch), ("prefill", prefill, float(batched_tokens))):
        found = expert_exchange(target, timed, tokens)
        if found is not None:
            rows.append(
                {
                    "option": one.option,
                    "phase": phase,
                    "tokens_per_step": round(found.tokens),
                    "exchange_s": found.seconds,
                    "share_of_step": found.share,
                    "bound": found.bound,
                }
            )
    return rows
