"""Speculation must be as fast as its parts and the roofline beneath say, and must pay."""

from __future__ import annotations

import pytest


@pytest.mark.rooflines("measurements/runs.json")
def test_predictions_and_measurements_agree():
    """The marker judges; there is nothing left to say."""


@pytest.mark.rooflines("measurements/runs.json", tolerance="20%")
def test_copying_from_the_prompt_pays(rooflines_report):
    copying = [case for case in rooflines_report.cases if case.name.endswith("copying")]
    assert copying
    assert all(case.measured.low > 1.1 for case in copying)


def test_no_slower_than_the_accepted_run(rooflines_check):
    report = rooflines_check("measurements/runs.json", baseline="measurements/accepted.json")
    assert all(case.change is not None for case in report.cases)
