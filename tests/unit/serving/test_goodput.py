from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.serving.goodput import Objective, engines_needed, goodput_per_s, highest
from rooflines.serving.steady import open_state, saturation_per_s

D = 100.0


def test_goodput_is_the_last_rate_that_keeps_the_promise(linear_curve):
    curve, objective = linear_curve(), Objective(tpot_s=11e-3)
    rate = goodput_per_s(curve, D, objective)
    assert 0 < rate < saturation_per_s(curve, D)
    assert objective.kept_by(open_state(curve, D, 0.999 * rate))
    assert not objective.kept_by(open_state(curve, D, 1.01 * rate))


def test_both_promises_count(linear_curve):
    curve = linear_curve()
    tpot, ttft = Objective(tpot_s=11e-3), Objective(ttft_s=30e-3)
    both = Objective(tpot_s=11e-3, ttft_s=30e-3)
    assert goodput_per_s(curve, D, both) == min(goodput_per_s(curve, D, one) for one in (tpot, ttft))


def test_a_stricter_share_carries_less(linear_curve):
    rates = [goodput_per_s(linear_curve(), D, Objective(11e-3, None, share)) for share in (0.5, 0.9, 0.99)]
    assert rates[0] > rates[1] > rates[2]


def test_without_a_promise_saturation_is_the_limit(linear_curve):
    curve = linear_curve()
    assert goodput_per_s(curve, D, Objective()) == saturation_per_s(curve, D)


@pytest.mark.parametrize("objective", [Objective(tpot_s=7e-3), Objective(ttft_s=5e-3)])
def test_what_a_lone_request_breaks_cannot_be_kept(linear_curve, objective):
    assert goodput_per_s(linear_curve(), D, objective) == 0.0


def test_bisection_finds_the_edge():
    assert highest(lambda rate: rate < 3.0, 10.0) == pytest.approx(3.0, rel=1e-5)
    assert highest(lambda _: True, 10.0) == pytest.approx(10.0, rel=1e-5)
    assert highest(lambda _: False, 10.0) == 0.0


@pytest.mark.parametrize(
    ("rate", "each", "engines"),
    [(10.0, 3.0, 4), (9.0, 3.0, 4), (9.1, 3.0, 4), (0.1, 3.0, 1), (1.0, 0.0, None)],
)
def test_engines_share_the_load_within_their_limit(rate, each, engines):
    assert engines_needed(rate, each) == engines


@pytest.mark.parametrize("changes", [{"share": 0.0}, {"share": 1.0}, {"tpot_s": 0.0}, {"ttft_s": -1.0}])
def test_impossible_promises_are_refused(changes):
    with pytest.raises(InputError):
        Objective(**changes)
