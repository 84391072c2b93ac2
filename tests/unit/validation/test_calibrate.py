"""From tables to calibrations: few shapes are enough, too few are refused, and what was borrowed is named."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from rooflines.errors import CannotTellError
from rooflines.hardware.calibration import Calibration, OperatorConstants, Provenance
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.constants import Constants
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import operator_time
from rooflines.validation.calibrate import STANDS_FOR, calibrate, calibration_name, complete
from rooflines.validation.class_forms import NARROW, PADDED, SMOOTH, WAVES, form_of
from rooflines.validation.kernel_tables import read_kernel_table
from rooflines.validation.kernel_tables.linear import products
from rooflines.validation.kernel_tables.names import format_of
from rooflines.validation.transferable import transferable

TRUE = Constants(0.8, 0.7, 5e-6, 2.5)
SIZES = (1.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)
DEVICES = {"h100_sxm": "h100-sxm5-80gb", "h200_sxm": "h200-sxm-141gb", "a100_sxm": "a100-sxm4-80gb"}


def table(folder, sides, constants=TRUE, *, gpu="h100_sxm", slow=()):
    """A table of products that take exactly what the time form says."""
    profile = load_hardware(DEVICES[gpu])
    file = folder / f"{gpu}.csv"
    columns = ("gpu", "engine", "engine_version", "gemm_dtype", "m", "n", "k", "time_us", "weights_exceed_l2")
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        for side in sides:
            for m in SIZES:
                one = products(np.array([m]), np.array([side]), np.array([side]), format_of("bfloat16"))
                seconds = operator_time(one, Machine(profile, lambda _: constants, "")).seconds[0]
                seconds *= 2.0 if (side, m) in slow else 1.0
                cached = int(2 * side**2 > 50e6)
                writer.writerow([gpu, "vllm", "1.0", "bfloat16", m, side, side, seconds * 1e6, cached])
    return read_kernel_table(file)


def only(found):
    (one,) = found.calibrations
    (entry,) = one.operators
    return one, entry


@pytest.mark.parametrize("sides", [(6144, 8192, 16384), (5120, 7168, 8192, 12288, 16384, 20480)])
def test_the_constants_that_made_the_times_are_found(tmp_path, sides):
    one, entry = only(calibrate([table(tmp_path, sides)], "2026-01-01", ["here"]))
    assert one.name == "h100-sxm5-80gb.vllm-1.0"
    assert (one.device, one.stack, one.sources) == ("h100-sxm5-80gb", "vllm 1.0", ("here",))
    assert entry.provenance.rows == len(sides) * len(SIZES)
    assert entry.provenance.shapes == len(sides)
    assert entry.provenance.files == ("h100_sxm.csv",)
    if len(sides) == 3:
        assert entry.form == SMOOTH.name
        assert entry.constants.bandwidth_efficiency == pytest.approx(0.8, rel=1e-3)
        assert entry.constants.compute_efficiency == pytest.approx(0.7, rel=1e-3)
        assert entry.constants.overhead_s == pytest.approx(5e-6, rel=1e-2)
        everywhere = entry.residual("all")
        assert everywhere.median_abs_error < 1e-3
        assert not everywhere.in_sample
    else:
        assert entry.form == WAVES.name


def test_one_slow_row_steers_nothing(tmp_path):
    _, entry = only(calibrate([table(tmp_path, (6144, 8192, 16384), slow=[(8192, 64.0)])], "", []))
    assert entry.constants.bandwidth_efficiency == pytest.approx(0.8, rel=0.03)
    assert entry.residual("all").p90_abs_error > entry.residual("all").median_abs_error


def test_two_shapes_are_refused_with_what_to_add(tmp_path):
    with pytest.raises(CannotTellError, match=r"2 shape\(s\) do not separate.*add 3 shapes or more"):
        calibrate([table(tmp_path, (8192, 16384))], "", [])


def test_rows_read_from_a_cache_are_named_and_not_fitted(tmp_path):
    """Weights of 2048 x 2048 fit the cache of an H100, and its table says so."""
    found = calibrate([table(tmp_path, (2048, 6144, 8192, 16384))], "", [])
    (left,) = found.left_out
    assert left.rows == len(SIZES)
    assert "last-level cache" in left.reason
    _, entry = only(found)
    assert [(one.reason, one.rows) for one in entry.provenance.left_out] == [(left.reason, left.rows)]
    assert "2048x2048" not in entry.provenance.shape_names


def test_a_device_can_be_chosen(tmp_path):
    sides = (6144, 8192, 16384)
    tables = [table(tmp_path, sides), table(tmp_path, sides, gpu="h200_sxm")]
    found = calibrate(tables, "", [], "h200-sxm-141gb")
    assert [one.device for one in found.calibrations] == ["h200-sxm-141gb"]
    with pytest.raises(CannotTellError, match="no rows of a100-sxm4-80gb"):
        calibrate(tables, "", [], "a100-sxm4-80gb")


@pytest.mark.parametrize(
    ("storage", "device", "shapes", "form"),
    [
        ("bf16", "h100-sxm5-80gb", 12, WAVES),
        ("bf16", "h100-sxm5-80gb", 3, SMOOTH),
        ("bf16", "a100-sxm4-80gb", 12, PADDED),
        ("fp8", "h100-sxm5-80gb", 12, WAVES),
        ("nvfp4", "b200-sxm-180gb", 12, WAVES),
        ("int4-g128", "h100-sxm5-80gb", 12, NARROW),
        ("int8", "a100-sxm4-80gb", 3, NARROW),
    ],
)
def test_the_form_follows_the_kernels(storage, device, shapes, form):
    assert form_of("linear", storage, load_hardware(device), shapes) is form


def entry(operator="linear", storage="bf16", stack="vllm 1.0", **constants):
    return OperatorConstants(
        operator=operator,
        arithmetic="bf16",
        storage=storage,
        form=WAVES.name,
        constants=Constants(**{"bandwidth_efficiency": 0.8, **constants}),
        provenance=Provenance(basis="measured", stack=stack),
    )


def calibration(device, stack, *operators):
    return Calibration(
        name=calibration_name(device, stack),
        device=device,
        stack=stack,
        created="",
        sources=(),
        operators=operators,
    )


def test_the_newest_version_of_an_engine_borrows_what_others_measured():
    h100 = "h100-sxm5-80gb"
    done = {
        one.stack: one
        for one in complete(
            [
                calibration(h100, "vllm 0.9", entry(stack="vllm 0.9")),
                calibration(h100, "vllm 0.10", entry(stack="vllm 0.10")),
                calibration(h100, "sglang 1", entry(stack="sglang 1"), entry("moe", stack="sglang 1")),
                calibration(h100, "vidur", entry("small", stack="vidur")),
            ]
        )
    }
    borrowed = done["vllm 0.10"].find("moe", "bf16", "bf16")
    assert borrowed.provenance.stack == "sglang 1"
    assert done["vllm 0.10"].find("linear", "bf16", "bf16").provenance.stack == "vllm 0.10"
    assert done["vllm 0.9"].find("moe", "bf16", "bf16") is None
    assert all(one.find("small", "bf16", "bf16") is None for stack, one in done.items() if stack != "vidur")
    assert done["vllm 0.10"].stands_for == STANDS_FOR[h100]
    assert not any(one.stands_for for stack, one in done.items() if stack != "vllm 0.10")


def test_classes_are_known_devices_that_nobody_measured_twice():
    members = [name for names in STANDS_FOR.values() for name in names]
    assert len(members) == len(set(members))
    assert not set(members) & set(STANDS_FOR)
    for name in (*STANDS_FOR, *members):
        assert load_hardware(name).id == name


def test_medians_are_judged_on_devices_that_they_do_not_know(tmp_path):
    """Shares of 0.8 and 0.4 have the median 0.6; each device is predicted with the other's."""
    sides = (6144, 8192, 16384)
    memory_bound = Constants(0.8, 1.0, 5e-6, 2.5)
    tables = [
        table(tmp_path, sides, memory_bound),
        table(tmp_path, sides, Constants(0.4, 1.0, 5e-6, 2.5), gpu="h200_sxm"),
    ]
    found = transferable(calibrate(tables, "2026-01-01", ["here"]).calibrations, tables)
    linear = found.find("linear", "bf16", "bf16")
    assert linear.constants.bandwidth_efficiency == pytest.approx(0.6, rel=1e-2)
    assert linear.provenance.basis == "transferable"
    few = linear.residual("m <= 64")
    # One device is predicted twice as slow as it is, the other half: errors of +1 and -0.5.
    assert few.median_abs_error == pytest.approx(0.75, abs=0.1)
    assert not few.in_sample
    assert found.find("small", "bf16", "bf16").provenance.basis == "judged"


def test_a_median_takes_two_devices(tmp_path):
    one = table(tmp_path, (6144, 8192, 16384))
    with pytest.raises(CannotTellError, match="two devices"):
        transferable(calibrate([one], "", []).calibrations, [one])
