"""What must hold of the intervals of every engine under every load."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.serving.engine import Engine, StepCurve
from rooflines.serving.fleet import Fleet
from rooflines.serving.steady import open_state, saturation_per_s
from rooflines.serving.uncertain import ends, slowed
from rooflines.studies.serve import make_deployment, make_machine

ENGINE = Engine(make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb")))
SDS = st.floats(0.01, 0.15)
LOADS = st.floats(0.05, 0.7)


class Served(NamedTuple):
    """A fleet without its model, which is long to print."""

    curve: StepCurve
    decode_tokens: float

    @property
    def saturation_per_s(self):
        return saturation_per_s(self.curve, self.decode_tokens)

    def slowed(self, factors):
        return slowed(Fleet(ENGINE, self.curve, self.decode_tokens), *factors).curve


@st.composite
def fleets(draw):
    """Engines whose steps grow with the batch, with prompts of one kind."""
    most = draw(st.integers(2, 48))
    every = np.arange(most + 1, dtype=float)
    fixed, each = draw(st.floats(2e-3, 50e-3)), draw(st.floats(0.0, 1e-3))
    curve = StepCurve(
        step_s=np.where(every > 0, fixed + each * every, 0.0),
        tokens_per_step=np.full(most + 1, draw(st.floats(1.0, 5.0))),
        draft_length=np.zeros(most + 1),
        prompt_extra_s=np.full((most + 1, 1), draw(st.floats(1e-3, 0.1))),
        prompt_chunks=np.ones((most + 1, 1)),
        prompt_weights=np.ones(1),
        chunk_share=np.full(most + 1, draw(st.floats(0.05, 1.0))),
        max_sequences=most,
    )
    return Served(curve, draw(st.floats(20.0, 2000.0)))


def errors(shared, step, prompt):
    return {"shared": shared, "step": step}, {"shared": shared, "prompt": prompt}


def tpot_of(fleet, rate):
    def tpot(factors):
        state = open_state(fleet.slowed(factors), fleet.decode_tokens, rate)
        return math.inf if state is None else state.tpot_s

    return tpot


@settings(deadline=None, max_examples=40)
@given(fleets(), LOADS, SDS, SDS, SDS)
def test_an_answer_lies_inside_and_larger_errors_reach_further(fleet, load, shared, step, prompt):
    tpot = tpot_of(fleet, load * fleet.saturation_per_s)
    low, high = ends(tpot, errors(shared, step, prompt))
    assert low < tpot((1.0, 1.0)) < high
    wider = ends(tpot, errors(1.3 * shared, 1.3 * step, 1.3 * prompt))
    assert wider[0] < low
    assert wider[1] > high or high == math.inf


@settings(deadline=None, max_examples=40)
@given(fleets(), SDS)
def test_an_error_of_all_times_moves_saturation_by_as_much(fleet, log_sd):
    def saturation(factors):
        return saturation_per_s(fleet.slowed(factors), fleet.decode_tokens)

    low, high = ends(saturation, errors(log_sd, 0.0, 0.0))
    reach = math.exp(1.6448536 * log_sd)
    middle = fleet.saturation_per_s
    assert (low, high) == pytest.approx((middle / reach, middle * reach), rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(fleets(), LOADS, SDS, SDS)
def test_a_higher_load_makes_ends_no_nearer(fleet, load, shared, step):
    spread = []
    for rate in (0.5 * load * fleet.saturation_per_s, load * fleet.saturation_per_s):
        low, high = ends(tpot_of(fleet, rate), errors(shared, step, step))
        spread.append(high / low)
    # Of few sequences and long prompts the full engine is met at any load: there the ends hardly move.
    assert spread[1] >= 0.97 * spread[0]


@settings(deadline=None, max_examples=40)
@given(fleets(), LOADS, SDS, SDS)
def test_two_engines_that_err_alike_have_an_exact_ratio(fleet, load, step, prompt):
    tpot = tpot_of(fleet, load * fleet.saturation_per_s)
    both = errors(0.05, step, prompt)

    def ratio(factors):
        return tpot(factors[:2]) / tpot(factors[2:])

    assert ends(ratio, (*both, *both)) == pytest.approx((1.0, 1.0), abs=1e-9)
