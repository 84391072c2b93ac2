from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.output.tables import FORMATS, readable, render

COLUMNS = {
    "name": ["a|b", "c, d", 'e "f"'],
    "time_s": [1.23456789e-5, None, 123456.789],
    "count": [1, 20, 300],
    "fits": [True, False, None],
}


def test_csv_holds_every_digit_and_comes_back():
    rows = list(csv.DictReader(io.StringIO(render(COLUMNS, "csv"))))
    assert [row["name"] for row in rows] == COLUMNS["name"]
    assert [float(row["time_s"]) if row["time_s"] else None for row in rows] == COLUMNS["time_s"]
    assert [row["fits"] for row in rows] == ["True", "False", ""]


def test_json_is_a_list_of_objects_with_null_for_what_is_not_there():
    assert json.loads(render(COLUMNS, "json")) == [
        {"name": name, "time_s": time, "count": count, "fits": fits}
        for name, time, count, fits in zip(*COLUMNS.values(), strict=True)
    ]


def test_numpy_values_and_what_is_not_finite_are_written_as_json_takes_them():
    columns = {"x": [np.float64(1.5), np.int64(2), np.bool_(True), float("nan"), math.inf, -math.inf]}
    assert [row["x"] for row in json.loads(render(columns, "json"))] == [1.5, 2, True, None, None, None]
    assert render(columns, "csv").splitlines() == ["x", "1.5", "2", "True", '""', '""', '""']


def test_markdown_escapes_bars_and_aligns_numbers_right():
    lines = render(COLUMNS, "markdown", "Times").splitlines()
    assert lines[:2] == ["**Times**", ""]
    assert lines[2] == "| name | time_s | count | fits |"
    assert lines[3] == "|---|---:|---:|---|"
    assert lines[4] == "| a\\|b | 1.235e-05 | 1 | yes |"
    assert lines[5] == "| c, d |  | 20 | no |"


def test_text_aligns_columns_and_leaves_no_spaces_at_the_end():
    lines = render(COLUMNS, "text", "Times").splitlines()
    assert lines[0] == "Times"
    header, rule, *rows = lines[2:]
    assert header == "name      time_s  count  fits"
    assert rule == "-----  ---------  -----  ----"
    assert rows[0] == "a|b    1.235e-05      1  yes"
    assert all(line == line.rstrip() for line in lines)
    end = header.index("count") + len("count")
    assert all(row[end - 1].isdigit() for row in rows)


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_table_without_rows_is_still_a_table(fmt):
    written = render({"batch": [], "speedup": []}, fmt)
    assert json.loads(written) == [] if fmt == "json" else "batch" in written


@pytest.mark.parametrize("fmt", FORMATS)
def test_no_format_ends_in_a_newline(fmt):
    assert not render(COLUMNS, fmt).endswith("\n")


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="differ in length"):
        render({"a": [1], "b": [1, 2]}, "text")


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="'yaml'; known: text, markdown, csv, json"):
        render(COLUMNS, "yaml")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        (True, "yes"),
        (np.bool_(False), "no"),
        (0.0, "0"),
        (3.3616, "3.362"),
        (2.0, "2"),
        (1234.5678, "1,235"),
        (999_950.0, "1,000,000"),
        (2.5e6, "2.5e+06"),
        (0.00012345, "0.0001234"),
        (-0.25, "-0.25"),
        (12345, "12345"),
        ("words", "words"),
    ],
)
def test_values_as_people_read_them(value, text):
    assert readable(value) == text


def test_digits_are_chosen_by_the_caller():
    assert readable(math.pi, 2) == "3.1"
