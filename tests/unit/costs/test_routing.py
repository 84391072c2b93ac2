"""How many distinct experts a pass hits where positions of a sequence choose partly alike."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.costs.passes import decode_pass, prefill_pass, verify_pass
from rooflines.costs.routing import (
    DEFAULT_ROUTING,
    SHARED_EXPERTS,
    SHARED_LEAST,
    SHARED_MOST,
    UNIFORM,
    IndependentRouting,
    distinct_log_sd,
    parse_routing,
    routing_words,
)
from rooflines.models.catalogue import list_presets
from rooflines.models.feed_forward import MixtureOfExperts
from rooflines.models.readers import read_model


def moe_of(found):
    return next(one for one in found.operators if one.kind == "moe")


def test_the_default_is_the_measured_middle_as_people_write_it():
    assert parse_routing(DEFAULT_ROUTING) == SHARED_EXPERTS
    assert SHARED_LEAST.correlation < SHARED_EXPERTS.correlation < SHARED_MOST.correlation


def test_how_much_alike_positions_choose_is_what_was_measured():
    """Distinct experts of positions of one sequence, against the sources that the module names."""
    assert SHARED_EXPERTS(128, 8, 1.0, 2.0) == pytest.approx(8 * (2 - 0.38), rel=0.005)
    assert SHARED_MOST(128, 8, 1.0, 4.0) == pytest.approx(0.69 * float(UNIFORM(128, 8, 1.0, 4.0)), rel=0.005)
    assert SHARED_LEAST(64, 4, 1.0, 2.0) == pytest.approx(4 * (2 - 0.257), rel=0.005)


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "deepseek-v3"])
def test_a_plain_step_knows_nothing_of_it(name):
    model, batches = read_model(name), np.array([1.0, 8.0, 64.0])
    shared, strangers = (
        decode_pass(model, batches, 2048.0, routing=routing) for routing in (SHARED_EXPERTS, UNIFORM)
    )
    assert shared.cost.weight_bytes.tolist() == strangers.cost.weight_bytes.tolist()
    assert not np.any(moe_of(shared).distinct_log_sd)


# Takes one expert of 128, so that positions hit the last of them late.
SPARSEST = "llama-4-maverick-17b-128e"


def test_a_prompt_of_512_positions_hits_all_experts_either_way():
    """Of every model in the catalogue: the fewer experts of many, the more positions it takes."""
    names = [
        name
        for name in list_presets()
        if any(
            isinstance(block, MixtureOfExperts)
            for layer, _ in read_model(name).layer_groups
            for block in layer.feed_forwards
        )
    ]
    assert len(names) > 5
    for name in names:
        shared, strangers = (
            prefill_pass(read_model(name), 1.0, 512.0, routing=routing)
            for routing in (SHARED_EXPERTS, UNIFORM)
        )
        tolerance = 0.06 if name == SPARSEST else 0.002
        assert shared.cost.weight_bytes == pytest.approx(strangers.cost.weight_bytes, rel=tolerance), name


def test_uncertain_is_half_of_the_measured_range_in_logarithms():
    found = distinct_log_sd(SHARED_EXPERTS, 128, 8, 1.0, np.array([1.0, 5.0, 10_000.0]))
    least, most = (float(end(128, 8, 1.0, 5.0)) for end in (SHARED_MOST, SHARED_LEAST))
    assert found.tolist() == pytest.approx([0.0, np.log(most / least) / 2, 0.0], abs=1e-12)
    assert 0.1 < found[1] < 0.2


@pytest.mark.parametrize(
    "given", [UNIFORM, IndependentRouting(correlation=0.3), IndependentRouting(1.2), lambda *_: 8.0]
)
def test_what_was_given_is_taken_as_known(given):
    assert distinct_log_sd(given, 128, 8, 1.0, 5.0) == 0.0


def test_experts_say_how_sure_their_number_is():
    model = read_model("qwen3-30b-a3b")
    assumed = moe_of(verify_pass(model, 8.0, 2048.0, 5.0, routing=SHARED_EXPERTS))
    assert assumed.distinct_log_sd == distinct_log_sd(SHARED_EXPERTS, 128, 8, 8.0, 5.0)
    # Devices that share experts hit those of all of their sequences.
    assert assumed.distinct_log_sd < distinct_log_sd(SHARED_EXPERTS, 128, 8, 1.0, 5.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (DEFAULT_ROUTING, "alike by 0.35 (measured: 0.21 to 0.45; set routing for another)"),
        ("correlated:0.3", "alike by 0.3, as given"),
        ("uniform", "positions choose experts on their own"),
        ("powerlaw:1.2", "on their own, by popularity 1/rank^1.2"),
    ],
)
def test_an_answer_says_what_was_assumed(given, words):
    assert routing_words(parse_routing(given)).endswith(words)


def test_a_routing_of_ones_own_is_called_so():
    assert "of your own" in routing_words(lambda *_: 8.0)
