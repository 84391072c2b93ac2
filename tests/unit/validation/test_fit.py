"""The fit finds constants that made the times, is not steered by odd rows, and refuses what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import CannotTellError, InputError
from rooflines.hardware.constants import Constants
from rooflines.validation.fit import KernelTimes, fit_kernels, held_out_errors, predict_s

TRUE = Constants(0.8, 0.6, 5e-6, 2.5)


def kernels(sides=(1024, 2048, 4096, 8192), constants=TRUE):
    m, side = (grid.ravel() for grid in np.meshgrid([1.0, 16.0, 64.0, 256.0, 1024.0, 4096.0], sides))
    compute, memory = 2 * m * side**2 / 1e15, (2 * side**2 + 4 * m * side) / 3e12
    bare = KernelTimes(compute, memory, np.ones_like(m), side.astype(np.int64))
    return KernelTimes(compute, memory, predict_s(bare, constants), bare.shape)


def test_it_finds_the_constants_that_made_the_times():
    found = fit_kernels(kernels())
    assert found.bandwidth_efficiency == pytest.approx(0.8, rel=1e-3)
    assert found.compute_efficiency == pytest.approx(0.6, rel=1e-3)
    assert found.overhead_s == pytest.approx(5e-6, rel=1e-2)


def test_an_odd_kernel_does_not_steer_it():
    times = kernels()
    odd = times.measured_s.copy()
    odd[7] *= 5
    found = fit_kernels(KernelTimes(times.compute_s, times.memory_s, odd, times.shape))
    assert found.compute_efficiency == pytest.approx(0.6, rel=0.05)
    assert found.bandwidth_efficiency == pytest.approx(0.8, rel=0.05)


def test_two_shapes_do_not_separate_bandwidth_from_floor():
    with pytest.raises(CannotTellError, match=r"2 weight shape.*measure 3 or more"):
        fit_kernels(kernels((2048, 4096)))


def test_shapes_are_predicted_without_having_been_fitted():
    assert np.max(np.abs(held_out_errors(kernels()))) < 1e-3
    times = kernels()
    slow = np.where(times.shape == 4096, 1.5, 1.0)
    errors = held_out_errors(
        KernelTimes(times.compute_s, times.memory_s, times.measured_s * slow, times.shape)
    )
    assert errors[times.shape == 4096] == pytest.approx(1 / 1.5 - 1, abs=0.01)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_impossible_times_are_refused(bad):
    with pytest.raises(InputError, match="finite and above zero"):
        KernelTimes(np.ones(1), np.ones(1), np.array([bad]), np.ones(1, dtype=np.int64))


def test_columns_have_one_length():
    with pytest.raises(InputError, match=r"lengths \[1, 2\]"):
        KernelTimes(np.ones(1), np.ones(2), np.ones(1), np.ones(1, dtype=np.int64))


def test_one_fold_holds_nothing_out():
    with pytest.raises(InputError, match="at least 2"):
        held_out_errors(kernels(), folds=1)
