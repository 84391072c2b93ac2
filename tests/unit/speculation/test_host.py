"""What the host adds to passes and cycles, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.step_times import StepSeconds
from rooflines.timing.uncertain import pass_estimate

MACHINE = make_machine("h100-sxm5-80gb")
TARGET = make_deployment("llama-3.1-8b", MACHINE)
LAYERS, SLOW = 32, CycleHost(layer_s=1e-3, pass_s=2e-3)
BATCHES, LENGTHS = np.array([1.0, 50.0])[:, None], np.array([0.0, 3.0])[None, :]


def timed(host, drafter="eagle3", **more):
    return cycle_times(TARGET, make_drafter(drafter, TARGET), BATCHES, 1024.0, LENGTHS, host=host, **more)


def test_without_a_host_nothing_is_added():
    bare = cycle_times(TARGET, make_drafter("eagle3", TARGET), BATCHES, 1024.0, LENGTHS)
    alone = timed(DEVICE_ALONE)
    assert np.all(alone.overhead_s == 0)
    for one, other in ((bare.target, alone.target), (bare.verify, alone.verify), (bare.draft, alone.draft)):
        np.testing.assert_array_equal(one.seconds, other.seconds)


def test_plain_steps_and_cycles_have_times_of_their_own():
    alone = timed(DEVICE_ALONE)
    given = timed(CycleHost(plain_s=1e-3, cycle_s=2e-3, sequence_s=1e-5), overhead_s=1e-4)
    np.testing.assert_allclose(given.target.seconds, alone.target.seconds + 1e-3)
    np.testing.assert_array_equal(given.verify.seconds, alone.verify.seconds)
    np.testing.assert_allclose(
        np.broadcast_to(given.overhead_s, (2, 2)), [[1e-3, 2.11e-3], [1e-3, 2.6e-3]], rtol=1e-12
    )
    outcome = cycle(given, Acceptance.constant(0.8))
    np.testing.assert_allclose(outcome.speedup[:, 0], 1.0)


def test_the_same_host_time_everywhere_makes_a_speedup_that_of_the_tokens():
    alone = cycle(timed(DEVICE_ALONE), Acceptance.constant(0.8))
    slow = cycle(timed(CycleHost(plain_s=10.0, cycle_s=10.0)), Acceptance.constant(0.8))
    np.testing.assert_allclose(slow.speedup[:, 1], alone.tokens_per_cycle[0, 1], rtol=0.01)


def test_a_pass_takes_no_less_than_its_launches_and_no_more_where_the_device_is_slower():
    alone, launched = timed(DEVICE_ALONE), timed(SLOW)
    least_s = 2e-3 + LAYERS * 1e-3
    assert np.all(alone.target.seconds < least_s)
    np.testing.assert_allclose(launched.target.seconds, least_s)
    np.testing.assert_array_equal(launched.target.bound, np.full((2, 1), "overhead"))
    quick = timed(CycleHost(layer_s=1e-7, pass_s=1e-7))
    np.testing.assert_array_equal(quick.target.seconds, alone.target.seconds)
    np.testing.assert_array_equal(quick.target.bound, alone.target.bound)


def test_each_pass_of_a_draft_is_launched_and_heads_inside_another_pass_are_not():
    length = 3
    eagle = timed(SLOW).draft.seconds
    np.testing.assert_allclose(np.broadcast_to(eagle, (2, 2))[:, 1], length * (2e-3 + 1e-3))
    block = timed(SLOW, "dflash").draft.seconds
    np.testing.assert_allclose(np.broadcast_to(block, (2, 2))[:, 1], 2e-3 + 5 * 1e-3)
    early = timed(SLOW, "layerskip:layers=8").draft.seconds
    np.testing.assert_allclose(np.broadcast_to(early, (2, 2))[:, 1], length * (2e-3 + 8 * 1e-3))
    heads = timed(SLOW, "medusa").draft.seconds
    np.testing.assert_array_equal(heads, timed(DEVICE_ALONE, "medusa").draft.seconds)
    assert np.all(np.broadcast_to(eagle, (2, 2))[:, 0] == 0)


def test_where_the_host_decides_no_kernel_is_uncertain():
    bare, launched = TARGET.decode(1.0, 1024.0), SLOW.launched(TARGET.decode(1.0, 1024.0))
    assert pass_estimate(bare, MACHINE, "decode").log_sd > 0.01
    assert pass_estimate(launched, MACHINE, "decode").log_sd == 0.0


def test_layers_without_attention_are_launched_too():
    target = make_deployment("qwen3.5-9b", MACHINE)
    layers = len(target.model.layers)
    launched = SLOW.launched(target.decode(1.0, 1024.0))
    assert launched.seconds == pytest.approx(2e-3 + layers * 1e-3)


def test_measured_passes_are_left_alone():
    measured = StepSeconds(1e-3, "measured")
    host = replace(SLOW, plain_s=1e-3)
    assert host.plain(measured) is measured
    assert host.launched(measured) is measured
