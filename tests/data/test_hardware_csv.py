"""The shipped profiles against the table they were written from, in both directions: only prices are left out."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from rooflines.hardware import list_hardware, load_hardware
from rooflines.hardware.profile import PEAK_KEYS, UNVERIFIED

IDENTITY = ("vendor", "architecture", "memory_type")
PRICE = "price_per_hour"
# The table's name of a field -> the profile's; the other fields are peaks.
FIELDS = {
    "year": "year",
    "memory_capacity": "memory_capacity",
    "memory_capacity_nominal": "memory_capacity_nominal",
    "gpu_memory_limit": "gpu_memory_limit",
    "memory_bandwidth": "memory_bandwidth",
    "llc": "last_level_cache",
    "num_units": "compute_units",
    "base_clock": "base_clock",
    "boost_clock": "boost_clock",
    "tensor_clock": "tensor_clock",
    "tdp": "tdp",
    "interconnect_bw_per_direction": "interconnect_per_direction",
    "interconnect_bw_total": "interconnect_total",
    "interconnect_bw_per_link_one_way": "interconnect_per_link",
    "c2c_bw_per_direction": "c2c_per_direction",
    "pcie_bw_per_direction": "pcie_per_direction",
}
BASIS = {"A": "datasheet", "B": "datasheet", "C": "derived", "D": "assumed"}
MEASURED = "own measurement"


def rounded(value):
    # A prefix costs one rounding: 2.039 * 1e12 is not 2039e9 to the last bit. Digits are never lost.
    return float(f"{value:.13g}")


def profile_field(name):
    name = name.removesuffix("_alt")
    return FIELDS.get(name) or f"peaks.{name}"


@pytest.fixture(scope="module")
def table(reference_data):
    with (reference_data / "hardware" / "hardware.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def profiles():
    return {name: load_hardware(name) for name in list_hardware()}


def test_there_is_one_profile_for_every_device(table, profiles):
    assert len(profiles) == 75
    assert set(profiles) == {row["device"] for row in table}


def test_the_table_has_no_field_that_this_test_does_not_know(table):
    others = {profile_field(row["field"]) for row in table if row["field"] not in (*IDENTITY, PRICE)}
    assert others <= set(FIELDS.values()) | {f"peaks.{key}" for key in PEAK_KEYS}


def test_every_number_basis_source_and_note_is_carried_over_and_none_is_added(table, profiles):
    expected = Counter(
        (
            row["device"],
            profile_field(row["field"]),
            "alternative" if row["field"].endswith("_alt") else "adopted",
            rounded(float(row["value_SI"])),
            "measured" if row["source_url"].startswith(MEASURED) else BASIS[row["confidence"]],
            row["source_url"],
            row["note"],
        )
        for row in table
        if row["field"] not in (*IDENTITY, PRICE)
    )
    found = Counter(
        (
            name,
            field,
            role,
            rounded(statement.value.si),
            statement.basis,
            profile.source_of(statement),
            statement.note or "",
        )
        for name, profile in profiles.items()
        for field, entry in profile.entries()
        for role, statement in [("adopted", entry), *(("alternative", one) for one in entry.alternatives)]
    )
    assert sorted(expected - found) == []
    assert sorted(found - expected) == []
    assert found.total() > 1000


def test_a_halved_sparse_figure_still_says_what_its_source_prints(table, profiles):
    sparse = [row for row in table if "spars" in row["as_stated"] and not row["field"].endswith("_alt")]
    for row in sparse:
        entry = dict(profiles[row["device"]].entries())[profile_field(row["field"])]
        assert entry.stated == row["as_stated"], (row["device"], row["field"])
    assert sparse


def test_identity_and_its_source_are_carried_over(table, profiles):
    wrong = [
        (row["device"], row["field"])
        for row in table
        if row["field"] in IDENTITY
        for profile in [profiles[row["device"]]]
        if (getattr(profile, row["field"]), profile.sources[profile.identity_source])
        != (row["value_SI"], row["source_url"])
    ]
    assert wrong == []


def test_only_what_nobody_could_verify_is_assumed(profiles):
    for profile in profiles.values():
        for field, entry in profile.entries():
            assert (entry.basis == "assumed") == (profile.source_of(entry) == UNVERIFIED), (profile.id, field)


def test_no_profile_has_a_price(profiles):
    words = " ".join(profile.model_dump_json() for profile in profiles.values()).lower()
    assert "price" not in words
    assert "usd" not in words


def test_ridge_points_are_those_of_the_table(reference_data, profiles):
    with (reference_data / "hardware" / "ridge.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    compared = 0
    for row in rows:
        for dtype in ("bf16", "fp16", "fp8", "int8", "fp4"):
            stated = row[f"ridge_{dtype}"]
            assert bool(stated) == (dtype in profiles[row["device"]].peaks), (row["device"], dtype)
            if stated:
                # The table has one decimal.
                assert profiles[row["device"]].ridge_point(dtype) == pytest.approx(float(stated), abs=0.0501)
                compared += 1
    assert compared > 150
