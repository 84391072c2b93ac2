"""What must hold of every engine under every load."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rooflines.serving.benchmark import benchmark_state
from rooflines.serving.engine import Engine, StepCurve, step_curve
from rooflines.serving.goodput import Objective, goodput_per_s
from rooflines.serving.host import Host
from rooflines.serving.lengths import Lengths
from rooflines.serving.steady import at, closed_state, open_state, saturation_per_s
from rooflines.serving.workload import Workload
from rooflines.studies.serve import make_deployment, make_machine


@st.composite
def curves(draw):
    """Engines whose steps grow with the batch, with prompts of one or two kinds."""
    most = draw(st.integers(1, 96))
    every = np.arange(most + 1, dtype=float)
    fixed, each = draw(st.floats(1e-3, 50e-3)), draw(st.floats(0.0, 1e-3))
    extras = draw(st.lists(st.floats(0.0, 0.3), min_size=1, max_size=2))
    chunks = draw(st.integers(1, 5))
    weights = np.full(len(extras), 1 / len(extras))
    return StepCurve(
        step_s=np.where(every > 0, fixed + each * every, 0.0),
        tokens_per_step=np.full(most + 1, draw(st.floats(1.0, 5.0))),
        draft_length=np.zeros(most + 1),
        prompt_extra_s=np.tile(extras, (most + 1, 1)),
        prompt_chunks=np.full((most + 1, len(extras)), float(chunks)),
        prompt_weights=weights,
        chunk_share=np.full(most + 1, draw(st.floats(0.05, 1.0)) * chunks),
        max_sequences=most,
    )


TOKENS = st.floats(2.0, 5000.0)
LOADS = st.floats(0.01, 0.99)


@given(curves(), TOKENS, st.floats(1.0, 300.0))
def test_littles_law_of_a_closed_system(curve, tokens, sequences):
    state = closed_state(curve, tokens, sequences)
    assert state.rate_per_s * (state.ttft_s + tokens * state.tpot_s) == pytest.approx(sequences)
    assert state.rate_per_s * tokens * state.tpot_s == pytest.approx(state.batch)
    assert 0 < state.batch <= min(sequences, curve.max_sequences) + 1e-9
    assert state.ttft_s >= -1e-9


@given(curves(), TOKENS, LOADS)
def test_littles_law_of_an_open_system(curve, tokens, load):
    state = open_state(curve, tokens, load * saturation_per_s(curve, tokens))
    assert state.probability.sum() == pytest.approx(1.0)
    assert np.all(state.probability >= 0)
    assert state.batch == pytest.approx(state.rate_per_s * tokens * state.tpot_s)
    assert state.batch <= curve.max_sequences
    assert state.utilisation == pytest.approx(load)


@given(curves(), TOKENS)
def test_saturation_splits_stable_from_overloaded(curve, tokens):
    limit = saturation_per_s(curve, tokens)
    assert open_state(curve, tokens, limit * (1 - 1e-9)) is not None
    assert open_state(curve, tokens, limit * (1 + 1e-9)) is None


# What a sequence meets of prompts is an average over its life, so it must live for some steps.
@given(curves(), st.floats(20.0, 5000.0), LOADS, LOADS)
def test_more_load_is_never_faster(curve, tokens, one, other):
    low, high = sorted((one, other))
    assume(high - low > 1e-3)
    limit = saturation_per_s(curve, tokens)
    calm, busy = (open_state(curve, tokens, share * limit) for share in (low, high))
    assert busy.tpot_s >= calm.tpot_s * (1 - 1e-2)
    assert busy.batch >= calm.batch
    assert busy.tpot_quantile_s(0.9) >= calm.tpot_quantile_s(0.9) * (1 - 1e-2)


@given(curves(), TOKENS, st.floats(1.0, 100.0), st.floats(1.0, 100.0))
def test_more_sequences_complete_more(curve, tokens, one, other):
    few, many = (closed_state(curve, tokens, count) for count in sorted((one, other)))
    # Where prompts take most of the time they bound the rate: they ride along with steps, which more sequences
    # make longer.
    prompts_s = at(curve.chunk_share * curve.step_s + curve.extra_s, max(many.batch, 1.0))
    bound = few.rate_per_s if many.rate_per_s * prompts_s < 0.8 else min(few.rate_per_s, 0.95 / prompts_s)
    assert many.rate_per_s >= bound * (1 - 1e-9)
    assert many.tpot_s >= few.tpot_s * (1 - 1e-6)


@given(curves(), TOKENS, st.floats(1.01, 3.0))
def test_no_token_is_faster_than_a_lone_one(curve, tokens, factor):
    limit = saturation_per_s(curve, tokens)
    alone = curve.step_s[1] / curve.tokens_per_step[1]
    state = open_state(curve, tokens, limit / factor)
    assert state.tpot_s >= alone * (1 - 1e-9)
    assert state.gap_quantile_s(0.01) >= curve.step_s[1] * (1 - 1e-9)


@given(curves(), TOKENS, st.floats(1.1, 4.0))
def test_more_tokens_a_step_carry_more(curve, tokens, factor):
    from dataclasses import replace

    quicker = replace(curve, tokens_per_step=curve.tokens_per_step * factor)
    assert saturation_per_s(quicker, tokens) >= saturation_per_s(curve, tokens) * (1 - 1e-9)


@settings(max_examples=25)
@given(curves(), TOKENS, st.floats(1.01, 20.0), st.floats(1.01, 3.0))
def test_a_looser_promise_carries_no_less(curve, tokens, slack, looser):
    alone = curve.step_s[1] / curve.tokens_per_step[1]
    tight = goodput_per_s(curve, tokens, Objective(tpot_s=alone * slack))
    loose = goodput_per_s(curve, tokens, Objective(tpot_s=alone * slack * looser))
    assert tight <= loose * (1 + 1e-5)
    assert loose <= saturation_per_s(curve, tokens) * (1 + 1e-9)


@cache
def _target():
    return make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))


@st.composite
def workloads(draw):
    def lengths(most):
        values = sorted(draw(st.lists(st.integers(2, most), min_size=1, max_size=3)))
        return Lengths(np.array(values, dtype=float), np.full(len(values), 1 / len(values)))

    return Workload.independent(lengths(6000), lengths(1500), draw(st.floats(0.0, 0.9)))


@settings(max_examples=20, deadline=None)
@given(workloads())
def test_a_real_engine_under_random_workloads(workload):
    curve = step_curve(Engine(_target(), max_sequences=64), workload)
    assert np.all(np.diff(curve.step_s[1:]) >= 0)
    assert np.all(curve.extra_s > 0)
    assert np.all(curve.extra_s[1:] <= curve.extra_s[0] * 1.25)
    limit = saturation_per_s(curve, workload.decode_tokens)
    state = open_state(curve, workload.decode_tokens, 0.7 * limit)
    assert state.batch == pytest.approx(state.rate_per_s * workload.decode_tokens * state.tpot_s)
    # Nothing that a device does is faster than its arithmetic: the FLOPs of a request bound the rate.
    model = _target().model
    least = 2 * (model.parameters_total - model.vocabulary * model.hidden) * workload.decode_tokens
    assert limit < _target().machine.profile.peak_flop_per_s("bf16") / least


@settings(max_examples=10, deadline=None)
@given(workloads(), st.floats(0.0, 0.5))
def test_a_better_cache_never_hurts(workload, more):
    from dataclasses import replace

    better = replace(workload, prefix_hit=min(workload.prefix_hit + more, 0.95))
    rates = [
        saturation_per_s(step_curve(Engine(_target(), max_sequences=32), one), one.decode_tokens)
        for one in (workload, better)
    ]
    assert rates[1] >= rates[0] * (1 - 1e-3)


ENDLESS = 1e12  # waves: the first one counts for nothing


def undrafted(curve):
    """Drafts part requests of equal lengths."""
    return replace(curve, tokens_per_step=np.ones_like(curve.tokens_per_step))


@given(curves(), st.floats(20.0, 2000.0), st.integers(1, 200), st.booleans(), st.booleans())
def test_littles_law_holds_for_what_clients_measure(curve, decode, sequences, equal, first):
    hosted = replace(undrafted(curve), host=Host(prompts_first=first))
    state = benchmark_state(hosted, decode, float(sequences), ENDLESS, equal_lengths=equal)
    assert state.rate_per_s * (state.ttft_s + decode * state.tpot_s) == pytest.approx(sequences, rel=1e-6)
    assert 0 < state.batch <= min(sequences, curve.max_sequences)


@given(
    curves(),
    st.floats(20.0, 2000.0),
    st.integers(1, 64),
    st.booleans(),
    st.sampled_from(
        [
            Host(request_s=50e-3),
            Host(poll_steps=30.0),
            Host(gather_steps=20.0),
            Host(launch_s=100e-3),
        ]
    ),
)
def test_a_busier_host_never_brings_a_token_sooner(curve, decode, sequences, equal, host):
    plain, hosted = (
        benchmark_state(one, decode, float(sequences), ENDLESS, equal_lengths=equal)
        for one in (undrafted(curve), replace(undrafted(curve), host=host))
    )
    assert hosted.ttft_s >= plain.ttft_s * (1.0 - 1e-9)
    assert hosted.rate_per_s <= plain.rate_per_s * (1.0 + 1e-9)
