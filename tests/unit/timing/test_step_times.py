"""Measured and additive step times: exact at what was measured, refused where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.hardware.calibration import Calibration, StepTime
from rooflines.hardware.catalogue import load_hardware
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import chain
from rooflines.timing.machine import calibrated_machine
from rooflines.timing.step_times import AdditiveSteps, StepTable

# torch fp32 (MKL) on two cores: T(n) is not even monotonic.
CELLS = [(1, 1, 128, 1.0), (1, 2, 128, 1.69), (1, 4, 128, 1.38), (1, 8, 128, 1.57)]


def table(*cells):
    return StepTable.of(
        StepTime(batch=batch, new_positions=width, context=context, time_s=seconds)
        for batch, width, context, seconds in cells
    )


def test_measured_cells_come_back_whatever_their_shape():
    steps = table(*CELLS)
    for _, width, context, seconds in CELLS:
        assert steps.verify(1, context, width).seconds == pytest.approx(seconds)
    assert steps.decode(1, 128).seconds == 1.0
    assert steps.decode(1, 128).bound == "measured"


def test_widths_between_are_interpolated_and_arrays_broadcast():
    widths = np.array([1.0, 3.0, 6.0])[None, :]
    found = table(*CELLS).verify(np.ones((2, 1)), 128.0, widths).seconds
    assert found.shape == (2, 3)
    assert found[1] == pytest.approx([1.0, (1.69 + 1.38) / 2, (1.38 + 1.57) / 2])


@pytest.mark.parametrize(
    ("batch", "width", "message"),
    [
        (1, 9, "verify width at batch 1 = 9 was not measured"),
        (1, 0.5, "verify width at batch 1 = 0.5 was not"),
        (2, 1, "batch = 2 was not measured"),
        (0, 1, "batch = 0 was not"),
    ],
)
def test_what_was_not_measured_is_refused(batch, width, message):
    with pytest.raises(InputError, match=message):
        table(*CELLS).verify(batch, 128, width)


def test_equal_cells_are_averaged_and_none_are_refused():
    assert table((1, 1, 0, 1.0), (1, 1, 0, 3.0)).decode(1, 0).seconds == 2.0
    with pytest.raises(InputError, match="has no cells"):
        table()


def test_a_context_adds_what_cells_that_differ_in_it_alone_say():
    steps = table((1, 1, 100, 1.0), (1, 1, 300, 1.4), (2, 1, 100, 2.0), (2, 1, 300, 2.8), (1, 4, 100, 1.5))
    assert steps.per_cached_position_s == pytest.approx(0.002)
    assert steps.verify(1, 300, 4).seconds == pytest.approx(1.9)
    assert steps.decode(2, 200).seconds == pytest.approx(2.4)


def test_one_context_answers_for_all_and_says_so():
    steps = table(*CELLS)
    assert steps.per_cached_position_s is None
    assert steps.decode(1, 5000).seconds == 1.0


def test_batches_between_are_interpolated_at_their_own_widths():
    steps = table((1, 1, 0, 1.0), (1, 8, 0, 3.0), (4, 1, 0, 2.0), (4, 4, 0, 5.0))
    assert steps.verify(2, 0, 1).seconds == pytest.approx(1.0 + 1 / 3)
    with pytest.raises(InputError, match="verify width at batch 4 = 8 was not"):
        steps.verify(2, 0, 8)
    assert steps.verify(1, 0, 8).seconds == 3.0


def test_a_context_never_saves_time():
    noisy = table((1, 1, 100, 1.0), (1, 1, 300, 0.9))
    assert noisy.per_cached_position_s == 0.0


def test_additive_steps_are_the_sum_of_their_parts():
    steps = AdditiveSteps(fixed_s=0.04, per_position_s=0.002, per_kv_byte_s=1e-9, kv_bytes_per_position=1000)
    assert steps.decode(2, 100).seconds == pytest.approx(0.04 + 0.004 + 0.0002)
    assert steps.verify(2, 100, 5).seconds == pytest.approx(0.04 + 0.02 + 0.0002)
    assert steps.decode(2, 100).bound == "additive"


@pytest.mark.parametrize("wrong", [{"fixed_s": 0.0}, {"per_position_s": -1e-3}, {"per_kv_byte_s": np.nan}])
def test_impossible_coefficients_are_refused(wrong):
    good = {"fixed_s": 0.04, "per_position_s": 0.002, "per_kv_byte_s": 0.0, "kv_bytes_per_position": 1.0}
    with pytest.raises(InputError, match="coefficients of step times"):
        AdditiveSteps(**{**good, **wrong})


class Copy:
    """A copy of the target that drafts at a third of its step."""

    name = "copy"

    def draft(self, _batch, _context, draft_length):
        return chain(np.asarray(draft_length) / 3.0, draft_length)


def test_a_cycle_is_priced_on_a_table_by_hand():
    """T(4)/T(1) = 1.38 and c = 1/3 at draft length 3: eta = tau / (1 + 1.38)."""
    times = cycle_times(table(*CELLS), Copy(), 1.0, 128.0, 3.0)
    found = cycle(times, Acceptance.constant(0.9))
    assert found.speedup == pytest.approx((1 + 0.9 + 0.81 + 0.729) / (1 + 1.38))


def test_a_table_of_steps_stands_for_no_constants():
    """Silently taking defaults in their place would answer another question."""
    table_only = Calibration(
        name="mine",
        device="a10",
        stack="llama.cpp",
        created="2026-01-01",
        sources=("bench.json",),
        steps=(StepTime(batch=1, new_positions=1, context=0, time_s=0.01),),
    )
    with pytest.raises(InputError, match="holds step times of one model and no constants"):
        calibrated_machine(load_hardware("a10"), table_only)
