"""A few facts of shipped profiles, restated with their sources, so that this needs no reference data."""

from __future__ import annotations

import re

import pytest

from rooflines.cli.hardware import hardware
from rooflines.errors import MissingPeakError
from rooflines.hardware import HardwareProfile, list_hardware, load_hardware
from rooflines.hardware.catalogue import read_profile
from rooflines.hardware.lint import RULES, lint_names, lint_profile

# NVIDIA H100 datasheet (989.4 TFLOP/s bf16 dense, 3.35 TB/s), A100 datasheet (312 TFLOP/s; 2039, 1935 and
# 1555 GB/s), H200 datasheet (989 TFLOP/s, 4.8 TB/s): https://resources.nvidia.com/en-us-gpu-resources.
# TPU v5e 197 TFLOP/s and 819 GB/s: https://docs.cloud.google.com/tpu/docs/v5e.
# A30 165 TFLOP/s and 933 GB/s: aiconfigurator-core 0.12.0, systems/a30.yaml. RTX A6000 154.8 TFLOP/s and 768
# GB/s: https://www.microway.com/knowledge-center-articles/in-depth-comparison-of-nvidia-ampere-gpu-accelerators/.
# Arc Pro B60 98.3 TFLOP/s and 456 GB/s: https://www.techpowerup.com/gpu-specs/arc-pro-b60.c4350 (20 Xe cores at
# 2.4 GHz, 2048 FLOP per clock).
# MI300X 1307.4 TFLOP/s and 5.3 TB/s: https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi300.html.
RIDGES = {
    "h100-sxm5-80gb": 989.4 / 3.35,
    "a100-sxm4-80gb": 312 / 2.039,
    "a100-pcie-80gb": 312 / 1.935,
    "a100-sxm4-40gb": 312 / 1.555,
    "h200-sxm-141gb": 989 / 4.8,
    "tpu-v5e": 197 / 0.819,
    "mi300x": 1307.4 / 5.3,
    "a30": 56 * 2048 * 1.44 / 933,
    "rtx-a6000": 84 * 1024 * 1.8 / 768,
    "arc-pro-b60": 20 * 2048 * 2.4 / 456,
}


@pytest.mark.parametrize(("device", "ridge"), RIDGES.items())
def test_ridge_points_are_those_of_the_datasheets(device, ridge):
    assert load_hardware(device).ridge_point("bf16") == pytest.approx(ridge, rel=2e-3)


def test_an_a800_is_an_a100_with_a_slower_link():
    """The maker's only change, says https://tweakers.net/nieuws/203182: 400 in place of 600 GB/s."""
    for form in ("sxm4", "pcie"):
        own, of_it = load_hardware(f"a800-{form}-80gb"), load_hardware(f"a100-{form}-80gb")
        assert own.compute_units.value == of_it.compute_units.value
        assert own.bandwidth_bytes_per_s == pytest.approx(of_it.bandwidth_bytes_per_s, rel=3e-3)
        for dtype in ("tf32", "bf16", "fp16", "int8"):
            assert own.peak_flop_per_s(dtype) == of_it.peak_flop_per_s(dtype)
        assert own.interconnect_bytes_per_s * 3 == of_it.interconnect_bytes_per_s * 2


def test_330_is_the_launch_time_bandwidth_of_an_h100_and_is_noted_not_used():
    h100 = load_hardware("h100-sxm5-80gb")
    stated = {round(one.value.si / 1e9) for one in h100.memory_bandwidth.alternatives}
    assert stated == {3000, 3072}
    assert h100.peak_flop_per_s("bf16") / 3000e9 == pytest.approx(329.8, abs=0.1)
    assert h100.ridge_point("bf16") == pytest.approx(295.4, abs=0.1)


def test_turing_has_no_bf16_and_nothing_stands_in():
    with pytest.raises(MissingPeakError, match="stated: fp32, fp16, int8"):
        load_hardware("t4").peak_flop_per_s("bf16")


def test_an_a10g_is_no_a10():
    assert load_hardware("a10g").peak_flop_per_s("bf16") == pytest.approx(70e12)
    assert load_hardware("a10").peak_flop_per_s("bf16") == pytest.approx(125e12)


def test_geforce_peaks_are_those_of_fp32_accumulation():
    card = load_hardware("rtx-4090")
    assert card.peak_flop_per_s("fp16_acc16") == pytest.approx(2 * card.peak_flop_per_s("fp16"), rel=1e-3)


def test_one_name_several_chips():
    sxm, pcie, nvl = (load_hardware(name) for name in ("h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb"))
    assert pcie.bandwidth_bytes_per_s < sxm.bandwidth_bytes_per_s < nvl.bandwidth_bytes_per_s
    assert pcie.peak_flop_per_s("bf16") < nvl.peak_flop_per_s("bf16") < sxm.peak_flop_per_s("bf16")


def test_int8_was_cut_on_blackwell_ultra():
    assert (
        load_hardware("b300-sxm").peak_flop_per_s("int8")
        < load_hardware("h100-sxm5-80gb").peak_flop_per_s("int8") / 10
    )


def test_only_what_is_not_sold_yet_is_announced():
    announced = {device for device in list_hardware() if load_hardware(device).status == "announced"}
    assert announced == {"rubin", "mi455x", "ascend-950dt"}


def test_a_direction_is_half_of_both_or_less():
    both = [
        one
        for one in map(load_hardware, list_hardware())
        if one.interconnect_per_direction and one.interconnect_total
    ]
    assert len(both) > 20
    for device in both:
        assert device.interconnect_bytes_per_s <= device.interconnect_total.value.si / 2 * 1.001


def test_what_is_remembered_is_assumed():
    for device in map(load_hardware, list_hardware()):
        for field, entry in device.entries():
            remembered = device.source_of(entry) == "from memory, unverified"
            assert remembered == (entry.basis == "assumed"), (device.id, field)


def test_the_guide_names_every_field_rule_and_command(root):
    guide = (root / "docs" / "hardware.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`\s]+)`", guide))
    assert set(HardwareProfile.model_fields) <= words
    assert {*RULES, "file-name", "one-owner"} <= words
    assert all(f"rooflines hardware {command}" in guide for command in hardware.commands)


def test_the_profiles_of_the_guide_are_read_and_the_sourced_one_passes(root, tmp_path):
    guide = (root / "docs" / "hardware.md").read_text(encoding="utf-8")
    short, sourced = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    file = tmp_path / "my-card.toml"
    file.write_text(short, encoding="utf-8")
    assert {one.rule for one in lint_profile(read_profile(file)) if one.verdict == "fails"} == {"sourced"}
    file.write_text(sourced, encoding="utf-8")
    profile = read_profile(file)
    findings = [*lint_profile(profile), *(finding for _, finding in lint_names([(file.stem, profile)]))]
    assert [one for one in findings if one.verdict == "fails"] == []
    assert {one.rule for one in findings} >= {
        "power-of-two",
        "dense-rate",
        "ridge",
        "sourced",
        "sources-used",
    }
