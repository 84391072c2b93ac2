from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import InputError
from rooflines.measurement.stability import LARGEST_IQR_SHARE, iqr_share, judge

times = st.lists(st.floats(min_value=1e-6, max_value=10.0), min_size=1, max_size=30)


def test_the_spread_is_that_of_the_middle_half():
    assert iqr_share([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert iqr_share([3.0]) == 0.0


@given(times=times, factor=st.floats(min_value=1e-3, max_value=1e3))
def test_the_spread_does_not_depend_on_the_unit(times, factor):
    assert iqr_share([one * factor for one in times]) == pytest.approx(iqr_share(times), rel=1e-9, abs=1e-12)


@given(times=times)
def test_one_disturbed_time_in_many_does_not_condemn_a_run(times):
    steady = [1.0] * (8 * len(times))
    assert judge([*steady, *times[: len(times) // 2]], None).stable


def test_a_machine_that_drifts_is_called_unstable_with_what_to_do():
    drifting = list(np.linspace(43e-3, 57e-3, 20))
    verdict = judge(drifting, 0.0)
    assert not verdict.stable
    assert verdict.iqr_share == pytest.approx(0.14, abs=0.01)
    assert "measure again when it is idle" in verdict.advice


def test_waiting_for_a_core_leaves_cpu_time_usable_and_says_so():
    verdict = judge([1.0] * 5, 0.4)
    assert verdict.stable
    assert "40% of the time went into waiting for a core: use CPU time" in verdict.advice
    assert "held still" in judge([1.0] * 5, 0.01).advice
    assert "held still" in judge([1.0] * 5, None).advice


def test_the_verdict_turns_at_the_limit():
    for half, stable in ((0.49, True), (0.51, False)):
        spread = half * LARGEST_IQR_SHARE
        assert judge([1 - spread, 1 - spread, 1.0, 1 + spread, 1 + spread], None).stable is stable


def test_no_times_cannot_be_judged():
    with pytest.raises(InputError, match="at least one is needed"):
        judge([], None)
