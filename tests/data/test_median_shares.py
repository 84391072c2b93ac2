"""What products by medians of other devices share on a device, measured on the tables of products."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from rooflines.hardware.calibration_files import read_calibration
from rooflines.hardware.catalogue import load_hardware
from rooflines.timing.uncertain import PRODUCTS_BY_MEDIANS
from rooflines.validation.class_fits import predicted_s, with_constants
from rooflines.validation.kernel_tables.read import read_kernel_table
from rooflines.validation.transferable import FEWEST_DEVICES, _by_device, _median, _medians, _rows

REGIONS = ("m <= 64", "m 65-512", "m > 512")


def errors_by_region(groups, profile, constants):
    """ln(measured / predicted) of each stack and region."""
    found = {}
    for rows in groups:
        log = np.log(rows.measured_s / predicted_s(rows, with_constants(profile, constants)))
        for region in np.unique(rows.region):
            found.setdefault((rows.group.stack, str(region)), []).append(log[rows.region == region])
    return {key: np.concatenate(parts) for key, parts in found.items()}


@pytest.fixture(scope="module")
def moments(reference_data, root):
    """Mean and mean square of the errors by group (device, stack, format) and region."""
    names = ("gemm_bf16.csv", "gemm_fp8.csv", "gemm_4bit_int8.csv")
    tables = [read_kernel_table(reference_data / "silicon" / name) for name in names]
    files = sorted((root / "hardware_profiles" / "calibrations").glob("*.toml"))
    found = {}
    for key, own in _by_device([read_calibration(file) for file in files]).items():
        form = Counter(one.form for entries in own.values() for one in entries).most_common(1)[0][0]
        alike = {device: [one for one in entries if one.form == form] for device, entries in own.items()}
        kept = {device: _median(entries) for device, entries in alike.items() if entries}
        if key[0] != "linear" or len(kept) < FEWEST_DEVICES:
            continue
        for device, groups in _rows(key, own, tables).items():
            others = _medians([one for name, one in kept.items() if name != device])
            for (stack, region), log in errors_by_region(groups, load_hardware(device), others).items():
                group = found.setdefault((device, stack, key), {})
                group[region] = (float(np.mean(log)), float(np.mean(log**2)))
    return [group for group in found.values() if set(group) == set(REGIONS)]


def share(moments, one, other):
    """Part of the variance that means of groups have in common between two regions."""
    means = np.array([[group[one][0], group[other][0]] for group in moments])
    squares = np.array([[group[one][1], group[other][1]] for group in moments])
    return np.sum(means[:, 0] * means[:, 1]) / np.sqrt(np.prod(squares.sum(axis=0)))


def test_what_a_device_adds_to_all_of_its_products(moments):
    assert len(moments) >= 20
    shares = [share(moments, region, region) for region in REGIONS]
    assert shares == pytest.approx([0.35, 0.18, 0.35], abs=0.05)
    assert np.mean(shares) == pytest.approx(PRODUCTS_BY_MEDIANS.family + PRODUCTS_BY_MEDIANS.region, abs=0.05)


def test_half_of_it_is_the_same_in_all_regions(moments):
    between = [share(moments, *pair) for pair in combinations(REGIONS, 2)]
    assert np.mean(between) == pytest.approx(PRODUCTS_BY_MEDIANS.family, abs=0.05)
