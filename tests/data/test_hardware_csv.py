"""Every number of the shipped profiles against the table of stated facts, row by row, both ways."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from rooflines.errors import AmbiguousNameError
from rooflines.hardware import list_hardware, load_hardware

BASIS = {"A": "datasheet", "B": "datasheet", "C": "derived", "D": "assumed"}
IDENTITY = ("vendor", "architecture", "memory_type")
# Devices that tables of measurements name and the table of facts does not; their sources are in the profiles.
LATER = {"a30", "a800-pcie-80gb", "a800-sxm4-80gb", "arc-pro-b60", "rtx-a6000"}
NAMES = {
    "llc": "last_level_cache",
    "num_units": "compute_units",
    "interconnect_bw_per_direction": "interconnect_per_direction",
    "interconnect_bw_total": "interconnect_total",
    "interconnect_bw_per_link_one_way": "interconnect_per_link",
    "pcie_bw_per_direction": "pcie_per_direction",
    "c2c_bw_per_direction": "c2c_per_direction",
}


@pytest.fixture(scope="module")
def rows(reference_data, read_rows):
    facts = read_rows(reference_data / "hardware" / "hardware.csv")
    return [row for row in facts if row["field"] != "price_per_hour"]


@pytest.fixture(scope="module")
def profiles():
    return {device: load_hardware(device) for device in set(list_hardware()) - LATER}


def said(row):
    """What a row of the table says, as a profile would."""
    field = row["field"].removesuffix("_alt")
    if row["unit"] in ("FLOP/s", "OP/s"):
        field = f"peaks.{field}"
    own = row["source_url"].startswith("own measurement")
    return (
        row["device"],
        NAMES.get(field, field),
        "alternative" if row["field"].endswith("_alt") else "adopted",
        f"{float(row['value_SI']):.12g}",
        "measured" if own else BASIS[row["confidence"]],
        row["source_url"],
        row["as_stated"],
        row["note"],
    )


def kept(profile):
    """What a profile says, as the table would."""
    for field, entry in profile.entries():
        for role, one in [("adopted", entry), *(("alternative", other) for other in entry.alternatives)]:
            stated = one.stated or one.value.text
            yield (
                profile.id,
                field,
                role,
                f"{one.value.si:.12g}",
                one.basis,
                profile.source_of(one),
                stated,
                one.note or "",
            )


def test_every_device_of_the_table_has_a_profile_and_no_other(rows, profiles):
    assert set(list_hardware()) >= LATER
    assert set(profiles) == {row["device"] for row in rows}


def test_no_number_is_lost_or_changed_or_added(rows, profiles):
    table = Counter(said(row) for row in rows if row["field"] not in IDENTITY)
    ours = Counter(fact for profile in profiles.values() for fact in kept(profile))
    assert sum(table.values()) > 1000
    assert table - ours == Counter()
    assert ours - table == Counter()


def test_identity_is_as_the_table_says(rows, profiles):
    for row in rows:
        if row["field"] in IDENTITY:
            profile = profiles[row["device"]]
            assert getattr(profile, row["field"]) == row["value_SI"]
            assert profile.sources[profile.identity_source] == row["source_url"]


def test_no_profile_has_a_price(reference_data, profiles):
    assert "price_per_hour" in (reference_data / "hardware" / "hardware.csv").read_text(encoding="utf-8")
    for profile in profiles.values():
        assert not re.search(r"USD|\$\s?\d|pric", profile.model_dump_json(), re.IGNORECASE)


def test_status_kind_and_name_are_as_listed(reference_data, profiles):
    listing = (reference_data / "hardware" / "profiles.yaml").read_text(encoding="utf-8")
    documents = [dict(re.findall(r"(?m)^(\w+): (.+)$", part)) for part in listing.split("\n---\n")[1:]]
    assert len(documents) == 75
    for document in documents:
        profile = profiles[document["slug"]]
        assert (profile.name, profile.kind, profile.status) == tuple(
            document[key].strip("'\"") for key in ("name", "kind", "status")
        )


def test_ridge_points_agree_with_the_table_of_ridges(reference_data, read_rows, profiles):
    compared = 0
    for row in read_rows(reference_data / "hardware" / "ridge.csv"):
        profile = profiles[row["device"]]
        assert profile.bandwidth_bytes_per_s == pytest.approx(float(row["bw_B_per_s"]))
        for dtype in ("bf16", "fp16", "fp8", "int8", "fp4"):
            if not row[f"ridge_{dtype}"]:
                assert dtype not in profile.peaks
                continue
            # The table prints one decimal.
            assert profile.ridge_point(dtype) == pytest.approx(float(row[f"ridge_{dtype}"]), abs=0.051)
            compared += 1
    assert compared > 200


def test_names_that_other_tables_use_resolve(reference_data):
    lines = (reference_data / "hardware" / "aliases.md").read_text(encoding="utf-8").splitlines()
    tables = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    resolved = 0
    for device, silicon, end_to_end, also in tables[2:]:
        if device not in list_hardware():
            continue
        written = [re.sub(r" \(.*", "", name) for name in (silicon, end_to_end, *also.split(", "))]
        for name in filter(None, written):
            if name == "H100":  # three devices: refused rather than guessed
                with pytest.raises(AmbiguousNameError):
                    load_hardware(name)
                continue
            assert load_hardware(name).id == device, name
            resolved += 1
    assert resolved >= 19
