"""Calibrations are read strictly, written canonically, and found for a device, its class, or not at all."""

from __future__ import annotations

import math
import re
from typing import get_args

import pytest

from rooflines.costs.cost import OperatorKind
from rooflines.errors import FileFormatError, UnknownNameError
from rooflines.hardware.calibration import (
    CLASSES,
    Calibration,
    LeftOutRows,
    OperatorConstants,
    Provenance,
    Residual,
    StepTime,
    width_family,
)
from rooflines.hardware.calibration_files import (
    calibration_of,
    calibration_text,
    calibrations_of,
    list_calibrations,
    load_calibration,
    read_calibration,
    write_calibration,
)
from rooflines.hardware.catalogue import data_folder, load_hardware
from rooflines.hardware.constants import Constants
from rooflines.hardware.profile import HardwareProfile


def entry(operator="linear", arithmetic="bf16", storage="bf16", **constants):
    return OperatorConstants(
        operator=operator,
        arithmetic=arithmetic,
        storage=storage,
        form="smooth maximum and floor",
        constants=Constants(**{"bandwidth_efficiency": 0.8, "compute_efficiency": 0.7, **constants}),
        provenance=Provenance(
            basis="measured",
            stack="vllm 0.14.0",
            files=("gemm.csv",),
            rows=12,
            shapes=3,
            left_out=(LeftOutRows(reason='weights fit "L2"', rows=4),),
        ),
        residuals=(
            Residual(
                region="m <= 64",
                rows=12,
                median_abs_error=0.03,
                p90_abs_error=0.08,
                bias=-0.01,
                log_q05=-0.07,
                log_q95=0.06,
                in_sample=False,
            ),
        ),
    )


def calibration(*operators, name="h100-sxm5-80gb.test", device="h100-sxm5-80gb", **more):
    return Calibration(
        name=name,
        device=device,
        stack=more.pop("stack", "vllm 0.14.0"),
        created="2026-01-01",
        sources=("https://example.org/rows",),
        operators=operators or (entry(overhead_s=4e-6, sharpness=2.5),),
        **more,
    )


def test_what_is_written_is_read_back(tmp_path):
    given = calibration(
        entry(overhead_s=4e-6, sharpness=2.5),
        entry("collective", "*", "*", sharpness=math.inf, rank_overhead_s=1.25e-6),
        host_overhead_s=0.0003,
        stands_for=("h100-pcie-80gb",),
        steps=(StepTime(batch=1, new_positions=4, context=128, time_s=0.0123),),
    )
    file = tmp_path / "mine.toml"
    write_calibration(given, file)
    found = load_calibration(str(file))
    assert found == read_calibration(file)
    assert found.steps[0].time_s == pytest.approx(0.0123)
    assert found.operators[1].constants.sharpness == math.inf
    # A quantity in text may differ from the number in its last bit; everything else is equal.
    assert calibration_text(found) == calibration_text(given)
    write_calibration(read_calibration(file), tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_bytes() == file.read_bytes()


def test_times_are_written_with_their_unit_and_textbook_constants_not_at_all():
    text = calibration_text(calibration(host_overhead_s=0.0003))
    assert 'overhead = "4 us"' in text
    assert 'host_overhead = "300 us"' in text
    assert "_s = " not in text
    assert "saturation_tokens" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('overhead = "4 us"', "overhead = 4e-6"), "has no unit"),
        (('overhead = "4 us"', 'overhead = "4 MB"'), "s is needed"),
        (("compute_efficiency = 0.7", "compute_eficiency = 0.7"), "did you mean 'compute_efficiency'"),
        (("compute_efficiency = 0.7", "compute_efficiency = 0"), "must be above zero"),
        (("compute_efficiency = 0.7", "compute_efficiency = true"), "is not a number"),
        (("compute_efficiency = 0.7", "compute_efficiency = -0.7"), "must not be negative"),
        (('operator = "linear"', 'operator = "gemm"'), "operator"),
        (('basis = "measured"', 'basis = "guessed"'), "basis"),
        (("schema_version = 1", "schema_version = 2"), "schema_version"),
        (("[operators.constants]", "[operators.constants"), "not valid TOML"),
        (("rows = 12", "rows = -12"), "rows"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, change, message):
    text = calibration_text(calibration())
    assert change[0] in text
    file = tmp_path / "bad.toml"
    file.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(FileFormatError, match=message) as error:
        read_calibration(file)
    assert str(file) in str(error.value)


def test_an_entry_is_given_once(tmp_path):
    with pytest.raises(ValueError, match="linear bf16 bf16 is given twice"):
        calibration(entry(), entry())
    file = tmp_path / "missing.toml"
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_calibration(file)


def test_the_entry_of_the_storage_itself_comes_first_then_of_its_width_then_any():
    exact, block, any_storage = (
        entry(arithmetic="fp8", storage="fp8"),
        entry(arithmetic="fp8", storage="fp8-block"),
        entry("decode_attention", "*", "*"),
    )
    found = calibration(entry(), exact, block, any_storage, entry(storage="int4-g128")).find
    assert found("linear", "fp8", "fp8-block").storage == "fp8-block"
    assert found("linear", "fp8", "fp8-channel").storage == "fp8"
    assert found("linear", "fp16", "fp16").storage == "bf16"
    assert found("linear", "bf16", "nf4").storage == "int4-g128"
    assert found("linear", "bf16", "w8a16") is None
    assert found("linear", "fp4", "nvfp4") is None
    assert found("moe", "bf16", "bf16") is None
    assert found("decode_attention", "bf16", "fp8") is any_storage


