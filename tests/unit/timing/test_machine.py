"""Machines take constants where they were measured, and medians elsewhere, and say which."""

from __future__ import annotations

import pytest

from rooflines.costs.cost import Operator
from rooflines.hardware.calibration import CLASSES, Calibration, OperatorConstants, Provenance
from rooflines.hardware.calibration_files import transferable_calibration
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.constants import TEXTBOOK, Constants
from rooflines.models.readers import read_model
from rooflines.studies.serve import make_machine
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import (
    calibrated_machine,
    default_machine,
    textbook_machine,
    transferable_entry,
)
from rooflines.units import format_quantity

H100 = load_hardware("h100-sxm5-80gb")
MINE = Constants(0.9, 0.7, 3e-6, 2.5)


def calibration(device="h100-sxm5-80gb", basis="measured", operator="linear"):
    entry = OperatorConstants(
        operator=operator,
        arithmetic="bf16" if operator == "linear" else "*",
        storage="bf16" if operator == "linear" else "*",
        form="smooth maximum and floor",
        constants=MINE,
        provenance=Provenance(basis=basis),
    )
    return Calibration(
        name="mine",
        device=device,
        stack="engine 1.0",
        created="2026-01-01",
        sources=(),
        host_overhead_s=2e-4,
        operators=(entry,),
    )


def linear(storage="bf16", arithmetic="bf16"):
    return Operator("product", "linear", cost=None, arithmetic=arithmetic, storage=storage)


def test_measured_classes_have_their_constants_and_others_the_medians():
    machine = calibrated_machine(H100, calibration())
    assert machine.constants(linear()) == MINE
    attention = Operator("attention", "decode_attention", cost=None)
    assert machine.constants(attention) == default_machine(H100).constants(attention) != MINE
    assert "calibrated with engine 1.0" in machine.basis
    assert (
        "transferable defaults for decode attention, prefill attention, mixtures of experts" in machine.basis
    )


def test_only_what_a_model_uses_is_said_to_lack_constants():
    """llama-3.1-8b has neither experts nor recurrent layers, and runs on one device."""
    machine = calibrated_machine(H100, calibration())
    basis = Deployment(read_model("llama-3.1-8b"), machine).basis
    assert basis.endswith(
        "; transferable defaults for decode attention, prefill attention, embedding and sampling"
    )
    assert basis.startswith(machine.rests)
    assert machine.basis_for(()) == machine.rests
    experts = Deployment(read_model("qwen3-30b-a3b"), machine).basis
    assert "mixtures of experts" in experts
    assert "recurrent" not in experts


def test_host_overhead_is_that_of_the_calibration_unless_given():
    assert calibrated_machine(H100, calibration()).overhead_s == 2e-4
    assert calibrated_machine(H100, calibration(), 1e-3).overhead_s == 1e-3


def test_a_device_of_the_class_is_not_called_measured():
    pcie = load_hardware("h100-pcie-80gb")
    basis = calibrated_machine(pcie, calibration()).basis
    assert "a device of the same class" in basis
    assert "h100-pcie-80gb itself is not measured" in basis


def test_judged_constants_are_called_so():
    assert "h100-sxm5-80gb is not measured" in calibrated_machine(H100, calibration(basis="judged")).basis


def test_links_do_not_carry_over_to_a_device_without_one():
    collective = Operator("all-reduce", "collective", cost=None, arithmetic="*", storage="bf16")
    own = calibration(operator="collective")
    assert calibrated_machine(H100, own).constants(collective) == MINE
    l4 = load_hardware("l4")
    assert l4.interconnect_per_direction is None
    assert calibrated_machine(l4, own).constants(collective) == default_machine(l4).constants(collective)


@pytest.mark.parametrize("operator", CLASSES)
def test_the_shipped_medians_have_every_class(operator):
    constants = transferable_entry(operator, "bf16", "bf16").constants
    assert 0 < constants.bandwidth_efficiency <= 1
    assert 0 < constants.overhead_s < 1e-4


def test_formats_without_medians_get_those_of_16_bits():
    """Weight-only kernels were measured on one device with one engine's plugin: no median."""
    bf16 = transferable_entry("linear", "bf16", "bf16")
    assert transferable_entry("linear", "bf16", "int4-g128") is bf16
    assert transferable_entry("linear", "int8", "int8") is bf16
    assert transferable_entry("linear", "fp8", "fp8-channel").storage == "fp8"


def test_medians_say_that_they_are_judged_by_devices_left_out():
    medians = transferable_calibration()
    measured = [one for one in medians.operators if one.provenance.basis == "transferable"]
    assert measured
    assert not any(residual.in_sample for one in measured for residual in one.residuals)


def test_words_choose_the_machine():
    assert make_machine("h100-sxm", "textbook").constants(linear()) == TEXTBOOK
    assert make_machine("h100-sxm", "none").calibration is transferable_calibration()
    assert make_machine("h100-sxm").calibration.name == "h100-sxm5-80gb.vllm-0.24.0"
    assert make_machine("h100-sxm", "h100-sxm5-80gb.sglang-0.5.14").calibration.stack == "sglang 0.5.14"
    assert make_machine("b300-sxm").calibration.device == "b200-sxm-180gb"
    assert "published figures" in make_machine("mi300x").basis
    assert make_machine("tpu-v5e").basis == make_machine("tpu-v5e", "none").basis


def test_overhead_of_zero_leaves_the_calibrations_own(tmp_path):
    from rooflines.hardware.calibration_files import write_calibration

    file = tmp_path / "mine.toml"
    write_calibration(calibration(), file)
    assert make_machine("h100-sxm", str(file)).overhead_s == pytest.approx(2e-4)
    given = make_machine("h100-sxm", str(file), "1 ms").overhead_s
    assert format_quantity(given, "s") == "1 ms"


def test_errors_are_the_devices_own_or_those_of_devices_left_out():
    own = make_machine("h100-sxm")
    assert own.errors_of(linear()) is own.calibration.find("linear", "bf16", "bf16")
    medians = transferable_entry("linear", "bf16", "bf16")
    assert make_machine("h100-pcie-80gb").errors_of(linear()) is medians
    assert make_machine("mi300x").errors_of(linear()) is medians
    assert make_machine("h100-sxm", "none").errors_of(linear()) is medians
    assert make_machine("h100-sxm", "textbook").errors_of(linear()) is None


def test_the_textbook_knows_no_calibration():
    assert textbook_machine(H100).calibration is None


def test_nothing_is_taken_off_what_was_measured_on_the_machine_itself():
    entry = H100.memory_bandwidth.model_copy(update={"basis": "measured"})
    own = H100.model_copy(update={"memory_bandwidth": entry})
    assert default_machine(own).constants(linear()) == Constants(sharpness=2.5)
    core = own.model_copy(update={"kind": "cpu"})
    assert default_machine(core).constants(linear()) == Constants(sharpness=1.0)
    assert "not calibrated" in default_machine(core).basis
    assert calibrated_machine(own, calibration()).constants(linear()) == MINE
