"""What must hold of every cycle, whatever the device, batch, context, draft length and acceptance."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.serving.memory import largest_batch, memory_fit
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import (
    cycle,
    cycle_break_even_acceptance,
    cycle_break_even_cost_ratio,
    cycle_times,
)
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine

PAIRS = [
    ("a100-sxm-80gb", "llama-2-7b", "tinyllama-1.1b-v1.0", 1),
    ("h100-sxm5-80gb", "llama-3.1-70b", "llama-3.2-1b", 4),
    ("l4", "qwen3-8b", "qwen3-0.6b", 1),
    ("h200-sxm-141gb", "qwen2.5-7b", "qwen2.5-0.5b", 2),
]


@cache
def served(index, calibration):
    hardware, target, drafter, tensor = PAIRS[index]
    machine = make_machine(hardware, calibration)
    whole = make_deployment(target, machine, tensor=tensor)
    return whole, IndependentDrafter(make_deployment(drafter, machine, tensor=tensor), whole.model)


pairs = st.tuples(st.integers(0, len(PAIRS) - 1), st.sampled_from(["textbook", "none"]))
batches = st.integers(1, 512).map(float)
contexts = st.integers(0, 32768).map(float)
places = st.tuples(batches, contexts)
lengths = st.integers(1, 16).map(float)
rates = st.floats(0, 1)
overheads = st.floats(0, 0.01)


@given(pairs, places, overheads)
def test_draft_length_0_is_plain_decoding(pair, place, overhead_s):
    outcome = cycle(cycle_times(*served(*pair), *place, 0.0, overhead_s=overhead_s), Acceptance.constant(0.5))
    assert outcome.speedup == 1.0


@given(pairs, places, lengths, rates, overheads)
def test_the_speedup_is_at_most_the_tokens_where_verifying_is_not_cheaper(
    pair, place, length, rate, overhead_s
):
    outcome = cycle(
        cycle_times(*served(*pair), *place, length, overhead_s=overhead_s), Acceptance.constant(rate)
    )
    assert outcome.verify_s >= outcome.target_step_s
    assert outcome.cycle_cost >= 1
    assert 0 < outcome.speedup <= outcome.tokens_per_cycle
    assert 1 <= outcome.tokens_per_cycle <= length + 1


@given(pairs, places, lengths, rates, rates)
def test_the_speedup_rises_with_acceptance(pair, place, length, one, other):
    """More of a draft accepted adds up to one token; catching up after it costs less than a step."""
    low, high = sorted((one, other))
    times = cycle_times(*served(*pair), *place, length)
    found = [float(cycle(times, Acceptance.constant(rate)).speedup) for rate in (low, high)]
    assert found[0] <= found[1] * (1 + 1e-12)


@given(pairs, places, lengths, rates, overheads)
def test_the_parts_of_a_cycle_add(pair, place, length, rate, overhead_s):
    outcome = cycle(
        cycle_times(*served(*pair), *place, length, overhead_s=overhead_s), Acceptance.constant(rate)
    )
    parts = [outcome.draft_s, outcome.verify_s, outcome.overhead_s]
    assert outcome.cycle_cost == pytest.approx(sum(part / outcome.target_step_s for part in parts), rel=1e-12)
    assert outcome.speedup * outcome.cycle_cost == pytest.approx(outcome.tokens_per_cycle, rel=1e-12)
    per_token = outcome.target_step_s / outcome.time_per_token_s
    assert per_token == pytest.approx(outcome.speedup, rel=1e-12)


@given(pairs, places, lengths, rates)
def test_verifying_costs_more_the_wider_it_is(pair, place, length, rate):
    narrow, wide = (
        cycle(cycle_times(*served(*pair), *place, n), Acceptance.constant(rate)) for n in (length, length + 1)
    )
    assert wide.verify_s >= narrow.verify_s
    assert wide.draft_s >= narrow.draft_s


@given(pairs, places, lengths, rates)
def test_without_a_free_verify_leviathan_is_a_bound(pair, place, length, rate):
    outcome = cycle(cycle_times(*served(*pair), *place, length), Acceptance.constant(rate))
    bound = outcome.tokens_per_cycle / (outcome.cost_ratio * length + 1)
    assert outcome.speedup <= bound * (1 + 1e-12)


@settings(max_examples=40)
@given(pairs, places, lengths, overheads)
def test_at_the_break_even_acceptance_the_speedup_is_one(pair, place, length, overhead_s):
    times = cycle_times(*served(*pair), *place, length, overhead_s=overhead_s)
    needed = float(cycle_break_even_acceptance(times))
    if np.isnan(needed):
        assert cycle(times, Acceptance.constant(1.0)).speedup < 1
    else:
        assert cycle(times, Acceptance.constant(needed)).speedup == pytest.approx(1.0, abs=1e-9)


@given(pairs, places, lengths, rates)
def test_a_cost_ratio_pays_below_its_break_even_and_not_above(pair, place, length, rate):
    outcome = cycle(cycle_times(*served(*pair), *place, length), Acceptance.constant(rate))
    margin = cycle_break_even_cost_ratio(outcome) - outcome.cost_ratio
    assert (margin > 0) == (outcome.speedup > 1) or abs(margin) < 1e-9


@settings(max_examples=50)
@given(pairs, st.integers(0, 16384).map(float), st.integers(0, 16).map(float), st.floats(0, 0.9))
def test_the_largest_batch_fits_and_the_next_does_not(pair, context, length, reserve):
    room = largest_batch(*served(*pair), context, length, reserve=reserve)
    assert not memory_fit(*served(*pair), room + 1.0, context, length, reserve=reserve).fits
    if room:
        assert memory_fit(*served(*pair), float(room), context, length, reserve=reserve).fits