@pytest.mark.parametrize(
    ("storage", "family"), [("bf16", 16), ("fp8-block", 8), ("w8a16", 8), ("nvfp4", 4), ("mxfp4", 4)]
)
def test_widths_have_families(storage, family):
    assert width_family(storage) == family


def test_the_classes_are_those_of_operators():
    assert set(CLASSES) == set(get_args(OperatorKind))


def device(name):
    return HardwareProfile(id=name, name=name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inner = tmp_path / "calibrations"
    inner.mkdir()
    monkeypatch.setenv("ROOFLINES_HARDWARE", str(tmp_path))
    return inner


def test_the_preferred_stack_of_a_device_comes_first(folder):
    for engine in ("zz", "sglang", "vllm"):
        name = f"mine.{engine}"
        write_calibration(
            calibration(name=name, device="mine", stack=f"{engine} 1.0", stands_for=("sister",)),
            folder / f"{name}.toml",
        )
    assert [one.stack for one in calibrations_of("mine")] == ["vllm 1.0", "sglang 1.0", "zz 1.0"]
    assert calibration_of(device("mine")).name == "mine.vllm"
    assert calibration_of(device("sister")).name == "mine.vllm"
    assert calibration_of(device("stranger")) is None
    assert {"mine.zz", "mine.vllm"} <= set(list_calibrations())


def test_an_unknown_name_is_answered_with_near_ones(folder):
    write_calibration(calibration(name="mine.vllm"), folder / "mine.vllm.toml")
    with pytest.raises(UnknownNameError, match=r"did you mean 'mine\.vllm'"):
        load_calibration("mine-vllm")


def test_a_calibration_of_the_user_goes_before_those_that_ship(folder):
    """Whatever the file is called and whichever engine it is of."""
    write_calibration(calibration(name="bench", stack="bench 1"), folder / "bench.toml")
    assert calibration_of(load_hardware("h100-sxm5-80gb")).name == "bench"
    assert "h100-sxm5-80gb.vllm-0.24.0" in [one.name for one in calibrations_of("h100-sxm5-80gb")]


@pytest.mark.parametrize(
    ("old", "new"), [("3.35 TB/s", "2 TB/s"), ("989.5 TFLOP/s", "700 TFLOP/s"), ("450 GB/s", "200 GB/s")]
)
def test_constants_that_ship_are_for_the_numbers_that_ship(tmp_path, old, new):
    """Whoever keeps the id of a shipped profile for another device gets no calibration of that profile."""
    text = (data_folder() / "h100-sxm5-80gb.toml").read_text(encoding="utf-8")
    assert f'value = "{old}"' in text
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text(text.replace('name = "', 'name = "My '), encoding="utf-8")
    other.write_text(text.replace(f'value = "{old}"', f'value = "{new}"'), encoding="utf-8")
    own = calibration_of(load_hardware("h100-sxm5-80gb"))
    assert own.device == "h100-sxm5-80gb"
    assert calibration_of(load_hardware(same)) == own
    assert calibration_of(load_hardware(other)) is None


def test_constants_of_the_user_are_for_the_users_numbers(folder, tmp_path):
    write_calibration(calibration(name="bench", stack="bench 1"), folder / "bench.toml")
    profile = tmp_path / "h100-sxm5-80gb.toml"
    profile.write_text(
        'id = "h100-sxm5-80gb"\nname = "Mine"\nmemory_bandwidth = "2 TB/s"\n', encoding="utf-8"
    )
    assert calibration_of(load_hardware("h100-sxm5-80gb")).name == "bench"


def test_a_file_that_changed_is_read_anew(folder):
    file = folder / "bench.toml"
    for stack in ("bench 1", "bench 2"):
        write_calibration(calibration(name="bench", stack=stack), file)
        assert read_calibration(file).stack == stack


def test_versions_are_compared_as_numbers(folder):
    for version in ("0.9.1", "0.10.0"):
        name = f"mine.vllm-{version}"
        write_calibration(
            calibration(name=name, device="mine", stack=f"vllm {version}"), folder / f"{name}.toml"
        )
    write_calibration(
        calibration(name="mine.other", device="mine", stack="vllm 0.11.0 flashinfer"),
        folder / "mine.other.toml",
    )
    assert [one.stack for one in calibrations_of("mine")] == [
        "vllm 0.10.0",
        "vllm 0.9.1",
        "vllm 0.11.0 flashinfer",
    ]


def test_a_broken_file_in_the_folder_is_named(folder):
    (folder / "broken.toml").write_text("name = \n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"broken\.toml is not valid TOML"):
        calibration_of(device("mine"))


def test_the_file_in_the_documentation_is_a_calibration(root, tmp_path):
    text = (root / "docs" / "calibration.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    file = tmp_path / "my-card.vllm-0.24.0.toml"
    file.write_text(block, encoding="utf-8")
    found = read_calibration(file)
    assert found.find("linear", "bf16", "bf16").constants.overhead_s == pytest.approx(4e-6)
