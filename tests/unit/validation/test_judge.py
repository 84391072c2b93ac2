"""Errors, bias, coverage and premiums, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator
from rooflines.validation.judge import WHOLE, judge_times, premiums, verdicts
from rooflines.validation.kernel_tables import Group, KernelRows

GROUP = Group("h100-sxm5-80gb", "vllm", "1", "", "layer", "bf16")


def judged(
    measured, predicted, *, region=None, size=None, group=GROUP, low=0.9, high=1.1, in_sample=False, plain=0.5
):
    measured, predicted = np.asarray(measured, dtype=float), np.asarray(predicted, dtype=float)
    count = len(measured)
    rows = KernelRows(
        group,
        (Operator("product", "linear", Cost(), rows=1.0),),
        measured,
        np.full(count, "a"),
        np.full(count, "m <= 64") if region is None else np.array(region),
        np.arange(1.0, count + 1) if size is None else np.array(size, dtype=float),
        np.arange(count) + 2,
    )
    return judge_times(
        rows,
        "rows.csv",
        predicted_s=predicted,
        plain_s=plain * measured,
        interval_s=(low * predicted, high * predicted),
        in_sample=np.full(count, in_sample),
        basis="by hand",
    )


def test_errors_are_relative_to_what_was_measured():
    (verdict,) = verdicts([judged([10.0, 10.0, 10.0], [9.0, 10.5, 12.0])])
    assert verdict.median_abs_error == pytest.approx(0.10)
    assert verdict.p90_abs_error == pytest.approx(0.18)
    assert verdict.bias == pytest.approx(0.05)
    assert verdict.plain_median_abs_error == pytest.approx(0.5)
    assert verdict.rows == 3


def test_coverage_counts_rows_inside_their_interval():
    (verdict,) = verdicts([judged([10.0, 10.0, 10.0, 10.0], [10.0, 9.5, 8.0, 12.0])])
    assert verdict.coverage == pytest.approx(0.5)
    (without,) = verdicts([judged([10.0], [10.0], low=np.nan, high=np.nan)])
    assert without.coverage is None


def test_regions_are_told_apart_and_put_together():
    found = verdicts([judged([10.0] * 3, [10.0, 11.0, 13.0], region=["m <= 64", "m 65-512", "m > 512"])])
    assert [(one.region, round(one.median_abs_error, 3)) for one in found] == [
        ("m <= 64", 0.0),
        ("m 65-512", 0.1),
        ("m > 512", 0.3),
        ("all", 0.1),
    ]


def test_parts_of_a_group_from_several_tables_are_one_verdict():
    found = verdicts([judged([10.0], [11.0], in_sample=True), judged([10.0, 10.0], [12.0, 13.0])])
    assert [one.rows for one in found] == [3]
    assert found[0].median_abs_error == pytest.approx(0.2)
    assert found[0].standing == "mixed"


@pytest.mark.parametrize(("flag", "words"), [(True, "in sample"), (False, "out of sample")])
def test_rows_that_were_fitted_to_are_marked(flag, words):
    assert verdicts([judged([10.0], [11.0], in_sample=flag)])[0].standing == words


def test_a_premium_is_a_ratio_to_the_median_of_one_to_four_positions():
    """m = 1 is an odd kernel: its 30 does not enter the median of 30, 10, 10, 10."""
    times = judged(
        [30.0, 10.0, 10.0, 10.0, 12.0, 20.0, 40.0],
        [11.0, 11.0, 11.0, 11.0, 11.0, 22.0, 33.0],
        size=[1, 2, 3, 4, 64, 200, 1024],
        region=["m <= 64"] * 5 + ["m 65-512", "m > 512"],
    )
    found = premiums(times)
    assert found.size.tolist() == [2, 3, 4, 64, 200]  # neither one position nor beyond 512
    assert found.measured == pytest.approx([1, 1, 1, 1.2, 2])
    assert found.predicted == pytest.approx([1, 1, 1, 1, 2])
    assert found.region.tolist() == ["n 2-16"] * 3 + ["n 17-64", "n 129-512"]
    assert found.quantity == "verify premium"


def test_errors_that_both_times_share_drop_out_of_a_premium():
    times = judged([10.0] * 3, [10.0] * 3, size=[1, 32, 200])
    near, far = np.array([0.06, 0.06, 0.0]), np.array([0.0, 0.0, 0.06])
    alone = np.full(3, 0.05)
    told = replace(
        times, errors={"a": np.full(3, 0.1), "a, near": near, "a, far": far, f"b in {WHOLE}": alone}
    )
    found = premiums(told)
    log_sd = np.log(found.high / found.low) / 2.0 / 1.6449
    assert log_sd == pytest.approx([0.05 * np.sqrt(2.0), np.sqrt(2 * 0.05**2 + 2 * 0.06**2)], rel=1e-3)
    assert np.isnan(premiums(times).low).all()


def test_no_premium_without_few_positions():
    assert premiums(judged([10.0, 20.0], [10.0, 20.0], size=[8, 64])) is None
    assert premiums(judged([10.0, 20.0], [10.0, 20.0], size=[1, 1024])) is None
