from __future__ import annotations

import tomllib

import pytest

pytest.importorskip("torch", reason="needs torch (extra [measure])")
pytest.importorskip("transformers", reason="needs transformers (extra [measure])")

from rooflines.errors import InputError, UnknownNameError
from rooflines.hardware.lint import lint_profile
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.files import read_measured
from rooflines.measurement.probe import MachineQuestion, measure_machine, stream_size, sustained
from rooflines.measurement.profile_toml import profile_id, profile_text
from rooflines.measurement.schema import CacheLevel, ProbeSample
from rooflines.measurement.surroundings import machine_facts

pytestmark = pytest.mark.torch

QUICK = MachineQuestion(stream_bytes=2**20, gemm_side=64, rounds=3)


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "raw.json"
    measure_machine(QUICK, path, lambda _done, _total: None)
    return read_measured(path)


def probe(quantity, seconds, moved=0.0, flops=0.0):
    return ProbeSample(
        quantity=quantity,
        dtype="fp32",
        shape=(8,),
        moved_bytes=moved,
        flops=flops,
        cpu_s=tuple(seconds),
        wall_s=tuple(seconds),
    )


def test_every_quantity_is_probed_as_often_as_asked(probed):
    assert [(one.quantity, one.dtype) for one in probed.samples] == [
        ("read", "fp32"),
        ("copy", "fp32"),
        ("launch", "fp32"),
        ("gemm", "fp32"),
        ("gemm", "bf16"),
        ("gemm", "int8"),
    ]
    assert {len(one.seconds) for one in probed.samples} == {3}
    assert all(value > 0 for one in probed.samples for value in one.seconds)


def test_what_is_moved_and_computed_is_counted(probed):
    by_name = {(one.quantity, one.dtype): one for one in probed.samples}
    assert by_name["read", "fp32"].moved_bytes == 2**20
    assert by_name["copy", "fp32"].moved_bytes == 2 * 2**20
    assert by_name["gemm", "bf16"].flops == 2 * 64**3
    assert by_name["gemm", "bf16"].moved_bytes == 3 * 2 * 64**2
    assert by_name["gemm", "int8"].moved_bytes == (2 + 4) * 64**2
    # One launch, not the thousand that were timed together.
    assert by_name["launch", "fp32"].wall_s[0] < 1e-3


def test_rates_are_medians_with_the_spread_of_the_middle_half():
    assert sustained(probe("read", [1.0, 2.0, 4.0], moved=8.0)) == (4.0, pytest.approx((6 - 3) / 4))
    assert sustained(probe("gemm", [1.0, 2.0, 4.0], flops=16.0))[0] == 8.0
    assert sustained(probe("launch", [1e-6, 2e-6, 4e-6]))[0] == 2e-6


def test_the_profile_says_what_was_measured_and_obeys_the_rules_of_profiles(probed):
    text = profile_text(probed, "raw.json")
    profile = HardwareProfile.read(tomllib.loads(text), "the profile")
    by_name = {(one.quantity, one.dtype): one for one in probed.samples}
    assert profile.bandwidth_bytes_per_s == pytest.approx(sustained(by_name["read", "fp32"])[0], rel=1e-3)
    assert profile.peak_flop_per_s("bf16") == pytest.approx(sustained(by_name["gemm", "bf16"])[0], rel=1e-3)
    assert {entry.basis for _, entry in profile.entries()} == {"measured"}
    assert all("raw.json" in profile.source_of(entry) for _, entry in profile.entries())
    assert "IQR" in profile.memory_bandwidth.note
    assert "copying moves" in profile.memory_bandwidth.note
    assert [one for one in lint_profile(profile) if one.verdict == "fails" and one.rule == "ridge"] == []


def test_ids_are_those_that_profiles_may_have():
    assert profile_id("AMD EPYC", 1) == "measured-amd-epyc-1t"
    assert profile_id("NVIDIA H100 80GB HBM3", None) == "measured-nvidia-h100-80gb-hbm3"
    assert profile_id("Intel(R) Xeon(R) @ 2.20GHz", 8) == "measured-intel-r-xeon-r-2-20ghz-8t"


def test_a_stream_exceeds_the_last_cache_or_is_refused():
    machine = machine_facts("cpu", 1)
    caches = (CacheLevel(level=2, size_bytes=2**20), CacheLevel(level=3, size_bytes=96 * 2**20))
    large = machine.model_copy(update={"caches": caches, "memory_bytes": 64 * 2**30})
    assert stream_size(large) == 8 * 96 * 2**20
    assert stream_size(large.model_copy(update={"caches": ()})) == 256 * 2**20
    with pytest.raises(InputError, match="too few to stream beyond its caches"):
        stream_size(large.model_copy(update={"memory_bytes": 2**30}))


def test_a_format_that_is_not_multiplied_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="known: fp32, bf16, fp16, int8"):
        measure_machine(MachineQuestion(dtypes=("fp4",)), tmp_path / "m.json", lambda _done, _total: None)
    assert list(tmp_path.iterdir()) == []
