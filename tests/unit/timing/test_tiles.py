"""Padding and tiles of products, counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator
from rooflines.hardware.constants import Constants
from rooflines.hardware.profile import HardwareProfile
from rooflines.timing.forms import TILES, padded_rows, tiled_work
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import operator_time


@pytest.mark.parametrize(
    ("rows", "padded"),
    [(1, 16), (16, 16), (17, 32), (33, 64), (65, 128), (128, 128), (129, 256), (300, 384), (4096, 4096)],
)
def test_rows_are_padded_to_powers_of_two_and_then_to_tiles(rows, padded):
    assert padded_rows(float(rows), 128.0) == padded


def test_a_full_wave_of_full_tiles_wastes_nothing():
    """16 x 8 tiles of 128 x 128 are one for each of 128 units; no other tile of the menu beats no waste."""
    assert tiled_work(2048.0, 1024.0, 64.0, 0.0, 128.0) == pytest.approx(1.0)


def test_a_tile_more_than_units_starts_a_second_wave():
    """3 units and 4 tiles of 64 x 64 take 2 waves: 6 tiles' time; the larger tiles waste as much or more."""
    assert tiled_work(64.0, 256.0, 64.0, 0.0, 3.0) == pytest.approx(1.5)


def test_one_row_computes_a_whole_tile():
    assert tiled_work(1.0, 64.0, 64.0, 0.0, None) == pytest.approx(64.0)
    assert tiled_work(1.0, 64.0, 16.0, 0.0, None) == pytest.approx(16.0)


def test_without_units_only_edges_are_lost():
    assert tiled_work(64.0, 64.0 * 5, 64.0, 0.0, None) == pytest.approx(1.0)
    assert tiled_work(65.0, 64.0, 64.0, 0.0, None) == pytest.approx(2 * 64 * 64 / (65 * 64))


def test_small_tiles_attain_less_where_operands_count():
    """64 x 64: I = 32, so half an intensity of 32 doubles the work; the largest tile has I = 85.3."""
    assert tiled_work(64.0, 64.0, 64.0, 32.0, None) == pytest.approx(2.0)
    large = tiled_work(2.0**14, 2.0**14, 64.0, 32.0, None)
    assert large == pytest.approx(1 + 32 / (128 * 256 / 384))


def test_it_broadcasts_and_never_does_less_than_the_product():
    rows, outputs = np.geomspace(1, 1e5, 40)[:, None], np.geomspace(64, 3e5, 30)
    work = tiled_work(rows, outputs, 64.0, 0.0, 132.0)
    assert work.shape == (40, 30)
    assert np.all(work >= 1.0 - 1e-12)
    assert work[-1, -1] < 1.05


def test_the_menu_holds_only_what_matrix_instructions_can_do():
    assert all(high >= 16 and wide >= 64 and math.log2(high).is_integer() for high, wide in TILES)


def machine(constants, **more):
    facts = {"id": "plain", "name": "P", "memory_bandwidth": "1 TB/s", "peaks": {"bf16": "100 TFLOP/s"}}
    return Machine(HardwareProfile.read({**facts, **more}, "test"), lambda _: constants, "by hand")


def product(rows=1.0, outputs=64.0):
    return Operator("product", "linear", Cost(matmul_flops=1e11, kernels=1.0), rows=rows, outputs=outputs)


def test_the_time_of_a_product_grows_with_its_tiles():
    bare = machine(Constants())
    padded = machine(Constants(padded_to_rows=128.0))
    tiled = machine(Constants(smallest_tile_rows=64.0), compute_units=2)
    assert operator_time(product(), bare).seconds == pytest.approx(1e-3)
    assert operator_time(product(), padded).seconds == pytest.approx(16e-3)
    # One tile on two units: the wave is half empty.
    assert operator_time(product(), tiled).seconds == pytest.approx(128e-3)


def test_what_has_no_rows_or_outputs_is_priced_as_it_is():
    tiled = machine(Constants(smallest_tile_rows=64.0))
    assert operator_time(product(outputs=0.0), tiled).seconds == pytest.approx(1e-3)
    assert operator_time(product(rows=0.0), tiled).seconds == pytest.approx(1e-3)
    experts = Operator("experts", "moe", Cost(matmul_flops=1e11, kernels=1.0), rows=1.0, outputs=64.0)
    assert operator_time(experts, tiled).seconds == pytest.approx(1e-3)
