"""Operator and pass times against times worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator, Pass
from rooflines.errors import MissingPeakError, ProfileError
from rooflines.hardware.constants import Constants
from rooflines.hardware.profile import HardwareProfile
from rooflines.timing.machine import Machine, textbook_machine
from rooflines.timing.roofline import attainable_flop_per_s, operator_time, pass_time


def device(**more):
    """1 TB/s and 100 TFLOP/s, so that times are powers of ten; the ridge is at 100 FLOP/byte."""
    facts = {"id": "plain", "name": "Plain", "memory_bandwidth": "1 TB/s", "peaks": {"bf16": "100 TFLOP/s"}}
    return HardwareProfile.read({**facts, **more}, "test")


def linear(flops, moved, count=1):
    return Operator("product", "linear", Cost(matmul_flops=flops, weight_bytes=moved, kernels=1), count)


def machine(constants, **more):
    return Machine(device(**more), lambda _: constants, "test")


@pytest.mark.parametrize(
    ("flops", "moved", "seconds", "bound"),
    [(1e9, 1e9, 1e-3, "memory"), (1e12, 1e9, 1e-2, "compute"), (1e11, 1.1e9, 1.1e-3, "memory")],
)
def test_the_textbook_takes_the_longer_of_two(flops, moved, seconds, bound):
    time = operator_time(linear(flops, moved), textbook_machine(device()))
    assert time.seconds == pytest.approx(seconds)
    assert time.bound == bound


def test_constants_slow_each_part_and_add_a_floor():
    constants = Constants(0.5, 0.8, 4e-6, 1.0)
    time = operator_time(linear(8e10, 1e9, count=3), machine(constants))
    assert time.memory_s == pytest.approx(3 * 2e-3)
    assert time.compute_s == pytest.approx(3 * 1e-3)
    assert time.overhead_s == pytest.approx(3 * 4e-6)
    assert time.seconds == pytest.approx(3 * (3e-3 + 4e-6))


def test_prefill_attention_saturates_with_its_own_length():
    constants = Constants(saturation_tokens=1000.0)
    cost = Cost(matmul_flops=1e12, kv_bytes=1.0)
    short, long = (
        operator_time(Operator("attention", "prefill_attention", cost, query_tokens=n), machine(constants))
        for n in (1000.0, 1e8)
    )
    assert short.seconds == pytest.approx(2e-2)
    assert long.seconds == pytest.approx(1e-2, rel=1e-4)


def test_a_collective_moves_its_bytes_over_the_link():
    cost = Cost(network_bytes=1e8, activation_bytes=1e12, kernels=1)
    operator = Operator("all-reduce", "collective", cost, count=2, ranks=4)
    link = machine(Constants(0.5, 1.0, 5e-6, 1.0), interconnect_per_direction="100 GB/s")
    time = operator_time(operator, link)
    assert time.seconds == pytest.approx(2 * (2e-3 + 5e-6))
    assert time.bound == "network"


def test_a_collective_needs_a_link():
    operator = Operator("all-reduce", "collective", Cost(network_bytes=1.0), ranks=2)
    with pytest.raises(ProfileError, match=r"plain states no interconnect.*tensor parallelism 1"):
        operator_time(operator, textbook_machine(device()))


def test_a_missing_peak_is_never_made_up():
    operator = Operator("product", "linear", Cost(matmul_flops=1.0, weight_bytes=1.0), arithmetic="fp8")
    with pytest.raises(MissingPeakError, match="fp8"):
        operator_time(operator, textbook_machine(device()))


def test_an_operator_without_products_needs_no_peak():
    operator = Operator("norm", "small", Cost(activation_bytes=1e6), arithmetic="fp8")
    assert operator_time(operator, textbook_machine(device())).seconds == pytest.approx(1e-6)


def test_a_pass_adds_its_operators_and_the_host():
    forward = Pass("decode", (linear(1.0, 1e9), linear(1e12, 1.0)))
    time = pass_time(forward, textbook_machine(device(), overhead_s=5e-3))
    assert time.seconds == pytest.approx(1e-3 + 1e-2 + 5e-3)
    assert time.bound == "compute"
    assert pass_time(forward, textbook_machine(device(), overhead_s=1.0)).bound == "overhead"


def test_bounds_of_arrays_are_named_one_by_one():
    time = operator_time(linear(np.array([1.0, 1e12]), 1e9), textbook_machine(device()))
    assert list(time.bound) == ["memory", "compute"]


def test_the_roof_bends_at_the_ridge():
    roof = attainable_flop_per_s(np.array([1.0, 100.0, 1000.0]), 1e14, 1e12)
    assert roof == pytest.approx([1e12, 1e14, 1e14])
    assert device().ridge_point("bf16") == pytest.approx(100.0)
