"""Intervals of passes and of their ratios: errors that both sides share cancel."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from rooflines.costs.routing import SHARED_LEAST, SHARED_MOST
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.uncertain import pass_estimate


@pytest.fixture(scope="module")
def served():
    machine = make_machine("h100-sxm")
    return make_deployment("llama-2-7b", machine), machine


def test_the_textbook_states_no_errors():
    machine = make_machine("h100-sxm", "textbook")
    time = make_deployment("llama-2-7b", machine).decode(1.0, 1024.0)
    estimate = pass_estimate(time, machine, "decode")
    assert estimate.value == time.seconds
    assert estimate.errors == {}


def test_a_pass_lies_between_reasonable_ends(served):
    """Single kernels are 5 to 7 % off; a pass averages over shapes, and is no worse than its worst class."""
    deployment, machine = served
    estimate = pass_estimate(deployment.decode(1.0, 1024.0), machine, "decode")
    assert 0.02 < estimate.log_sd < 0.15
    low, high = estimate.interval()
    assert low < estimate.value < high


def test_a_ratio_is_better_known_than_either_time(served):
    deployment, machine = served
    decode = pass_estimate(deployment.decode(1.0, 1024.0), machine, "decode")
    verify = pass_estimate(deployment.verify(1.0, 1024.0, 5.0), machine, "verify")
    ratio = verify / decode
    assert ratio.value == pytest.approx(verify.value / decode.value)
    assert 0.2 * decode.log_sd < ratio.log_sd < min(decode.log_sd, verify.log_sd)


def test_a_ratio_across_regions_is_less_known_than_within_one(served):
    deployment, machine = served
    decode = pass_estimate(deployment.decode(8.0, 1024.0), machine, "decode")
    within = pass_estimate(deployment.verify(8.0, 1024.0, 8.0), machine, "verify") / decode
    across = pass_estimate(deployment.verify(8.0, 1024.0, 32.0), machine, "verify") / decode
    assert within.log_sd < across.log_sd


def test_medians_of_other_devices_are_less_sure(served):
    deployment, machine = served
    medians = make_machine("h100-sxm", "none")
    own = pass_estimate(deployment.decode(1.0, 1024.0), machine, "decode")
    other = pass_estimate(make_deployment("llama-2-7b", medians).decode(1.0, 1024.0), medians, "decode")
    assert other.log_sd > own.log_sd


def test_batches_have_intervals_of_their_own(served):
    deployment, machine = served
    batches = np.array([1.0, 64.0, 100.0, 1000.0])
    together = pass_estimate(deployment.decode(batches, 512.0), machine, "decode")
    assert np.shape(together.log_sd) == (4,)
    for position, batch in enumerate(batches):
        alone = pass_estimate(deployment.decode(float(batch), 512.0), machine, "decode")
        assert together.log_sd[position] == pytest.approx(alone.log_sd)


def test_host_time_is_exact(served):
    machine = make_machine("h100-sxm", overhead="10 ms")
    slowed = pass_estimate(make_deployment("llama-2-7b", machine).decode(1.0, 1024.0), machine, "decode")
    deployment, plain = served
    own = pass_estimate(deployment.decode(1.0, 1024.0), plain, "decode")
    assert slowed.log_sd == pytest.approx(own.log_sd * own.value / slowed.value)


def test_passes_of_one_name_are_wrong_alike(served):
    deployment, machine = served
    one = pass_estimate(deployment.decode(1.0, 1024.0), machine, "decode")
    assert (one / one).log_sd == pytest.approx(0.0)


def test_the_example_of_the_documentation_runs(root, capsys):
    text = (root / "docs" / "calibration.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "calibration.md", "exec"), {})  # noqa: S102 - our own document
    low, high = map(float, re.findall(r"\d\.\d+", capsys.readouterr().out))
    assert 0.8 < low < 1.0 < high < 1.3


SHARED = "experts that positions share"


@pytest.fixture(scope="module")
def mixture():
    machine = make_machine("h100-sxm")
    return make_deployment("qwen3-30b-a3b", machine), machine


@pytest.mark.parametrize("batch", [1.0, 8.0, 64.0])
def test_the_measured_range_of_shared_experts_is_an_error_of_a_verify_pass(mixture, batch):
    """As large as pricing the pass at both ends of the range says, which is half of it."""
    deployment, machine = mixture
    estimate = pass_estimate(deployment.verify(batch, 1024.0, 5.0), machine, "verify")
    most_s, least_s = (
        replace(deployment, routing=end).verify(batch, 1024.0, 5.0).seconds
        for end in (SHARED_LEAST, SHARED_MOST)
    )
    assert estimate.errors[SHARED] == pytest.approx(np.log(most_s / least_s) / 2, rel=0.1, abs=1e-5)


def test_the_range_of_shared_experts_is_no_error_of_a_plain_step_or_a_dense_model(mixture, served):
    deployment, machine = mixture
    assert SHARED not in pass_estimate(deployment.decode(8.0, 1024.0), machine, "decode").errors
    dense, its_machine = served
    assert SHARED not in pass_estimate(dense.verify(8.0, 1024.0, 5.0), its_machine, "verify").errors


def test_passes_of_several_positions_share_that_error(mixture):
    deployment, machine = mixture
    verify, draft = (
        pass_estimate(deployment.verify(1.0, 1024.0, 5.0), machine, name) for name in ("verify", "draft")
    )
    assert verify.errors[SHARED] > 0.05
    assert (verify / draft).errors[SHARED] == pytest.approx(0.0, abs=1e-12)


def test_a_width_of_one_among_several_has_no_part_in_it(mixture):
    deployment, machine = mixture
    errors = pass_estimate(deployment.verify(1.0, 1024.0, np.array([1.0, 5.0])), machine, "verify").errors
    assert errors[SHARED][0] == 0.0
    assert errors[SHARED][1] > 0.05


def test_the_textbook_states_no_error_of_experts_either():
    machine = make_machine("h100-sxm", "textbook")
    time = make_deployment("qwen3-30b-a3b", machine).verify(1.0, 1024.0, 5.0)
    assert pass_estimate(time, machine, "verify").errors == {}
