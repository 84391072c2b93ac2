from __future__ import annotations

import pytest

from rooflines.hardware import HardwareProfile, list_hardware, load_hardware
from rooflines.hardware.lint import RULES, lint_names, lint_profile

SOURCES = {"sheet": "https://example.org/datasheet.pdf", "memory": "from memory, unverified"}
MATRIX = ("tf32", "bf16", "fp16", "fp8", "int8", "fp4", "fp16_acc16", "fp8_acc16", "fp8_mx")
# Nothing in these profiles ties the matrix peaks to another number: no clock, no rate of the architecture.
BLIND = {
    *("ascend-910b", "ascend-910c", "ascend-950dt", "gaudi2", "gaudi3", "h20-96gb", "l40", "mi455x", "rubin"),
    *("inferentia2", "trainium1", "trainium2", "trainium3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v7x"),
    *("m5-max", "epyc-9654", "epyc-9755", "xeon-6980p", "xeon-8480plus", "xeon-8592plus"),
}


def cited(value, **fields):
    return {"value": value, "basis": "datasheet", "source": "sheet", **fields}


def hopper(**fields):
    """An H100 as its datasheet has it: 132 units x 4096 FLOP x 1.83 GHz."""
    facts = {
        "vendor": "NVIDIA",
        "architecture": "Hopper",
        "compute_units": cited(132),
        "boost_clock": cited("1.98 GHz"),
        "tensor_clock": cited("1.83 GHz"),
        "memory_capacity": cited("81559 MiB"),
        "memory_capacity_nominal": cited("80 GB"),
        "memory_bandwidth": cited("3.35 TB/s"),
        "peaks": {"bf16": cited("989.5 TFLOP/s"), "fp8": cited("1979 TFLOP/s"), "fp32": cited("67 TFLOP/s")},
        "sources": {"sheet": SOURCES["sheet"]},
        **fields,
    }
    return HardwareProfile.read({"id": "card", "name": "A card", **facts}, "card.toml")


def failures(profile):
    return {(finding.rule, finding.field) for finding in lint_profile(profile) if finding.verdict == "fails"}


def doubled(profile, dtypes):
    """The profile with the 2:4-sparse figures of some dtypes in place of the dense ones."""
    peaks = {
        dtype: {"value": f"{(2 if dtype in dtypes else 1) * peak.value.si!r} FLOP/s", "basis": "derived"}
        for dtype, peak in profile.peaks.items()
    }
    return HardwareProfile.model_validate(
        profile.model_copy(update={"peaks": {}}).__dict__ | {"peaks": peaks}
    )


def sparse_failures(profile, dtypes):
    return {
        (rule, field) for rule, field in failures(doubled(profile, dtypes)) if not rule.startswith("source")
    }


def test_a_right_profile_passes_every_rule():
    assert failures(hopper()) == set()
    checked = {finding.rule for finding in lint_profile(hopper())}
    assert checked == set(RULES) - {"one-16-bit-rate"}


@pytest.mark.parametrize("device", list_hardware())
def test_every_shipped_profile_passes(device):
    failed = [finding for finding in lint_profile(load_hardware(device)) if finding.verdict == "fails"]
    assert failed == []


def test_shipped_names_belong_to_one_device_each():
    profiles = [(device, load_hardware(device)) for device in list_hardware()]
    assert [finding for _, finding in lint_names(profiles) if finding.verdict == "fails"] == []


@pytest.mark.parametrize("device", sorted(set(list_hardware()) - BLIND))
def test_sparse_figures_for_all_matrix_dtypes_fail(device):
    assert sparse_failures(load_hardware(device), MATRIX)


@pytest.mark.parametrize("device", sorted(BLIND))
def test_what_lint_is_blind_to_is_known(device):
    assert not sparse_failures(load_hardware(device), MATRIX)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8", "int8"])
@pytest.mark.parametrize(
    "device",
    [
        "h100-sxm5-80gb",
        "h200-sxm-141gb",
        "h100-pcie-80gb",
        "b200-sxm-180gb",
        "l40s",
        "l4",
        "mi300x",
        "mi355x",
    ],
)
def test_one_sparse_figure_fails(device, dtype):
    assert sparse_failures(load_hardware(device), {dtype})


@pytest.mark.parametrize("dtype", ["tf32", "bf16", "fp16", "int8"])
@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "a100-pcie-40gb", "a10", "a40"])
def test_one_sparse_figure_of_ampere_fails(device, dtype):
    assert sparse_failures(load_hardware(device), {dtype})


def test_half_of_a_dense_figure_fails_too():
    # https://github.com/allenai/OLMo-core/pull/614 halved a dense figure a second time.
    peaks = {"bf16": cited("494.7 TFLOP/s"), "fp8": cited("1979 TFLOP/s")}
    assert ("fp8-twice-bf16", "peaks.fp8") in failures(hopper(peaks=peaks))


def test_shader_rates_are_no_matrix_peaks():
    # "FP16 (half) 267.6 TFLOPS" of compilations is the vector rate; only the ratio to fp8 gives it away.
    peaks = {"bf16": cited("267.6 TFLOP/s"), "fp8": cited("1979 TFLOP/s")}
    assert failures(hopper(peaks=peaks)) >= {("fp8-twice-bf16", "peaks.fp8"), ("narrow-rates", "peaks.fp8")}


def test_geforce_accumulates_in_fp32_at_half_rate():
    card = load_hardware("rtx-4090")
    peaks = dict(card.peaks) | {"bf16": card.peaks["fp16_acc16"], "fp16": card.peaks["fp16_acc16"]}
    assert ("dense-rate", "peaks.bf16") in failures(card.model_copy(update={"peaks": peaks}))


