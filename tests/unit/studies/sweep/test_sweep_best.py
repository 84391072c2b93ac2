"""The best rows of a sweep are those that a look at all rows finds."""

from __future__ import annotations

import pandas as pd
import pytest

from rooflines.errors import FileFormatError, InputError, UnknownNameError
from rooflines.studies.sweep.best import best_rows
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.run import run_sweep
from rooflines.studies.sweep.store import part_file

pytest.importorskip("pyarrow", reason="sweeps need pyarrow (extra [scale])")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A finished sweep of many small parts, so that groups go across them."""
    folder = tmp_path_factory.mktemp("sweep") / "swept"
    grid = {
        "hardware": ["h100-sxm5-80gb", "a100-sxm4-80gb"],
        "target": ["llama-3.1-8b"],
        "drafter": ["independent:llama-3.2-1b", "ngram"],
        "batch": [1, 16, 64, 4096],
        "context": [0, 30_000],
        "draft_length": {"first": 0, "last": 4, "step": 1},
        "acceptance": [0.2, 0.8],
        "rows_per_part": 7,
    }
    run_sweep(SweepGrid.read(grid, "grid"), folder)
    return folder


@pytest.mark.parametrize(
    ("by", "goal"),
    [
        ((), "speedup"),
        (("batch",), "speedup"),
        (("hardware", "batch"), "speedup"),
        (("hardware", "drafter", "context"), "time_per_token_s"),
        (("acceptance",), "tokens_per_s"),
    ],
)
def test_the_best_of_each_group(swept, by, goal):
    rows = pd.read_parquet(swept)
    for name in rows.select_dtypes("category"):
        rows[name] = rows[name].astype(str)
    rows = rows[rows[goal].notna()]
    sign = -1 if goal.endswith("token_s") else 1
    groups = [rows] if not by else [group for _, group in rows.groupby(list(by))]
    expected = [(sign * (sign * group[goal]).max()) for group in groups]
    answer = best_rows(swept, by, goal=goal)
    assert [row[goal] for row in answer.rows] == expected
    keys = [tuple(row[name] for name in by) for row in answer.rows]
    assert keys == sorted(set(keys))
    for row in answer.rows:  # each is a row of the sweep, whole
        alike = rows
        for name in ("hardware", "drafter", "batch", "context", "draft_length", "acceptance"):
            alike = alike[alike[name] == row[name]]
        (same,) = alike.to_dict("records")
        assert same == row


def test_conditions_leave_rows_out(swept):
    answer = best_rows(
        swept, ("hardware",), where=("batch<=16", "drafter=ngram", "context != 0", "acceptance>0.5")
    )
    assert {row["drafter"] for row in answer.rows} == {"ngram"}
    assert all(
        row["batch"] <= 16 and row["context"] == 30_000 and row["acceptance"] == 0.8 for row in answer.rows
    )
    assert len(answer.rows) == 2


def test_conditions_on_what_binds_the_verify_pass(swept):
    answer = best_rows(
        swept, ("batch",), goal="speedup_low", where=("verify_bound=memory", "extrapolated=false")
    )
    assert answer.rows
    assert {row["verify_bound"] for row in answer.rows} == {"memory"}
    assert all(row["speedup_low"] <= row["speedup"] <= row["speedup_high"] for row in answer.rows)


def test_what_does_not_fit_is_never_best(swept):
    assert best_rows(swept, ("batch",), where=("fits=false",)).rows == []
    assert 4096 not in [row["batch"] for row in best_rows(swept, ("batch",), where=("context=30000",)).rows]


def test_equal_rows_go_to_the_shorter_draft(swept):
    answer = best_rows(swept, ("hardware",), goal="target_step_s", where=("batch=1", "context=0"))
    assert {row["draft_length"] for row in answer.rows} == {0}


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"by": ("batches",)}, UnknownNameError, "did you mean 'batch'"),
        ({"by": (), "goal": "speed"}, UnknownNameError, "did you mean 'speedup'"),
        ({"by": (), "goal": "drafter"}, InputError, "no number that was computed"),
        ({"by": (), "where": ("batch",)}, InputError, "write batch<=64"),
        ({"by": (), "where": ("batch<=many",)}, InputError, "'many' is none"),
        ({"by": (), "where": ("drafter<ngram",)}, InputError, "compared with = or !="),
        ({"by": (), "where": ("fits=maybe",)}, InputError, "fits=true"),
        ({"by": (), "where": ("extrapolated=1",)}, InputError, "extrapolated=true"),
        ({"by": (), "where": ("verify_bound<memory",)}, InputError, "compared with = or !="),
        ({"by": (), "goal": "verify_bound"}, InputError, "no number that was computed"),
        ({"by": (), "where": ("nothing=1",)}, UnknownNameError, "this sweep has"),
    ],
)
def test_mistakes(swept, arguments, error, said):
    with pytest.raises(error, match=said):
        best_rows(swept, **arguments)


def test_a_folder_without_a_sweep(tmp_path):
    with pytest.raises(FileFormatError, match="holds no sweep"):
        best_rows(tmp_path, ())


def test_a_sweep_that_is_not_finished_is_answered_only_when_told_so(tmp_path, small):
    grid = SweepGrid.read(dict(small), "grid")
    run_sweep(grid, tmp_path / "swept")
    (tmp_path / "swept" / part_file(2)).unlink()
    with pytest.raises(InputError, match=r"of \d+ parts: run its sweep again"):
        best_rows(tmp_path / "swept", ("batch",))
    answer = best_rows(tmp_path / "swept", ("batch",), partial=True)
    assert answer.parts_read == answer.parts - 1
    assert answer.rows
