from __future__ import annotations

import math

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.queueing import exceeded_wait_s, mean_prompt_wait_s, weighted_quantile


def test_deterministic_service_waits_half_as_long_as_exponential():
    # M/D/1: rho S / (2 (1 - rho)); M/M/1: rho S / (1 - rho).
    load, service = 0.5, 0.2
    fixed = mean_prompt_wait_s(load, load / service, np.array([service]), np.ones(1))
    assert fixed == pytest.approx(load * service / (2 * (1 - load)))
    rng = np.random.default_rng(1)
    spread = rng.exponential(service, 200_000)
    random = mean_prompt_wait_s(load, load / service, spread, np.full(spread.size, 1 / spread.size))
    assert random == pytest.approx(load * service / (1 - load), rel=0.03)


def test_an_overloaded_server_makes_wait_for_ever():
    assert math.isinf(mean_prompt_wait_s(1.0, 5.0, np.array([0.2]), np.ones(1)))


def test_an_exponential_tail_by_hand():
    # Half wait, 1 s on average: 5 % wait longer than ln(0.5 / 0.05) s.
    assert exceeded_wait_s(0.5, 1.0, 0.95) == pytest.approx(math.log(10.0))
    assert exceeded_wait_s(0.04, 1.0, 0.95) == 0.0
    assert exceeded_wait_s(0.5, 0.0, 0.95) == 0.0
    assert math.isinf(exceeded_wait_s(0.5, 1.0, 1.0))


@pytest.mark.parametrize(
    ("share", "value"), [(0.1, 1.0), (0.5, 1.0), (0.51, 2.0), (0.9, 2.0), (0.95, 3.0), (1.0, 3.0)]
)
def test_a_quantile_is_the_first_value_that_reaches_its_share(share, value):
    assert weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 4.0]), share) == value


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(InputError, match="quantile"):
        weighted_quantile(np.array([1.0]), np.array([1.0]), share)
