"""What verifying costs, width by width."""

from __future__ import annotations

import pytest

from rooflines.studies.serve import make_deployment, make_machine
from rooflines.studies.verify_cost import verify_rows

POSITIONS = (1, 2, 5, 64)
CONTEXT = 1024


@pytest.fixture(scope="module")
def target():
    return make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb"))


def test_rows_are_the_passes_of_their_deployment(target):
    rows = verify_rows(target, (1, 32), CONTEXT, POSITIONS)
    assert [(row["batch"], row["positions"]) for row in rows] == [(b, n) for b in (1, 32) for n in POSITIONS]
    for row in rows:
        step_s = float(target.decode(float(row["batch"]), CONTEXT).seconds)
        verify_s = float(target.verify(float(row["batch"]), CONTEXT, float(row["positions"])).seconds)
        assert row["step_s"] == pytest.approx(step_s, rel=1e-12)
        assert row["verify_s"] == pytest.approx(verify_s, rel=1e-12)
        assert row["relative"] == pytest.approx(verify_s / step_s, rel=1e-12)


def test_one_position_is_a_plain_step_for_sure_and_more_are_never_cheaper(target):
    for row in verify_rows(target, (1, 32), CONTEXT, POSITIONS):
        assert 1.0 <= row["relative_low"] <= row["relative"] <= row["relative_high"]
        if row["positions"] == 1:
            assert row["relative_low"] == row["relative_high"] == pytest.approx(1.0)
        else:
            assert row["relative_high"] > row["relative"]


def test_times_without_stated_errors_have_no_band():
    exact = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))
    for row in verify_rows(exact, (1,), CONTEXT, POSITIONS):
        assert row["relative_low"] == row["relative_high"] == row["relative"]


def test_verifying_for_a_mixture_costs_more_of_its_steps_at_once(target):
    """At batch 1 each further position of a mixture hits experts that no other did; a dense model reads all."""
    mixture = make_deployment("qwen3-30b-a3b", target.machine)
    (dense,), (sparse,) = (verify_rows(one, (1,), CONTEXT, (8,)) for one in (target, mixture))
    assert sparse["relative"] > 1.3 * dense["relative"]
