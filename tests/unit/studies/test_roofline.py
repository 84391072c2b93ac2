"""Groups of operators under the roofs."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.models.catalogue import list_presets
from rooflines.studies.intensity import time_phase
from rooflines.studies.roofline import EVERYTHING, GROUPS, OTHER, roofline_points
from rooflines.studies.serve import make_deployment, make_machine

CONTEXT = 4096
LEAST_SHARE = 0.05


@pytest.fixture(scope="module")
def machine():
    return make_machine("h100-sxm5-80gb")


def passes(served):
    try:
        served.decode(1.0, CONTEXT)
    except InputError:  # an encoder-decoder
        served = make_deployment(served.model.name, served.machine, encoder_positions=512)
    for batch in (1.0, 64.0):
        yield time_phase(served, "decode", batch, CONTEXT, None)
        yield time_phase(served, "verify", batch, CONTEXT, 5.0)
        yield time_phase(served, "prefill", batch, CONTEXT, None)


@pytest.mark.parametrize("name", list_presets())
def test_no_product_that_takes_much_time_is_among_the_others(machine, name):
    """Of any known model, at small and large batches."""
    for timed in passes(make_deployment(name, machine)):
        assert {
            time.operator.name: float(time.seconds / timed.seconds)
            for time in timed.operators
            if time.operator.name not in GROUPS
            and (np.any(np.asarray(time.operator.cost.matmul_flops) > 0) or time.operator.kind == "recurrent")
            and time.seconds / timed.seconds > LEAST_SHARE
        } == {}


def by_group(machine, name, phase="decode", batch=64, new_tokens=1):
    points = roofline_points(make_deployment(name, machine), phase, (batch,), CONTEXT, new_tokens)
    return {point.group: point for point in points}


def test_routed_experts_are_a_group_and_hold_most_of_the_time_of_a_mixture(machine):
    groups = by_group(machine, "qwen3-30b-a3b", "verify", new_tokens=5)
    assert OTHER not in groups
    assert groups["routed experts"].seconds > groups[EVERYTHING].seconds / 2
    assert groups["routed experts"].intensity_flop_per_byte < groups["attention"].intensity_flop_per_byte


def test_latent_attention_is_attention_and_shared_experts_are_feed_forward(machine):
    served = make_deployment("deepseek-v3", machine)
    seconds = {time.operator.name: time.seconds for time in served.decode(64.0, CONTEXT).operators}
    groups = by_group(machine, "deepseek-v3")
    assert groups["attention"].seconds == pytest.approx(seconds["latent attention"])
    names = ("gate and up projection", "down projection")
    shared = sum(seconds[f"shared expert {name}"] for name in names)
    assert groups["feed-forward"].seconds == pytest.approx(shared + sum(seconds[name] for name in names))


def test_the_scan_of_recurrent_layers_counts_with_their_products(machine):
    served = make_deployment("qwen3-next-80b-a3b", machine)
    times = served.decode(64.0, CONTEXT).operators
    scan = next(time for time in times if time.operator.name == "recurrence")
    point = by_group(machine, "qwen3-next-80b-a3b")["recurrent layers"]
    assert scan.operator.cost.matmul_flops == 0
    assert point.seconds > scan.seconds
    assert point.matmul_flops > 0


def test_groups_of_a_pass_do_what_the_pass_does(machine):
    """No matrix product is left out, and none counts twice."""
    groups = by_group(machine, "deepseek-v3.2", "prefill", batch=1, new_tokens=512)
    whole = groups.pop(EVERYTHING)
    assert sum(point.matmul_flops for point in groups.values()) == pytest.approx(whole.matmul_flops)
    assert sum(point.seconds for point in groups.values()) < whole.seconds
