from __future__ import annotations

import math
import pickle

import pytest
from pydantic import ValidationError

from rooflines.errors import FileFormatError, MissingPeakError, ProfileError, UnknownNameError
from rooflines.hardware.profile import PEAK_KEYS, Entry, HardwareProfile

SOURCES = {"sheet": "https://example.org/datasheet.pdf", "memory": "from memory, unverified"}


def cited(value, **fields):
    return {"value": value, "basis": "datasheet", "source": "sheet", **fields}


def profile(**fields):
    return HardwareProfile.read({"id": "card", "name": "A card", "sources": SOURCES, **fields}, "card.toml")


def refusal(**fields):
    with pytest.raises(FileFormatError) as caught:
        profile(**fields)
    message = str(caught.value)
    assert message.startswith("card.toml: ")
    assert "\n" not in message
    return message


def test_numbers_are_si():
    card = profile(
        memory_capacity=cited("80 GiB"),
        memory_bandwidth=cited("3.35 TB/s"),
        last_level_cache=cited("50 MiB"),
        interconnect_per_direction=cited("450 GB/s"),
        pcie_per_direction=cited("63 GB/s"),
        compute_units=cited(132),
        tensor_clock=cited("1.83 GHz"),
        tdp=cited("700 W"),
        peaks={"bf16": cited("989.5 TFLOP/s"), "int8": cited("1979 TOP/s")},
    )
    assert card.capacity_bytes == 80 * 2**30
    assert card.bandwidth_bytes_per_s == pytest.approx(3.35e12)
    assert card.last_level_cache_bytes == 50 * 2**20
    assert card.interconnect_bytes_per_s == pytest.approx(450e9)
    assert card.pcie_bytes_per_s == pytest.approx(63e9)
    assert card.peak_flop_per_s("bf16") == pytest.approx(989.5e12)
    assert card.peak_flop_per_s("int8") == pytest.approx(1979e12)
    assert card.compute_units.value.si == 132
    assert card.tensor_clock.value.si == pytest.approx(1.83e9)
    assert card.tdp.value.si == 700


def test_the_ridge_is_peak_over_bandwidth():
    card = profile(
        memory_bandwidth=cited("2 TB/s"), peaks={"fp8": cited("400 TFLOP/s"), "bf16": cited("200 TFLOP/s")}
    )
    assert card.ridge_point("bf16") == pytest.approx(100)
    assert card.ridge_point("fp8") == pytest.approx(200)


def test_a_number_keeps_how_it_was_written_and_who_says_so():
    entry = profile(memory_bandwidth=cited("3350 GB/s", stated="3,350 GB/sec", note="n")).memory_bandwidth
    assert (entry.value.text, entry.basis, entry.stated, entry.note) == (
        "3350 GB/s",
        "datasheet",
        "3,350 GB/sec",
        "n",
    )


def test_other_statements_stand_beside_the_adopted_number_and_change_nothing():
    other = cited("3 TB/s", note="at launch")
    card = profile(memory_bandwidth=cited("3.35 TB/s", alternatives=[other]))
    (statement,) = card.memory_bandwidth.alternatives
    assert statement.value.si == pytest.approx(3e12)
    assert card.source_of(statement) == SOURCES["sheet"]
    assert card.bandwidth_bytes_per_s == pytest.approx(3.35e12)


def test_a_plain_value_is_an_unsourced_assumption():
    card = profile(memory_bandwidth="3.35 TB/s", compute_units=132, peaks={"bf16": "989 TFLOP/s"})
    assert card.memory_bandwidth.basis == "assumed"
    assert card.source_of(card.peaks["bf16"]) is None
    assert card.ridge_point("bf16") == pytest.approx(989 / 3.35)


def test_a_missing_peak_names_what_is_stated_and_nothing_stands_in():
    card = profile(peaks={"fp16": "65 TFLOP/s", "int8": "130 TOP/s"})
    with pytest.raises(MissingPeakError, match=r"^card states no dense bf16 peak; .*stated: fp16, int8$"):
        card.peak_flop_per_s("bf16")
    with pytest.raises(MissingPeakError, match="it states no peak"):
        profile().peak_flop_per_s("bf16")


@pytest.mark.parametrize("dtype", ["fp16_acc16", "fp8_acc16", "fp8_mx", "fp64_tensor"])
def test_other_instructions_do_not_stand_in_for_a_dtype(dtype):
    card = profile(peaks={dtype: "100 TFLOP/s"})
    assert card.peak_flop_per_s(dtype) == pytest.approx(100e12)
    with pytest.raises(MissingPeakError):
        card.peak_flop_per_s(dtype.split("_")[0])


def test_a_mistyped_dtype_is_no_missing_peak():
    with pytest.raises(UnknownNameError, match="did you mean 'bf16'"):
        profile(peaks={"bf16": "1 TFLOP/s"}).peak_flop_per_s("bf61")


def test_a_profile_may_leave_out_what_nobody_states():
    card = profile()
    assert card.last_level_cache_bytes is None
    assert card.interconnect_bytes_per_s is None
    assert card.pcie_bytes_per_s is None
    for needed, name in [
        ("capacity_bytes", "memory_capacity"),
        ("bandwidth_bytes_per_s", "memory_bandwidth"),
    ]:
        with pytest.raises(ProfileError, match=f"^card states no {name}"):
            getattr(card, needed)


