from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.marginal import drafted_tokens, marginal_value


def test_marginal_value_by_hand():
    value = marginal_value(np.array([1.0, 1.8, 2.2]), np.array([1.0, 1.2, 1.5]))
    assert value.tokens == pytest.approx([0.8, 0.4])
    assert value.cost == pytest.approx([0.2, 0.3])
    assert value.speedup == pytest.approx([1.8 / 1.2, 2.2 / 1.5])
    assert value.pays.tolist() == [True, False]


def test_marginal_value_over_batches():
    kappa = 1.0 + np.array([[0.05], [0.6]]) * np.arange(5)
    value = marginal_value(np.asarray(Acceptance.constant(0.7).tokens_per_cycle(np.arange(5))), kappa)
    assert value.speedup.shape == (2, 4)
    assert value.pays[0].sum() > value.pays[1].sum()


@pytest.mark.parametrize(
    ("cost", "says"),
    [(np.array([1.0, 0.0]), "above 0"), (np.array(1.0), "an array"), (np.array([-1.0]), "above")],
)
def test_a_cost_that_is_none_is_refused(cost, says):
    with pytest.raises(InputError, match=says):
        marginal_value(np.array([1.0, 1.5]), cost)


def test_what_becomes_of_a_draft_by_hand():
    """c = 0.5, 0.8: 0.5 + 0.4 accepted; 0.8 x 0.5 lost to a rejected first token; the rest is wrong."""
    found = drafted_tokens(Acceptance.conditional_rates([0.5, 0.8]), 2)
    assert found.accepted == pytest.approx(0.9)
    assert found.lost_to_prefix == pytest.approx(0.4)
    assert found.wrong == pytest.approx(0.7)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_three_fates_add_up_to_the_draft(rates):
    found = drafted_tokens(Acceptance.conditional_rates(rates), len(rates))
    assert found.accepted + found.lost_to_prefix + found.wrong == pytest.approx(len(rates))
    assert min(found.accepted, found.lost_to_prefix, found.wrong) >= -1e-12
    assert found.lost_to_prefix <= sum(rates[1:]) + 1e-12
