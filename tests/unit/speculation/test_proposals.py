from __future__ import annotations

import numpy as np
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.proposals import proposed_and_accepted, sent_per_sequence, verify_sent
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.step_times import AdditiveSteps, StepSeconds

TAKEN = Acceptance.constant(0.8)


@pytest.fixture(scope="module")
def target():
    return make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "none"))


def test_one_sequence_sends_its_whole_proposal_or_nothing():
    (high, often), (low, rest) = sent_per_sequence(Acceptance((0.4, 1.0)), 1.0, 5.0)
    assert (float(high), float(often)) == (pytest.approx(5.0), pytest.approx(0.4))
    assert (float(low), float(rest)) == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.6))


@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_nothing_is_random_where_all_or_none_propose(hit):
    for sent, weight in sent_per_sequence(Acceptance((hit, 1.0)), np.array([1.0, 64.0]), 5.0):
        assert np.asarray(sent) * (np.asarray(weight) > 0) == pytest.approx(
            5.0 * hit * (np.asarray(weight) > 0)
        )


def test_two_values_have_the_moments_of_a_sum():
    proposals, batch, length = Acceptance((0.6, 0.7)), 7, 3
    alone = proposals.length_probabilities(length)
    summed = np.ones(1)
    for _ in range(batch):
        summed = np.convolve(summed, alone)
    mean_tokens = np.arange(summed.size) / batch
    parts = sent_per_sequence(proposals, float(batch), float(length))
    for power in (0, 1, 2, 3):
        found = sum(float(weight) * float(sent) ** power for sent, weight in parts)
        assert found == pytest.approx(float(summed @ mean_tokens**power), rel=1e-12)


def test_what_is_drafted_and_accepted_multiplies():
    both = proposed_and_accepted(
        Acceptance((0.5, 0.9)), Acceptance.conditional_rates([0.8, 0.6]), np.array([0.0, 3.0])
    )
    assert both.conditional_profile(3) == pytest.approx([0.4, 0.54, 0.54])


def test_a_cycle_without_a_proposal_is_a_plain_step(target):
    drafter = make_drafter("ngram:host=0us,hit=0", target)
    outcome = cycle(cycle_times(target, drafter, np.array([1.0, 64.0]), 1024.0, 4.0), TAKEN)
    assert outcome.tokens_per_cycle == pytest.approx(1.0)
    assert outcome.speedup == pytest.approx(np.ones(2))


def test_one_sequence_mixes_the_two_passes_and_what_they_yield(target):
    drafter = make_drafter("ngram:host=10us,hit=0.3", target)
    outcome = cycle(cycle_times(target, drafter, 1.0, 1024.0, 4.0), TAKEN)
    plain, full = (float(target.verify(1.0, 1024.0, width).seconds) for width in (1.0, 5.0))
    assert float(outcome.verify_s) == pytest.approx(0.3 * full + 0.7 * plain)
    assert float(outcome.draft_s) == pytest.approx(10e-6)  # looked up whether found or not
    assert float(outcome.tokens_per_cycle) == pytest.approx(
        1.0 + 0.3 * (float(TAKEN.tokens_per_cycle(4.0)) - 1.0)
    )
    # What it asks for room and columns is what it sends at most.
    assert float(outcome.verify_width) == 5.0


def test_a_verify_length_cuts_what_is_sent(target):
    drafter = make_drafter("ngram:hit=0.5,ends=0.2", target)
    cut = cycle(cycle_times(target, drafter, 8.0, 1024.0, 6.0, verify_length=2), TAKEN)
    short = cycle(cycle_times(target, drafter, 8.0, 1024.0, 2.0), TAKEN)
    assert float(cut.tokens_per_cycle) == pytest.approx(float(short.tokens_per_cycle))
    assert float(cut.verify_s) == pytest.approx(float(short.verify_s))


def test_a_mixed_pass_keeps_its_operators(target):
    mixed = verify_sent(target, Acceptance((0.4, 1.0)), 96.0, 1024.0, 5.0)
    assert isinstance(mixed, PassTime)
    assert float(mixed.seconds) == pytest.approx(
        sum(float(one.seconds) for one in mixed.operators) + mixed.host_s
    )
    assert mixed.bound in ("memory", "compute")


def test_measured_steps_can_be_mixed():
    steps = AdditiveSteps(fixed_s=0.04, per_position_s=0.002, per_kv_byte_s=0.0, kv_bytes_per_position=0.0)
    mixed = verify_sent(steps, Acceptance((0.4, 1.0)), 1.0, 512.0, 5.0)
    assert isinstance(mixed, StepSeconds)
    assert float(mixed.seconds) == pytest.approx(0.04 + 0.002 * (1.0 + 0.4 * 5.0))
