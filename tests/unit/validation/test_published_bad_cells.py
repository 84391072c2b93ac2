"""Cells of published tables that hold no finite number, and columns that may be missing: a reason, no fault."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rooflines.studies.serve import make_machine
from rooflines.validation.published.acceptance import validate_acceptance
from rooflines.validation.published.judge import validate_speedups

TABLES = Path(__file__).with_name("published")


def written(tmp_path, name, *, without=(), **cells):
    """A table with some cells of its first row changed, and columns left out."""
    with (TABLES / name).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    rows[0] |= cells
    path = tmp_path / name
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [key for key in rows[0] if key not in without], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path, len(rows)


@pytest.mark.parametrize("value", ["inf", "nan", "1e999", "-2", "two"])
def test_numbers_that_are_none_leave_their_row_out(tmp_path, value):
    path, given = written(tmp_path, "speedups.csv", measured_speedup=value, n_gpus=value)
    found = validate_speedups([path], make_machine)
    (reason,) = [one.reason for one in found.unused if one.line == 2]
    assert value in reason
    assert len(found.predicted) + len(found.unused) == given


def test_a_column_of_definitions_may_be_missing(tmp_path):
    """Without them a share means nothing, so that its rows are left out."""
    path, given = written(tmp_path, "field.csv", without=("acceptance_def",))
    both = [path, TABLES / "speedups.csv"]
    found = validate_speedups(both, make_machine)
    everything = validate_speedups([TABLES / "speedups.csv"], make_machine)
    assert (
        len(found.unused) + len(found.predicted) - len(everything.unused) - len(everything.predicted) == given
    )
    assert any("gives no tokens per cycle" in one.reason for one in found.unused)


@pytest.mark.parametrize("value", ["inf", "nan", "many"])
def test_draft_lengths_that_are_none_leave_their_curve_out(tmp_path, value):
    path, _ = written(tmp_path, "lengths.csv", gamma=value)
    whole = validate_acceptance([TABLES / "lengths.csv"])
    found = validate_acceptance([path])
    assert len(found.judged) == len(whole.judged) - 1
    assert any(value in one.reason for one in found.unused)


def test_profiles_need_no_task_and_their_lengths_may_be_unreadable(tmp_path):
    path, _ = written(tmp_path, "profiles.csv", without=("task",))
    assert validate_acceptance([path]).judged
    path, given = written(tmp_path, "profiles.csv", definition="tau only", tau_published="n/a", gamma="x")
    found = validate_acceptance([path])
    assert sum(one.points for one in found.judged) + len(found.unused) == given
