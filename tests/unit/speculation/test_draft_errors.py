"""Errors of a draft come from the passes that it is made of, each priced once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.estimates import total
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Repeated, chain
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.uncertain import draft_estimate
from rooflines.studies.plan_intervals import interval_columns
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.step_times import StepSeconds
from rooflines.timing.uncertain import pass_estimate

MACHINE = make_machine("h100-sxm5-80gb", "auto", "100 us")
TARGET = make_deployment("llama-3.1-8b", MACHINE)
OF_PASSES = (
    "independent:llama-3.2-1b",
    "medusa",
    "eagle",
    "eagle3",
    "dflash",
    "dspark",
    "mtp",
    "ngram",
    "layerskip:layers=8",
    "quantized:int4-g128",
    "sparse-kv:window=256",
)
BATCHES, LENGTHS = np.array([1.0, 8.0, 200.0])[:, None], np.array([0.0, 1.0, 5.0])[None, :]


@pytest.mark.parametrize("text", OF_PASSES)
def test_a_draft_is_the_sum_of_its_passes_and_none_is_run_where_nothing_is_drafted(text):
    draft = make_drafter(text, TARGET).draft(BATCHES, 2048.0, LENGTHS)
    assert draft.passes
    estimate = draft_estimate(draft, MACHINE)
    np.testing.assert_allclose(np.broadcast_to(estimate.value, (3, 3)), draft.seconds, rtol=1e-12)
    assert np.all(np.broadcast_to(draft.seconds, (3, 3))[:, 0] == 0)
    assert np.all(np.broadcast_to(estimate.log_sd, (3, 3))[:, 1:] > 0.01)


def test_time_that_is_measured_or_of_the_host_is_exact():
    host = make_drafter("ngram:host=20us", TARGET).draft(4.0, 2048.0, 3.0)
    assert not host.passes
    measured = chain((Repeated(3.0, StepSeconds(1e-3, "measured")),), 3.0)
    assert measured.seconds == pytest.approx(3e-3)
    assert draft_estimate(measured, MACHINE).log_sd == 0.0


def test_a_half_that_is_exact_halves_the_error():
    step = TARGET.decode(1.0, 2048.0)
    whole = chain((Repeated(2.0, step),), 2.0)
    exact = StepSeconds(step.seconds, "measured")
    half = chain((Repeated(1.0, step), Repeated(1.0, exact)), 2.0)
    assert draft_estimate(half, MACHINE).log_sd == pytest.approx(draft_estimate(whole, MACHINE).log_sd / 2)


def test_a_draft_shares_with_its_target_what_a_class_shares_and_none_of_its_matrices():
    medians = make_machine("h100-sxm5-80gb", "none")
    step = make_deployment("llama-3.1-8b", medians).decode(1.0, 2048.0)
    draft = draft_estimate(chain((Repeated(1.0, step),), 1.0), medians)
    plain = pass_estimate(step, medians, "decode")
    assert draft.log_sd == pytest.approx(plain.log_sd)
    shared = set(draft.errors) & set(plain.errors)
    assert shared
    assert not any("projection" in cause for cause in shared)
    assert 0.0 < (draft / plain).log_sd < np.sqrt(2.0) * plain.log_sd
    assert total((draft, plain)).log_sd > plain.log_sd / np.sqrt(2.0)


@pytest.mark.parametrize("text", OF_PASSES)
def test_intervals_price_nothing_again(text):
    asked = []

    def counted(operator):
        asked.append(operator.name)
        return MACHINE.constants(operator)

    machine = replace(MACHINE, constants=counted)
    target = replace(TARGET, machine=machine)
    times = cycle_times(target, make_drafter(text, target), BATCHES, 2048.0, LENGTHS)
    priced = len(asked)
    assert priced > 0
    columns = interval_columns(machine, times, cycle(times, Acceptance.constant(0.8)))
    assert np.all(columns["speedup_low"][:, 1:] < columns["speedup_high"][:, 1:])
    assert len(asked) == priced
