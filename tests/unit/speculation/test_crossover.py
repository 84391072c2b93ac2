from __future__ import annotations

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.crossover import Crossover, crossover, grown_most
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Draft
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.roofline import OperatorTime, PassTime

LARGEST = 160


@pytest.fixture(scope="module")
def pair():
    """Short contexts and a card with a low ridge: weights bind early, arithmetic soon."""
    machine = make_machine("a100-sxm-80gb", "textbook")
    target = make_deployment("llama-2-7b", machine)
    return target, IndependentDrafter(make_deployment("tinyllama-1.1b-v1.0", machine), target.model)


def by_hand(pair, alpha, lengths, context):
    """One point after another: the last batch with a gain, and the one after it."""
    wins = [
        batch
        for batch in range(1, LARGEST + 1)
        if max(
            float(cycle(cycle_times(*pair, batch, context, n), Acceptance.constant(alpha)).speedup)
            for n in lengths
        )
        > 1.0
    ]
    last = wins[-1] if wins else 0
    return None if last == LARGEST else last + 1


@pytest.mark.parametrize(
    ("alpha", "lengths", "context"),
    [(0.6, (2, 4), 64), (0.8, (1, 8), 0), (0.4, (3,), 16), (0.7, (0, 5), 128), (0.05, (4,), 64)],
)
def test_the_crossover_equals_a_search_by_hand(pair, alpha, lengths, context):
    expected = by_hand(pair, alpha, [n for n in lengths if n], float(context))
    found = crossover(*pair, Acceptance.constant(alpha), lengths, float(context), largest_batch=LARGEST)
    assert found.batch == expected
    assert found.searched_to == LARGEST


def test_hand_search_covers_all_three_outcomes(pair):
    """The parameters above would prove little if speculation always or never paid."""
    ends = [
        by_hand(pair, alpha, lengths, float(context))
        for alpha, lengths, context in ((0.6, (2, 4), 64), (0.05, (4,), 64), (0.8, (1, 8), 0))
    ]
    assert 1 in ends
    assert any(end is not None and end > 1 for end in ends)


def test_arithmetic_ends_it_in_a_linear_layer(pair):
    found = crossover(*pair, Acceptance.constant(0.6), (4,), 16.0, largest_batch=400)
    assert found.batch is not None
    assert found.bound == "compute"
    assert found.operator in {
        "gate and up projection",
        "down projection",
        "qkv projection",
        "output projection",
    }


def test_the_end_of_a_search_that_still_pays_is_unknown(pair):
    found = crossover(*pair, Acceptance.constant(0.8), (4,), 4096.0, largest_batch=16)
    assert found == Crossover(None, 16)


def test_a_search_over_nothing_finds_nothing(pair):
    assert crossover(*pair, Acceptance.constant(0.8), (0,), 1024.0, largest_batch=8) == Crossover(None, 8)
    assert crossover(*pair, Acceptance.constant(0.8), (4,), 1024.0, largest_batch=0) == Crossover(None, 0)


class LosesInTheMiddle:
    """A drafter that is dear for batches 2 to 5 alone, as mixtures of experts make verifying."""

    name = "made up"

    def draft(self, batch, context, draft_length):  # noqa: ARG002 - the protocol's signature
        dear = (np.asarray(batch) >= 2) & (np.asarray(batch) <= 5)
        return Draft(np.where(dear, 1.0, 0.0), 0.0, np.asarray(draft_length) + 1.0)


def test_a_loss_that_recovers_is_no_crossover(pair):
    target, _ = pair
    found = crossover(target, LosesInTheMiddle(), Acceptance.constant(0.8), (4,), 2048.0, largest_batch=12)
    assert found.batch is None
    only = crossover(target, LosesInTheMiddle(), Acceptance.constant(0.8), (4,), 2048.0, largest_batch=5)
    assert only.batch == 2


def test_overhead_moves_the_crossover_down(pair):
    ends = [
        crossover(*pair, Acceptance.constant(0.6), (2, 4), 64.0, largest_batch=300, overhead_s=overhead).batch
        for overhead in (0.0, 2e-3, 4e-3)
    ]
    assert None not in ends
    assert ends == sorted(ends, reverse=True)
    assert ends[0] > ends[-1]


def test_what_grew_most_is_named_with_its_bound(pair):
    target, _ = pair
    name, bound = grown_most(target.decode(200.0, 16.0), target.verify(200.0, 16.0, 8.0))
    grown = {
        time.operator.name: float(time.seconds)
        - sum(
            float(one.seconds)
            for one in target.decode(200.0, 16.0).operators
            if one.operator.name == time.operator.name
        )
        for time in target.verify(200.0, 16.0, 8.0).operators
    }
    assert name == max(grown, key=grown.get)
    assert bound == "compute"


def test_operators_of_equal_name_count_together():
    """Two kinds of layer each grow by 2 and together more than the one operator that grows by 3."""

    def times(*parts):
        operators = [
            OperatorTime(Operator(name, "linear", Cost()), seconds, seconds, 0.0, 0.0, 0.0)
            for name, seconds in parts
        ]
        return PassTime(tuple(operators), 0.0, sum(seconds for _, seconds in parts))

    plain = times(("twin", 1.0), ("twin", 2.0), ("single", 1.0))
    verify = times(("twin", 3.0), ("twin", 4.0), ("single", 4.0))
    assert grown_most(plain, verify) == ("twin", "memory")
