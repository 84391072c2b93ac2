from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rooflines.rows import as_columns, as_records, as_rows, plain

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_columns_and_rows_are_each_others_inverse():
    assert as_columns(ROWS) == {"a": [1, 2], "b": ["x", "y"]}
    assert as_rows(as_columns(ROWS)) == ROWS


def test_a_key_that_a_row_lacks_is_an_empty_cell():
    assert as_columns([{"a": 1}, {"b": 2}]) == {"a": [1, None], "b": [None, 2]}


def test_no_rows_have_no_columns():
    assert as_columns(iter(())) == {}
    assert as_rows({}) == []


def test_columns_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="shorter"):
        as_rows({"a": [1, 2], "b": [1]})


def test_records_are_what_json_takes():
    columns = {"share": [np.float64(0.5), math.nan, math.inf], "count": [np.int64(3), 4, None]}
    records = as_records(columns)
    assert json.loads(json.dumps(records, allow_nan=False)) == [
        {"share": 0.5, "count": 3},
        {"share": None, "count": 4},
        {"share": None, "count": None},
    ]


def test_words_and_arrays_stay_as_they_are():
    array = np.arange(3)
    assert plain("x") == "x"
    assert plain(array) is array
