from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflines.cli import main

TABLES = Path(__file__).parents[1] / "unit" / "validation" / "published"
SPEEDUPS = (TABLES / "speedups.csv", TABLES / "field.csv")
ACCEPTANCE = (TABLES / "profiles.csv", TABLES / "lengths.csv")


def run(what, *arguments):
    return CliRunner().invoke(main, ["validate", what, *map(str, arguments)])


def test_words_first_then_errors_then_what_was_not_used():
    result = run("speedups", *SPEEDUPS)
    assert result.exit_code == 0, result.stderr
    parts = ("predicted from facts alone", "Errors by source", "Impossible rows", "Rows left out", "Assumed")
    places = [result.stdout.index(part) for part in parts]
    assert places == sorted(places)
    assert "asked: median abs error <= 10.0 %" in result.stdout


def test_every_prediction_can_be_written_beside_its_row(tmp_path):
    rows_file = tmp_path / "rows.csv"
    document = json.loads(run("speedups", *SPEEDUPS, "--rows", rows_file, "--format", "json").stdout)
    with rows_file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    used = [row for row in rows if not row["left_out"]]
    assert len(used) == document["rows_used"] + document["rows_impossible"]
    assert len(rows) - len(used) == document["rows_left_out"]
    for row in used:
        ratio = float(row["predicted_speedup"]) / float(row["measured_speedup"])
        assert float(row["error"]) == pytest.approx(ratio - 1, abs=1e-6)


def test_the_textbook_knows_no_floors():
    def error(*more):
        content = json.loads(run("speedups", *SPEEDUPS, "--format", "json", *more).stdout)
        return content["sources"][0]["median_abs_error"]

    assert error("--calibration", "textbook") > error()


def test_csv_has_a_row_a_source():
    rows = list(csv.DictReader(run("speedups", *SPEEDUPS, "--format", "csv").stdout.splitlines()))
    assert "specbundle2026" in [row["source"] for row in rows]


def test_acceptance_in_words_and_as_a_table(tmp_path):
    result = run("acceptance", *ACCEPTANCE)
    assert result.exit_code == 0, result.stderr
    assert "alpha r^(k-1) follows every curve within 3.0 %" in result.stdout
    assert "is of a tree" in result.stdout
    rows_file = tmp_path / "rows.csv"
    table = run("acceptance", *ACCEPTANCE, "--rows", rows_file, "--format", "csv").stdout
    assert {row["kind"] for row in csv.DictReader(table.splitlines())} == {"positions", "curve"}
    rows = list(csv.DictReader(rows_file.read_text(encoding="utf-8").splitlines()))
    assert sum(not row["left_out"] for row in rows) == 4
    for row in rows:
        assert (row["file"], bool(row["predicted"])) != ("", bool(row["left_out"]))
        assert int(row["line"]) > 1


@pytest.mark.parametrize("what", ["speedups", "acceptance"])
def test_bad_files_are_one_line(tmp_path, what):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    result = run(what, path)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert "lacks the column" in result.stderr
    assert run(what).exit_code == 2
