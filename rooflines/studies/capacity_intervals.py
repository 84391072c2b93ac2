"""Between which ends the rows of a capacity answer lie in 90 % of the cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from rooflines.estimates import Estimate
from rooflines.serving.fleet import Fleet, Load
from rooflines.serving.goodput import Objective, engines_needed
from rooflines.serving.steady import ClosedState, OpenState, closed_state, open_state
from rooflines.serving.uncertain import EngineErrors, Errors, client_ends, ends, slowed, turning_factors
from rooflines.serving.workload import Workload
from rooflines.speculation.crossover import BatchSearch

STATE_ENDS: Final = ("tpot_low_s", "tpot_high_s", "ttft_low_s", "ttft_high_s", "may_overload")
CARRIED_ENDS: Final = (
    "saturation_low_requests_per_s",
    "saturation_high_requests_per_s",
    "goodput_low_requests_per_s",
    "goodput_high_requests_per_s",
    "goodput_low_tokens_per_s_per_card",
    "goodput_high_tokens_per_s_per_card",
    "cards_low",
    "cards_high",
)
CLOSED_ENDS: Final = (
    "tpot_low_s",
    "tpot_high_s",
    "ttft_low_s",
    "ttft_high_s",
    "low_tokens_per_s_per_card",
    "high_tokens_per_s_per_card",
)
_NEVER: Final = math.inf


@dataclass(frozen=True, slots=True)
class Served:
    """One way to serve, with one drafter or none.

    Attributes:
        option: its name.
        drafter: its name; ``none`` decodes plainly.
        fleet: the engines.
        errors: how wrong their times may be; None where nothing states it.
    """

    option: str
    drafter: str
    fleet: Fleet
    errors: EngineErrors | None

    @property
    def request_s(self) -> float:
        """Host time of a request, which is as it was given (s)."""
        return self.fleet.engine.host.request_s

    def errors_at(self, batch: float) -> tuple[Errors, Errors, Errors] | None:
        """Errors of steps, of prompts and of waits for the first token at a mean batch."""
        if self.errors is None:
            return None
        return self.errors.served(batch, draft_length_at(self.fleet, batch))

    def errors_of_passes(self, batch: float) -> tuple[Errors, ...] | None:
        """Errors of steps and of prompts without those that engines add with drafts or without."""
        if self.errors is None:
            return None
        return self.errors.of_passes(batch, draft_length_at(self.fleet, batch))


def draft_length_at(fleet: Fleet, batch: float) -> int:
    """Tokens that an engine drafts at a mean batch."""
    whole = min(max(round(batch), 1), fleet.curve.max_sequences)
    return int(fleet.curve.draft_length[whole])


def state_ends(
    one: Served, load: Load, rate_per_s: float, engines: tuple[int, int], objective: Objective
) -> dict[str, Any]:
    """Ends of the times of a fleet under a load; the high ones are None where it may be overloaded."""
    errors = one.errors_at(load.state.batch)
    if errors is None:
        return dict.fromkeys(STATE_ENDS)

    def under(factors: Sequence[float]) -> Load | None:
        return slowed(one.fleet, *factors[:2]).under(rate_per_s, engines, objective)

    def tpot(factors: Sequence[float]) -> float:
        found = under(factors)
        return _NEVER if found is None else found.state.tpot_s

    def ttft(factors: Sequence[float]) -> float:
        found = under(factors)
        if found is None:
            return _NEVER
        # Waits for a place are as long as the engine is slow, and no longer.
        place = _place_wait_s(found.state) if one.fleet.pool is None else 0.0
        known = place + one.request_s
        return known + (found.ttft_s - known) * factors[2]

    tpots, ttfts = ends(tpot, errors[:2]), ends(ttft, errors)
    # As likely as the end of one is an overload, and then both grow without end.
    may_overload = math.isinf(tpots[1])
    highest = None if may_overload else _finite(ttfts[1])
    values = (tpots[0], _finite(tpots[1]), ttfts[0], highest, may_overload)
    return dict(zip(STATE_ENDS, values, strict=True))


def carried_ends(
    one: Served, workload: Workload, objective: Objective, rate_per_s: float | None
) -> dict[str, Any]:
    """Ends of what an engine carries and of the cards that a load needs."""
    fleet = one.fleet
    full = closed_state(fleet.curve, fleet.decode_tokens, float(fleet.curve.max_sequences))
    errors = one.errors_at(full.batch)
    if errors is None:
        return dict.fromkeys(CARRIED_ENDS)

    def per_card(factors: Sequence[float]) -> float:
        slower, promised = _slower(one, objective, factors)
        return workload.mean_output / slower.cards_per_request_per_s(promised)

    saturation = ends(lambda factors: slowed(fleet, *factors).saturation_per_s, errors[:2])
    turns = [_slower(one, objective, factors) for factors in turning_factors(per_card, errors)]
    goodput = [slower.goodput_per_s(promised) for slower, promised in turns]
    tokens = [workload.mean_output / slower.cards_per_request_per_s(promised) for slower, promised in turns]
    cards = [_cards(slower, promised, rate_per_s) for slower, promised in reversed(turns)]
    return dict(zip(CARRIED_ENDS, (*saturation, *goodput, *tokens, *cards), strict=True))


def _slower(one: Served, objective: Objective, factors: Sequence[float]) -> tuple[Fleet, Objective]:
    """The fleet at factors on its times; a longer wait for the first token is a shorter promise of it."""
    step, prompt, first = factors
    promised = objective.ttft_s
    if promised is not None and promised > one.request_s:
        promised = one.request_s + (promised - one.request_s) / first
    return slowed(one.fleet, step, prompt), replace(objective, ttft_s=promised)


def _cards(fleet: Fleet, objective: Objective, rate_per_s: float | None) -> int | None:
    engines = None if rate_per_s is None else fleet.needed(rate_per_s, objective)
    return None if engines is None else fleet.cards(engines)


def gain_columns(one: Served, plain: Served, objective: Objective) -> dict[str, Any]:
    """How many times the goodput of plain decoding an engine carries; empty for plain decoding itself."""
    names = ("goodput_over_plain", "goodput_over_plain_low", "goodput_over_plain_high")
    goodput, base = (served.fleet.goodput_per_s(objective) for served in (one, plain))
    if one.drafter == plain.drafter or base <= 0:
        return dict.fromkeys(names)
    own = one.errors_of_passes(_batch_at(one.fleet, goodput))
    other = plain.errors_of_passes(_batch_at(plain.fleet, base))
    if own is None or other is None:
        return dict(zip(names, (goodput / base, None, None), strict=True))
    known: dict[tuple[str, tuple[float, ...]], float] = {}

    def carried(served: Served, factors: Sequence[float]) -> float:
        key = (served.drafter, tuple(factors))
        if key not in known:
            known[key] = slowed(served.fleet, *factors).goodput_per_s(objective)
        return known[key]

    def ratio(factors: Sequence[float]) -> float:
        below = carried(plain, factors[2:])
        return carried(one, factors[:2]) / below if below > 0 else _NEVER

    low, high = ends(ratio, (*own, *other))
    return dict(zip(names, (goodput / base, low, _finite(high)), strict=True))


def speedup_columns(one: Served, plain: Served, rate_per_s: float) -> dict[str, Any]:
    """Plain time per token over that of an engine under the same load; empty where either is overloaded."""
    names = ("speedup", "speedup_low", "speedup_high")
    if one.drafter == plain.drafter:
        return dict.fromkeys(names)
    states = [
        open_state(served.fleet.curve, served.fleet.decode_tokens, rate_per_s) for served in (one, plain)
    ]
    if states[0] is None or states[1] is None:
        return dict.fromkeys(names)
    speedup = states[1].tpot_s / states[0].tpot_s
    own, base = one.errors_of_passes(states[0].batch), plain.errors_of_passes(states[1].batch)
    if own is None or base is None:
        return dict(zip(names, (speedup, None, None), strict=True))

    def tpot(fleet: Fleet, factors: Sequence[float]) -> float:
        state = open_state(slowed(fleet, *factors).curve, fleet.decode_tokens, rate_per_s)
        return _NEVER if state is None else state.tpot_s

    def ratio(factors: Sequence[float]) -> float:
        drafted = tpot(one.fleet, factors[:2])
        return 0.0 if math.isinf(drafted) else tpot(plain.fleet, factors[2:]) / drafted

    low, high = ends(ratio, (*own, *base))
    return dict(zip(names, (speedup, low, _finite(high)), strict=True))


def closed_ends(one: Served, workload: Workload, sequences: int, state: ClosedState) -> dict[str, Any]:
    """Ends of what a benchmark client measures."""
    errors = one.errors_at(state.batch)
    if errors is None:
        return dict.fromkeys(CLOSED_ENDS)
    found = client_ends(one.fleet.curve, workload, float(sequences), errors)
    tokens_per_card = workload.mean_output / one.fleet.cards_per_engine
    rates = (end * tokens_per_card for end in found.rate_per_s)
    return dict(zip(CLOSED_ENDS, (*found.tpot_s, *found.ttft_s, *rates), strict=True))


def search_ends(search: BatchSearch, errors: EngineErrors | None) -> tuple[BatchSearch, BatchSearch] | None:
    """Speedups of every batch at the low and at the high ends of their intervals.

    Where the low ends stop paying is the low end of that batch, as all of them fall together.
    """
    if errors is None:
        return None
    batches = np.arange(1, search.largest_batch + 1, dtype=float)
    columns = [int(np.searchsorted(errors.lengths, length)) for length in search.draft_lengths]
    log_sd = errors.speedup_log_sd(batches)[:, columns]
    low, high = Estimate(search.speedups, {"passes": log_sd}).interval()
    return replace(search, speedups=np.asarray(low)), replace(search, speedups=np.asarray(high))


def engines_for(fleet: Fleet, rate_per_s: float, objective: Objective) -> tuple[int, int]:
    """One decode engine at a rate, and the prefill engines that feed it within the promise.

    Where no number of them keeps it, they are those that do not overflow.
    """
    if fleet.pool is None:
        return 1, 0
    each = fleet.prefill_goodput_per_s(objective) or fleet.pool.saturation_per_s
    return 1, engines_needed(rate_per_s, each) or 1


def _batch_at(fleet: Fleet, rate_per_s: float) -> float:
    """Mean batch of an engine at its goodput, or at saturation where that is the same."""
    state = open_state(fleet.curve, fleet.decode_tokens, rate_per_s) if rate_per_s > 0 else None
    if state is not None:
        return state.batch
    return closed_state(fleet.curve, fleet.decode_tokens, float(fleet.curve.max_sequences)).batch


def _place_wait_s(state: OpenState) -> float:
    """Mean wait of a request for a free place in the engine (s)."""
    return state.full_probability / (state.saturation_per_s - state.rate_per_s)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
