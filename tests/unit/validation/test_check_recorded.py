"""Real recorded runs (the example project's, taken while the other core was busy) agree; faults in them do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rooflines.hardware.calibration_files import load_calibration
from rooflines.hardware.catalogue import load_hardware
from rooflines.measurement.files import read_measured
from rooflines.validation.check import Reference, check_speculation


@pytest.fixture(scope="module")
def recorded(root):
    folder = root / "docs" / "example-project" / "measurements"
    return {name: read_measured(folder / f"{name}.json") for name in ("runs", "accepted")}


@pytest.fixture(scope="module")
def reference(root):
    folder = root / "docs" / "example-project" / "measurements"
    return Reference(load_hardware(folder / "machine.toml"), load_calibration(folder / "calibration.toml"))


def layer(case, name):
    return next(one for one in case.layers if one.name == name)


@pytest.mark.parametrize("name", ["runs", "accepted"])
def test_no_false_alarm(recorded, reference, name):
    assert check_speculation(recorded[name], name, reference=reference).verdict == "agree"


@pytest.mark.parametrize(("name", "median", "p90"), [("composition", 0.03, 0.08), ("roofline", 0.05, 0.12)])
def test_predictions_are_as_close_as_is_asked(recorded, reference, name, median, p90):
    errors = [
        abs(math.expm1(layer(case, name).difference.value))
        for file in recorded.values()
        for case in check_speculation(file, "x", reference=reference).cases
    ]
    assert len(errors) == 16
    assert np.median(errors) <= median
    assert np.quantile(errors, 0.9) <= p90


def test_measured_speedups_lie_in_the_intervals_of_predictions(recorded, reference):
    """Intervals of both layers are of 90 %: of 32 predictions hardly any may miss."""
    inside = [
        layer(case, name).difference.low <= 0.0 <= layer(case, name).difference.high
        for file in recorded.values()
        for case in check_speculation(file, "x", reference=reference).cases
        for name in ("roofline",)
    ]
    assert np.mean(inside) >= 0.85


FAULTS = {
    "draft": lambda s, f: s.changed(f, lambda one: {"draft_s": 1.6 * one.draft_s}, "int4"),
    "verify": lambda s, f: s.changed(f, lambda one: {"verify_s": 2.0 * one.verify_s}),
    "baseline": lambda s, f: s.rewritten(f, lambda run: {"plain_s": tuple(1.25 * t for t in run.plain_s)}),
    "tau": lambda s, f: s.changed(
        f, lambda one: {"accepted": min(one.drafted, one.accepted + 1)}, draft_length=4
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["runs", "accepted"])
def test_planted_faults_are_caught_and_named(simulator, recorded, reference, name, fault):
    honest = recorded[name]
    before = check_speculation(honest, name, reference=reference)
    after = check_speculation(FAULTS[fault](simulator, honest), name, reference=reference)
    caught = 0
    for was, now in zip(before.cases, after.cases, strict=True):
        told = layer(now, "composition").causes["tau"]
        change = told if fault == "tau" else math.log(now.measured.value / was.measured.value)
        if abs(change) > math.log(1.15):
            assert (now.verdict, now.fault) == ("disagree", fault), now.name
            caught += 1
    assert caught >= 1