def test_half_of_a_total_is_not_taken_for_one_direction():
    assert profile(interconnect_total="900 GB/s").interconnect_bytes_per_s is None


def test_the_share_of_unified_memory_that_a_gpu_may_use_is_the_capacity():
    assert profile(memory_capacity="64 GB", gpu_memory_limit="48 GB").capacity_bytes == pytest.approx(48e9)


def test_a_nominal_capacity_is_no_capacity():
    with pytest.raises(ProfileError, match="states no memory_capacity"):
        _ = profile(memory_capacity_nominal="80 GB").capacity_bytes


def test_every_number_is_an_entry():
    card = profile(year=2022, memory_bandwidth="1 TB/s", peaks={"bf16": "1 TFLOP/s"})
    assert [field for field, _ in card.entries()] == ["year", "memory_bandwidth", "peaks.bf16"]
    assert all(isinstance(entry, Entry) for _, entry in card.entries())


def test_a_profile_is_frozen_and_survives_the_way_to_a_worker():
    card = profile(memory_bandwidth=cited("1 TB/s"), peaks={"bf16": cited("1 TFLOP/s")})
    with pytest.raises(ValidationError, match="frozen"):
        card.name = "other"
    assert pickle.loads(pickle.dumps(card)) == card  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"memory_bandwidth": 3.35}, "memory_bandwidth: 3.35 has no unit"),
        ({"memory_bandwidth": "3.35"}, "'3.35' has no unit"),
        ({"memory_bandwidth": "3.35 TB"}, "byte/s is needed"),
        ({"memory_bandwidth": "0 TB/s"}, "must be above zero: leave out what is not known"),
        ({"memory_bandwidth": "-1 TB/s"}, "must be finite and not negative"),
        ({"memory_bandwidth": ["3 TB/s"]}, "is not a quantity"),
        ({"memory_bandwith": "3 TB/s"}, "unknown field; did you mean 'memory_bandwidth'?"),
        ({"memory_bandwidth": {"value": "3 TB/s"}}, "memory_bandwidth.basis: Field required"),
        ({"memory_bandwidth": cited("3 TB/s", basis="guess")}, "memory_bandwidth.basis"),
        ({"memory_bandwidth": cited("3 TB/s", sorce="x")}, "memory_bandwidth.sorce: unknown field"),
        (
            {"memory_bandwidth": cited("3 TB/s", alternatives=[cited("3 GB")])},
            "memory_bandwidth: '3 GB' is in byte",
        ),
        ({"memory_capacity": "80 Gbit"}, "is in bits, not bytes"),
        ({"compute_units": "132"}, "is not a count"),
        ({"compute_units": 1.5}, "1.5 is not a count"),
        ({"compute_units": 0}, "0 is not a count"),
        ({"year": True}, "True is not a count"),
        ({"id": "My Card"}, "an id has lower-case letters and digits"),
        ({"name": ""}, "name: the name is empty"),
        ({"name": "  "}, "name: the name is empty"),
        ({"id": "card-"}, "an id has lower-case letters and digits"),
        ({"memory_bandwidth": cited("3 TB/s", alternatives=["3 TB/s"])}, "memory_bandwidth.alternatives.0"),
        ({"memory_bandwidth": cited("3 TB/s", alternatives="3 TB/s")}, "memory_bandwidth.alternatives"),
        ({"kind": "toaster"}, "kind: Input should be 'gpu'"),
        ({"status": "rumoured"}, "status: Input should be 'shipping' or 'announced'"),
        ({"peaks": "989 TFLOP/s"}, "peaks is a table"),
        ({"peaks": {"bf61": "989 TFLOP/s"}}, "unknown dtype 'bf61'; known: "),
        ({"exceptions": [{"rule": "ridge", "fields": ["peaks.bf16"], "reason": ""}]}, "exceptions.0.reason"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file_and_the_field(fields, says):
    assert says in refusal(**fields)


@pytest.mark.parametrize(
    "peaks",
    [
        {"bf16_sparse": "1979 TFLOP/s"},
        {"bf16": cited("1979 TFLOP/s", sparse=True)},
        {"bf16": cited("1979 TFLOP/s", sparsity="2:4")},
        {"bf16": "1979 TFLOPS with sparsity"},
        {"bf16": cited("1979 TFLOPS (sparse)")},
    ],
)
def test_a_peak_that_says_it_is_sparse_is_refused_with_the_fix(peaks):
    message = refusal(peaks=peaks)
    assert "bf16" in message
    assert "peaks are dense" in message


def test_a_source_must_be_listed():
    message = refusal(memory_bandwidth=cited("3 TB/s", source="shet"))
    assert message.endswith(
        "memory_bandwidth: source 'shet' is not a key of [sources]; did you mean 'sheet'?"
    )
    other = cited("3 TB/s", source="nobody")
    assert "'nobody' is not a key" in refusal(memory_bandwidth=cited("3 TB/s", alternatives=[other]))
    assert "identity_source: source 'nobody'" in refusal(identity_source="nobody")


def test_every_arithmetic_dtype_may_have_a_peak():
    card = profile(peaks=dict.fromkeys(PEAK_KEYS, "1 TFLOP/s"))
    assert all(math.isclose(card.peak_flop_per_s(dtype), 1e12) for dtype in PEAK_KEYS)
