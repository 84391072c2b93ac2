"""Which calibration answers for which stack, what counts as in sample, and how wide intervals are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator
from rooflines.errors import UnknownNameError
from rooflines.hardware.calibration import Calibration, OperatorConstants, Provenance, Residual
from rooflines.hardware.calibration_files import write_calibration
from rooflines.hardware.constants import Constants
from rooflines.timing.roofline import operator_time
from rooflines.timing.uncertain import MEASURED, OTHER_ENGINE_LOG_SD
from rooflines.validation.choose import choose, in_sample, interval_s
from rooflines.validation.kernel_tables import Group, KernelRows

DEVICE = "h100-sxm5-80gb"


def rows(
    *, engine="vllm", version="2.0", kernel="", operator="linear", shape="4096x4096", count=2, device=DEVICE
):
    one = Operator("product", "linear", Cost(weight_bytes=3.35e9, kernels=1.0), rows=np.ones(count))
    group = Group(device, engine, version, kernel, operator, "bf16")
    return KernelRows(
        group,
        (one,),
        np.full(count, 1e-3),
        np.full(count, shape),
        np.full(count, "m <= 64"),
        np.ones(count),
        np.arange(count) + 2,
    )


def entry(stack, share=0.5, operator="linear", storage="bf16"):
    residual = Residual(
        region="m <= 64",
        rows=9,
        median_abs_error=0.1,
        p90_abs_error=0.2,
        bias=0.0,
        log_q05=-0.2,
        log_q95=0.1,
        in_sample=False,
    )
    return OperatorConstants(
        operator=operator,
        arithmetic="bf16",
        storage=storage,
        form="test",
        constants=Constants(bandwidth_efficiency=share),
        provenance=Provenance(basis="measured", stack=stack, rows=9, shapes=0, shape_names=("4096x4096",)),
        residuals=(residual,),
    )


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Calibrations of one device with several stacks, which hide the shipped ones of the same names."""
    folder = tmp_path / "calibrations"
    folder.mkdir()

    def put(stack, *entries, device="a100-pcie-40gb", name=None):
        name = name or f"{device}.{stack.replace(' ', '-')}"
        made = Calibration(
            name=name,
            device=device,
            stack=stack,
            created="2026-01-01",
            sources=("test",),
            operators=entries or (entry(stack),),
        )
        write_calibration(made, folder / f"{name}.toml")

    for stack in ("vllm 2.0", "vllm 10.0", "sglang 1.0", "sglang 1.0 flashinfer"):
        put(stack)
    monkeypatch.setenv("ROOFLINES_HARDWARE", str(tmp_path))
    return put


def chosen(**group):
    return choose(rows(device="a100-pcie-40gb", **group))


@pytest.mark.parametrize(
    ("group", "stack", "own"),
    [
        ({"engine": "vllm", "version": "2.0"}, "vllm 2.0", True),
        ({"engine": "vllm", "version": "3.0"}, "vllm 10.0", False),
        ({"engine": "sglang", "version": "9.9"}, "sglang 1.0", False),
        ({"engine": "sglang", "version": "1.0", "kernel": "flashinfer"}, "sglang 1.0 flashinfer", True),
        ({"engine": "trtllm", "version": "1.0"}, "vllm 10.0", False),
        ({"engine": "sglang", "version": ""}, "sglang 1.0", True),
    ],
)
@pytest.mark.usefixtures("shelf")
def test_the_nearest_stack_answers(group, stack, own):
    found = chosen(**group)
    assert found.calibration.stack == stack
    assert found.own_stack is own
    assert ("another stack" in found.basis) is not own


def test_a_stack_without_the_class_is_passed_over(shelf):
    shelf("vllm 11.0", entry("vllm 11.0", operator="moe"))
    assert chosen(engine="vllm", version="11.0").calibration.stack == "vllm 10.0"


def test_constants_that_a_stack_borrowed_are_not_its_own(shelf):
    shelf("trtllm 1.0", entry("vllm 2.0"))
    assert chosen(engine="trtllm", version="1.0").calibration.stack == "vllm 10.0"


@pytest.mark.usefixtures("shelf")
def test_words_and_names_are_taken_as_they_are():
    one = rows(device="a100-pcie-40gb")
    assert choose(one, "textbook").calibration is None
    assert choose(one, "none").calibration.device == "*"
    assert choose(one, "a100-pcie-40gb.sglang-1.0").calibration.stack == "sglang 1.0"
    with pytest.raises(UnknownNameError, match="calibration"):
        choose(one, "a100-pcie-40gb.sgl-1.0")


@pytest.mark.usefixtures("shelf")
def test_only_shapes_that_were_fitted_to_are_in_sample():
    assert in_sample(rows(device="a100-pcie-40gb"), chosen()).all()
    other = rows(device="a100-pcie-40gb", shape="8192x8192")
    assert not in_sample(other, choose(other)).any()
    elsewhere = rows(device="a100-pcie-40gb", engine="trtllm")
    assert not in_sample(elsewhere, choose(elsewhere)).any()
    layer = rows(device="a100-pcie-40gb", operator="layer", shape="Llama tp1")
    assert in_sample(layer, choose(layer)).all()


@pytest.mark.usefixtures("shelf")
def test_an_interval_is_what_the_residuals_of_the_region_say():
    one = rows(device="a100-pcie-40gb")
    found = chosen()
    low, high = interval_s(one, found)
    seconds = operator_time(one.operators[0], found.machine).seconds
    assert np.log(low / seconds) == pytest.approx(-0.2)
    assert np.log(high / seconds) == pytest.approx(0.1)


@pytest.mark.usefixtures("shelf")
def test_another_stack_widens_an_interval_by_what_stacks_differed():
    one = rows(device="a100-pcie-40gb", engine="trtllm")
    found = choose(one)
    low, high = interval_s(one, found)
    assert np.log(high / low) / 2 == pytest.approx(
        np.hypot(0.15, 1.6449 * OTHER_ENGINE_LOG_SD["linear"]), rel=1e-3
    )


@pytest.mark.usefixtures("shelf")
def test_errors_of_several_kernels_average_out_in_part():
    one = rows(device="a100-pcie-40gb")
    four = replace(one, operators=tuple(replace(one.operators[0], name=name) for name in "abcd"))
    low, high = interval_s(four, chosen())
    width = np.log(high / low) / 2
    assert width == pytest.approx(0.15 * np.sqrt(MEASURED.size + (1.0 - MEASURED.size) / 4))


def test_nothing_stated_is_no_interval():
    low, high = interval_s(rows(), choose(rows(), "textbook"))
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_a_device_without_a_measurement_gets_the_errors_of_the_medians():
    one = rows(device="rtx-4090")
    low, high = interval_s(one, choose(one))
    assert np.isfinite(low).all()
    assert (high > 1.2 * low).all()
