"""Coverage of 90 % intervals of layers and verify premiums, counted on measured tables."""

from __future__ import annotations

import pytest

from rooflines.hardware.calibration_files import calibrations_of
from rooflines.studies.accuracy_targets import LEAST_COVERAGE
from rooflines.validation.judge import EVERYWHERE, verdicts
from rooflines.validation.judge_tables import judge_table
from rooflines.validation.kernel_tables.read import read_kernel_table
from rooflines.validation.kernel_tables.rows import KernelTable

LARGE = 100


def found(path, calibration_for):
    """Verdicts over all regions of the large groups of a table."""
    table = read_kernel_table(path)
    judged = []
    for rows in table.groups:
        if rows.group.operator == "layer":
            judged += judge_table(
                KernelTable(table.file, table.kind, (rows,), ()), calibration_for(rows.group)
            )
    return [one for one in verdicts(judged) if one.region == EVERYWHERE and one.rows >= LARGE]


def newest(group):
    """The calibration of a serving engine, for rows of a stack that is none."""
    return next(one.name for one in calibrations_of(group.device) if one.stack != group.stack)


def test_layers_and_premiums_of_the_own_stack_are_covered(reference_data):
    large = found(reference_data / "silicon" / "verify_premium_layer_gemm.csv", lambda _: "auto")
    own = [one for one in large if "another stack" not in one.basis]
    assert len(own) >= 10
    for one in own:
        assert LEAST_COVERAGE - 0.01 <= one.coverage <= 0.975, (one.group, one.quantity, one.coverage)


def test_another_engine_is_covered_but_for_fp8_premiums(reference_data):
    large = found(reference_data / "silicon" / "verify_premium_layer_gemm.csv", lambda _: "auto")
    others = {(one.group.dtype, one.quantity): one.coverage for one in large if "another stack" in one.basis}
    # vLLM's fp8 products change by size where those of the engine that was measured do not.
    assert others.pop(("fp8", "verify premium")) >= 0.70
    assert others
    assert all(coverage >= LEAST_COVERAGE for coverage in others.values())


@pytest.mark.parametrize("quantity", ["time", "verify premium"])
def test_older_libraries_are_covered(reference_data, quantity):
    large = found(reference_data / "silicon" / "vidur_layer_ops.csv", newest)
    shares = [one.coverage for one in large if one.quantity == quantity]
    assert len(shares) == 2
    assert min(shares) >= LEAST_COVERAGE