def test_another_chips_rate_is_no_power_of_two():
    peaks = {"bf16": cited("750 TFLOP/s"), "fp8": cited("1500 TFLOP/s")}
    assert failures(hopper(peaks=peaks)) == {("power-of-two", "peaks.bf16"), ("power-of-two", "peaks.fp8")}


def test_the_clock_of_the_matrix_units_counts_where_it_is_stated():
    boost = cited("1.83 GHz")
    assert ("power-of-two", "peaks.bf16") in failures(
        hopper(tensor_clock=cited("1.5 GHz"), boost_clock=boost)
    )
    assert failures(hopper(tensor_clock=None, boost_clock=boost)) == set()


def test_a_cpu_is_judged_at_its_base_clock():
    epyc = load_hardware("epyc-9654")
    rules = {finding.rule: finding.verdict for finding in lint_profile(epyc)}
    assert rules["power-of-two"] == "holds"
    assert ("power-of-two", "peaks.fp32") in failures(epyc.model_copy(update={"kind": "gpu"}))


def test_gib_taken_for_gb_passes_and_another_card_fails():
    assert failures(hopper(memory_capacity=cited("80 GiB"))) == set()
    assert failures(hopper(memory_capacity=cited("94 GB"))) == {("capacity", "memory_capacity")}


@pytest.mark.parametrize("bandwidth", ["0.9 TB/s", "60 TB/s"])
def test_a_ridge_far_from_all_machines_fails(bandwidth):
    assert failures(hopper(memory_bandwidth=cited(bandwidth))) == {("ridge", "peaks.bf16")}


def test_fp16_stands_for_the_ridge_where_there_is_no_bf16():
    peaks = {"fp16": cited("989.5 TFLOP/s")}
    assert failures(hopper(peaks=peaks, memory_bandwidth=cited("60 TB/s"))) == {("ridge", "peaks.fp16")}


def test_bf16_and_fp16_run_at_one_rate():
    peaks = {"bf16": cited("989.5 TFLOP/s"), "fp16": cited("494.7 TFLOP/s")}
    assert failures(hopper(peaks=peaks)) == {("one-16-bit-rate", "peaks.fp16")}


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("700 W", "no source"),
        ({"value": "700 W", "basis": "datasheet"}, "no source"),
        (cited("700 W", source="memory"), "'from memory, unverified' goes with 'assumed'"),
        (cited("700 W", basis="assumed"), "'from memory, unverified' goes with 'assumed'"),
        (cited("700 W", source="hearsay"), "neither a URL nor 'from memory, unverified'"),
        (cited("700 W", source="scheme"), "neither a URL"),
        (cited("700 W", alternatives=[{"value": "600 W", "basis": "datasheet"}]), "no source"),
    ],
)
def test_every_number_needs_a_source_that_can_be_opened(number, says):
    sources = {**SOURCES, "hearsay": "a colleague", "scheme": "https://", "bench": "own bench, driver 580"}
    found = [one for one in lint_profile(hopper(tdp=number, sources=sources)) if one.rule == "sourced"]
    assert [one.detail for one in found if one.verdict == "fails" and says in one.detail]


def test_memory_and_measurements_are_sources_when_they_are_called_so():
    sources = {**SOURCES, "bench": "own bench, driver 580"}
    tdp = cited("700 W", basis="assumed", source="memory")
    cache = cited("60 MiB", basis="measured", source="bench")
    assert failures(hopper(tdp=tdp, last_level_cache=cache, sources=sources)) == set()


def test_a_source_that_no_number_cites_fails():
    sources = {"sheet": SOURCES["sheet"], "other": "https://example.org/other"}
    assert failures(hopper(sources=sources)) == {("sources-used", "sources.other")}
    assert failures(hopper(sources=sources, identity_source="other")) == set()


def test_an_exception_gives_its_reason_and_covers_its_field_only():
    peaks = {"bf16": cited("835 TFLOP/s"), "fp8": cited("1671 TFLOP/s")}
    exception = {"rule": "power-of-two", "fields": ["peaks.bf16"], "reason": "rated at a lower clock"}
    card = hopper(peaks=peaks, boost_clock=cited("1.785 GHz"), tensor_clock=None, exceptions=[exception])
    assert failures(card) == {("power-of-two", "peaks.fp8")}
    excepted = [finding for finding in lint_profile(card) if finding.verdict == "excepted"]
    assert [(one.field, one.detail) for one in excepted] == [("peaks.bf16", "rated at a lower clock")]


def test_an_exception_that_is_not_needed_fails():
    exception = {"rule": "ridge", "fields": ["peaks.bf16"], "reason": "once upon a time"}
    assert failures(hopper(exceptions=[exception])) == {("ridge", "peaks.bf16")}


def test_what_a_profile_does_not_state_is_not_judged():
    bare = HardwareProfile.read({"id": "card", "name": "c"}, "card.toml")
    assert lint_profile(bare) == ()


def test_a_file_is_named_after_its_id():
    ((device, finding),) = [one for one in lint_names([("other", hopper())]) if one[1].rule == "file-name"]
    assert (device, finding.verdict) == ("card", "fails")
    assert "rename it to card.toml" in finding.detail


def test_two_devices_cannot_share_a_name():
    other = HardwareProfile.read({"id": "board", "name": "Board", "aliases": ["CARD"]}, "board.toml")
    failed = [
        finding.detail
        for _, finding in lint_names([("card", hopper()), ("board", other)])
        if finding.verdict == "fails"
    ]
    assert failed == ["'CARD' is also a name of card"]
