from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflines.cli import main

RUNS = Path(__file__).parents[1] / "unit" / "validation" / "serving_runs.csv"


def run(*arguments):
    return CliRunner().invoke(main, ["validate", "serving", *map(str, arguments)])


def test_words_first_then_errors_by_source_then_what_was_left_out():
    result = run(RUNS)
    assert result.exit_code == 0, result.stderr
    places = [
        result.stdout.index(part) for part in ("10 rows:", "Median absolute errors", "Left out", "a rack")
    ]
    assert places == sorted(places)
    assert "right order" in result.stdout


def test_every_prediction_can_be_written_beside_its_row(tmp_path):
    rows_file = tmp_path / "rows.csv"
    document = json.loads(run(RUNS, "--rows", rows_file, "--format", "json").stdout)
    with rows_file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["left_out"] for row in rows[:10]] == [""] * document["rows"]
    assert float(rows[0]["measured_tpot_s"]) == pytest.approx(17.407e-3)
    errors = sorted(
        abs(float(row["predicted_tpot_s"]) / float(row["measured_tpot_s"]) - 1) for row in rows[:10]
    )
    assert document["overall"]["tpot_median_abs_error"] == pytest.approx((errors[4] + errors[5]) / 2)


def test_rows_that_were_left_out_are_written_with_the_reason(tmp_path):
    rows_file = tmp_path / "rows.csv"
    document = json.loads(run(RUNS, "--rows", rows_file, "--format", "json").stdout)
    with rows_file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {int(row["line"]) for row in rows} == set(range(2, len(rows) + 2))
    (left,) = document["left_out"]
    (row,) = [row for row in rows if row["left_out"]]
    assert (row["left_out"], row["model"], row["predicted_tpot_s"]) == (left["reason"], left["model"], "")


def test_the_textbook_is_the_plain_roofline():
    overall = json.loads(run(RUNS, "--calibration", "textbook", "--format", "json").stdout)["overall"]
    assert overall["tpot_median_abs_error"] == overall["plain_tpot_median_abs_error"] > 0.3


def test_how_often_intervals_hold_is_said_in_every_format(tmp_path):
    rows_file = tmp_path / "rows.csv"
    document = json.loads(run(RUNS, "--rows", rows_file, "--format", "json").stdout)
    with rows_file.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if not row["left_out"]]
    for name in ("tpot", "ttft"):
        inside = [
            float(row[f"{name}_low_s"]) <= float(row[f"measured_{name}_s"]) <= float(row[f"{name}_high_s"])
            for row in rows
        ]
        share = sum(inside) / len(inside)
        assert document["overall"][f"{name}_coverage"] == pytest.approx(share)
        assert document["verdicts"][0][f"{name}_coverage"] == pytest.approx(share)
    text = run(RUNS).stdout
    assert "Of 90 % intervals, 100% hold the time per token" in text
    assert "TPOT inside" in text


def test_without_intervals_none_is_said_to_hold():
    text = run(RUNS, "--calibration", "textbook").stdout
    assert "there are no intervals" in text
    assert "inside" not in text
    (row,) = csv.DictReader(run(RUNS, "--calibration", "textbook", "--format", "csv").stdout.splitlines())
    assert row["tpot_coverage"] == row["ttft_coverage"] == ""


def test_csv_has_a_row_a_source():
    rows = list(csv.DictReader(run(RUNS, "--format", "csv").stdout.splitlines()))
    assert [row["model"] for row in rows] == ["meta-llama/Llama-3.1-70B"]


def test_a_table_without_a_usable_row(tmp_path):
    path = tmp_path / "runs.csv"
    lines = RUNS.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[-1]]), encoding="utf-8")
    for fmt in ("text", "json"):
        result = run(path, "--format", fmt)
        assert (result.exit_code, result.stdout) == (3, "")  # cannot tell, as of the other tables
        (line,) = result.stderr.splitlines()
        assert line.startswith("rooflines: no row can be predicted: ")
        assert "a rack" in line


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n"])
def test_a_bad_table_is_one_line(tmp_path, text):
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    result = run(path)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rooflines: table")
