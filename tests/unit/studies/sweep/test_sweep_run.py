"""A sweep: rows equal a plan's, whatever stopped it nothing is lost or written twice."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest

from rooflines.errors import FileFormatError, InputError, UnitError, UnknownNameError
from rooflines.studies.plan import PlanQuestion, make_plan
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.parts import plan_parts
from rooflines.studies.sweep.run import run_sweep
from rooflines.studies.sweep.store import MANIFEST, part_file, read_manifest

pq = pytest.importorskip("pyarrow.parquet", reason="sweeps need pyarrow (extra [scale])")

POINT = [
    "hardware",
    "target",
    "drafter",
    "tensor_parallel",
    "weight_dtype",
    "batch",
    "context",
    "draft_length",
]


def grid_of(small, **changes):
    return SweepGrid.read({**small, **changes}, "grid")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small):
    """A sweep that no test may touch."""
    folder = tmp_path_factory.mktemp("sweep") / "swept"
    run_sweep(grid_of(small), folder)
    return folder


@pytest.fixture
def swept(finished, tmp_path):
    """A finished sweep to be damaged."""
    return shutil.copytree(finished, tmp_path / "swept")


def rows_of(folder):
    return pd.read_parquet(folder)


def test_each_point_is_one_row(swept):
    rows = rows_of(swept)
    assert len(rows) == sum(read_manifest(swept).rows)
    assert not rows.duplicated([*POINT, "acceptance_given"]).any()
    # h100 with both formats and a100 without fp8; batches x contexts x (lengths x rates, once for each drafter)
    assert len(rows) == 3 * 2 * 2 * (4 * 2 + 2 * 2)


def test_an_engine_adds_its_host_time_as_in_a_plan(small, tmp_path):
    grid = grid_of(
        small,
        hardware="h100-sxm5-80gb",
        drafter="independent:llama-3.2-1b",
        acceptance=0.8,
        cycle_overhead="vllm",
        columns=["speedup", "time_per_token_s"],
        tensor_parallel=1,
        weight_dtype="checkpoint",
        context=0,
    )
    run_sweep(grid, tmp_path / "swept")
    question = PlanQuestion(
        hardware="h100-sxm5-80gb",
        target="llama-3.1-8b",
        drafters=("independent:llama-3.2-1b",),
        acceptance="0.8",
        draft_lengths=(0, 1, 2, 3),
        batches=(1, 64),
        context=0,
        cycle_overhead="vllm",
    )
    rows = rows_of(tmp_path / "swept").set_index(["batch", "draft_length"])
    for row in make_plan(question).rows:
        found = rows.loc[(row["batch"], row["draft_length"])]
        assert found["speedup"] == pytest.approx(row["speedup"], rel=1e-12)
        assert 1 / found["time_per_token_s"] == pytest.approx(row["tokens_per_s_per_sequence"], rel=1e-12)


@pytest.mark.parametrize("weight_dtype", [None, "fp8"])
def test_rows_are_those_of_a_plan(swept, weight_dtype):
    question = PlanQuestion(
        hardware="h100-sxm5-80gb",
        target="llama-3.1-8b",
        drafters=("independent:llama-3.2-1b",),
        acceptance="0.8",
        draft_lengths=(0, 1, 2, 3),
        batches=(1, 64),
        context=30_000,
        weight_dtype=weight_dtype,
    )
    rows = rows_of(swept)
    chosen = rows[
        (rows.hardware == "h100-sxm5-80gb")
        & (rows.drafter == "independent:llama-3.2-1b")
        & (rows.weight_dtype == (weight_dtype or "checkpoint"))
        & (rows.context == 30_000)
        & (rows.acceptance == 0.8)
    ].set_index(["batch", "draft_length"])
    planned = make_plan(question).rows
    assert len(chosen) == len(planned) == 8
    assert {row["speedup"] is None for row in planned} == {True, False}
    for row in planned:
        found = chosen.loc[(row["batch"], row["draft_length"])]
        assert found["fits"] == (row["speedup"] is not None)
        for name in (
            "tokens_per_cycle",
            "target_step_s",
            "draft_s",
            "verify_s",
            "cycle_cost",
            "speedup",
            "speedup_low",
            "speedup_high",
            "verify_bound",
            "tokens_per_s",
        ):
            if row[name] is None:
                assert pd.isna(found[name])
            elif name == "verify_bound":
                assert found[name] == row[name]
            else:
                assert found[name] == pytest.approx(row[name], rel=1e-12), name


def test_without_constants_no_interval_is_known(small, tmp_path):
    columns = ["speedup", "speedup_low", "time_per_token_high_s", "verify_bound"]
    run_sweep(grid_of(small, calibration="textbook", columns=columns), tmp_path / "swept")
    rows = rows_of(tmp_path / "swept")
    assert pq.read_table(tmp_path / "swept")["speedup_low"].null_count == len(rows)
    assert rows.time_per_token_high_s.isna().all()
    assert rows.speedup.notna().any()
    np.testing.assert_array_equal(rows.verify_bound.isna(), rows.speedup.isna())


def test_other_acceptances_keep_their_text(swept):
    rows = rows_of(swept)
    written = rows[rows.acceptance_given == "conditional:0.7,0.6,0.5"]
    assert len(written) == 3 * 4 * 2
    assert written.acceptance.isna().all()
    assert sorted(written.tokens_per_cycle.unique()) == pytest.approx([1.0, 1 + 0.7 + 0.42 + 0.21])


def test_what_cannot_be_is_told_with_its_reason(small, tmp_path):
    outcome = run_sweep(grid_of(small), tmp_path / "swept")
    reasons = {row["reason"].partition(":")[0]: row["combinations"] for row in outcome.refused_by_reason()}
    assert reasons == {
        "tensor parallelism 3 does not divide 32 query heads": 2 * 2 * 3,
        "a100-sxm4-80gb states no dense fp8 peak; choose one that is stated": 3,
    }
    assert outcome.rows == outcome.rows_priced == 144


def test_columns_are_those_asked_for_and_times_of_what_does_not_fit_are_null(small, tmp_path):
    run_sweep(grid_of(small, columns=["speedup", "tokens_per_cycle"]), tmp_path / "swept")
    run_sweep(grid_of(small), tmp_path / "whole")
    few, whole = rows_of(tmp_path / "swept"), rows_of(tmp_path / "whole")
    assert [*few.columns[-2:]] == ["speedup", "tokens_per_cycle"]
    assert "fits" not in few.columns
    np.testing.assert_array_equal(few.speedup.isna(), ~whole.fits)
    assert few.tokens_per_cycle.notna().all()


@pytest.mark.parametrize("rows_per_part", [1, 7, 10_000])
def test_the_cut_changes_nothing(small, swept, tmp_path, rows_per_part):
    run_sweep(grid_of(small, rows_per_part=rows_per_part), tmp_path / "other")
    keys = [*POINT, "acceptance_given"]
    one, other = (
        rows_of(folder)
        .astype(
            dict.fromkeys(
                ["hardware", "target", "drafter", "weight_dtype", "kv_dtype", "acceptance_given"], str
            )
        )
        .sort_values(keys, ignore_index=True)
        for folder in (swept, tmp_path / "other")
    )
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)


def stamps(folder):
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in folder.glob("part-*")}


def test_a_finished_sweep_writes_nothing_again(small, swept):
    before = stamps(swept)
    outcome = run_sweep(grid_of(small), swept)
    assert outcome.rows_priced == 0
    assert stamps(swept) == before


def test_a_sweep_that_was_stopped_goes_on_with_what_is_missing(small, tmp_path, monkeypatch):
    """Stopped in the middle of a file, as Ctrl-C or a kill does."""
    folder, write = tmp_path / "swept", pq.write_table
    written = []

    def stopped(table, where, **options):
        if len(written) == 4:
            where.write_bytes(b"PAR1 half of it")
            raise KeyboardInterrupt
        written.append(where)
        write(table, where, **options)

    monkeypatch.setattr(pq, "write_table", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(grid_of(small), folder)
    monkeypatch.setattr(pq, "write_table", write)
    before = stamps(folder)
    assert len(before) == 4
    rows_of(folder)  # who reads now sees whole parts
    told = []
    outcome = run_sweep(grid_of(small), folder, told=lambda *counts: told.append(counts))
    assert outcome.rows_priced == 144 - sum(read_manifest(folder).rows[:4])
    assert told[0] == (0, outcome.rows_priced)
    assert told[-1] == (outcome.rows_priced, outcome.rows_priced)
    after = stamps(folder)
    assert {name: after[name] for name in before} == before
    assert len(rows_of(folder)) == 144


@pytest.mark.parametrize("damage", ["cut short", "empty", "of another sweep", "left over"])
def test_what_is_not_whole_is_priced_again(small, swept, tmp_path, damage):
    good = rows_of(swept)
    path = swept / part_file(3)
    if damage == "cut short":
        path.write_bytes(path.read_bytes()[:-40])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "of another sweep":
        run_sweep(grid_of(small, memory_reserve=0.2), tmp_path / "other")
        path.write_bytes((tmp_path / "other" / part_file(3)).read_bytes())
    else:
        path.rename(swept / f".{path.name}.123-abc")
    outcome = run_sweep(grid_of(small), swept)
    assert outcome.rows_priced == read_manifest(swept).rows[3]
    assert not list(swept.glob(".part-*"))
    pd.testing.assert_frame_equal(rows_of(swept), good)


def test_a_folder_of_something_else_is_left_alone(small, swept, tmp_path):
    with pytest.raises(InputError, match="holds the sweep of another grid"):
        run_sweep(grid_of(small, batch=[1]), swept)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"other files \(thesis.tex"):
        run_sweep(grid_of(small), tmp_path / "papers")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="cannot use the folder"):
        run_sweep(grid_of(small), tmp_path / "file")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"schema_version": 1}', '{"schema_version": 1, "fingerprint": "x", "rows": [null]}'],
)
def test_a_manifest_that_is_none_is_named(small, swept, text):
    (swept / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"_sweep.json is no manifest"):
        run_sweep(grid_of(small), swept)


def test_a_manifest_of_the_future_is_not_guessed_at(swept):
    data = json.loads((swept / MANIFEST).read_text(encoding="utf-8"))
    (swept / MANIFEST).write_text(json.dumps({**data, "schema_version": 9}), encoding="utf-8")
    with pytest.raises(FileFormatError, match="format 9, and 1 is known"):
        read_manifest(swept)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"hardware": ["h100-sxm5-80gb", "h1000"]}, UnknownNameError),
        ({"target": ["lama"]}, UnknownNameError),
        ({"weight_dtype": ["fp9"]}, UnknownNameError),
        ({"drafter": ["eagel3"], "acceptance": 0.5}, InputError),
        ({"overhead": "3"}, UnitError),
        ({"cycle_overhead": "lightllm"}, InputError),
    ],
)
def test_a_slip_of_the_keyboard_ends_a_sweep_before_it_starts(small, tmp_path, changes, error):
    with pytest.raises(error):
        run_sweep(grid_of(small, **changes), tmp_path / "swept")
    assert not (tmp_path / "swept").exists()


def test_a_grid_without_any_possible_combination_is_refused(small):
    with pytest.raises(InputError, match=r"no combination of this grid is possible.*does not divide"):
        plan_parts(grid_of(small, tensor_parallel=[3]))


def test_workers_are_counted(small, tmp_path):
    with pytest.raises(InputError, match="workers are 0"):
        run_sweep(grid_of(small), tmp_path / "swept", workers=0)


def test_a_folder_that_cannot_be_written_is_one_line(small, swept, monkeypatch):
    (swept / part_file(0)).unlink()

    def full(*_args, **_options):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(InputError, match=r"cannot write .*part-000000\.parquet: No space left"):
        run_sweep(grid_of(small), swept)
