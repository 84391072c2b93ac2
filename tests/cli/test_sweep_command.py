"""`rooflines sweep`: a grid, what is best in it, and its page."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from rooflines.cli import main

pytest.importorskip("pyarrow", reason="sweeps need pyarrow (extra [scale])")

GRID = """
hardware = ["h100-sxm5-80gb"]
target = ["llama-3.1-8b"]
drafter = ["ngram"]
tensor_parallel = [1, 3]
batch = [1, 64]
context = [0, 40000]
draft_length = [0, 4]
acceptance = [0.2, 0.8]
"""


def run(*arguments):
    return CliRunner().invoke(main, ["sweep", *map(str, arguments)])


@pytest.fixture
def grid_file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID, encoding="utf-8")
    return path


@pytest.fixture
def swept(grid_file, tmp_path):
    result = run(grid_file, "--output", tmp_path / "rows")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "rows"


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    return line


def test_a_grid_is_priced_and_then_there(grid_file, tmp_path):
    first = run(grid_file, "--output", tmp_path / "rows")
    assert "16 rows in 1 parts" in first.stdout
    assert "16 priced now at" in first.stdout
    assert "tensor parallelism 3 does not divide 32 query heads" in first.stdout
    assert first.stderr == ""
    again = run("run", grid_file, "--output", tmp_path / "rows")
    assert "0 priced now, 16 were there." in again.stdout


def test_documents_follow_their_schemas(grid_file, swept, validator_of):
    done = json.loads(run(grid_file, "--output", swept, "--format", "json").stdout)
    validator_of("sweep").validate(done)
    assert done["rows"] == 16
    assert done["refused"][0]["tensor_parallel"] == 3
    best = json.loads(run("best", swept, "--by", "batch,context", "--format", "json").stdout)
    validator_of("sweep-best").validate(best)
    assert [(row["batch"], row["context"]) for row in best["rows"]] == [(1, 0), (1, 40_000), (64, 0)]
    assert {row["acceptance"] for row in best["rows"]} == {0.8}
    for name, document in (("sweep", done), ("sweep-best", best)):
        strange = {**document, "more": 1}
        assert not validator_of(name).is_valid(strange)


@pytest.mark.parametrize("fmt", ["text", "markdown", "csv"])
def test_best_in_other_formats(swept, tmp_path, fmt):
    output = tmp_path / "best.txt"
    result = run("best", swept, "--by", "context", "--where", "batch=64", "--format", fmt, "--output", output)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    text = output.read_text(encoding="utf-8")
    assert "speedup" in text
    # One row, so that nothing is left out for being the same in all.
    assert "llama-3.1-8b" in text


def test_people_are_spared_columns_that_never_change(swept):
    text = run("best", swept, "--by", "batch").stdout
    assert "tensor_parallel" not in text
    assert "tensor_parallel" in run("best", swept, "--by", "batch", "--format", "csv").stdout


def test_mistakes_are_one_line(grid_file, swept, tmp_path):
    assert "cannot be read" in refused(tmp_path / "none.toml", "--output", tmp_path / "new")
    assert "Missing option '--output'" in refused(grid_file)
    assert "give one of the two" in refused(grid_file, "--output", swept, "--dask", "x:1", "--workers", "2")
    assert "did you mean 'batch'" in refused("best", swept, "--by", "btach")
    assert "holds no sweep" in refused("best", tmp_path)


def test_an_unfinished_sweep_is_answered_with_a_warning(swept):
    (swept / "part-000000.parquet").unlink()
    assert "--partial" in refused("best", swept)
    result = run("best", swept, "--partial", "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == "rooflines: warning: 0 of 1 parts were there\n"


def test_help_names_both_commands():
    text = run("--help").stdout
    assert re.search(r"run +Price a grid", text)
    assert re.search(r"best +The best row", text)


def test_python_of_the_page_runs(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(block, "sweeps.md", "exec"), {})  # noqa: S102 - our own document
    assert "4 rows in 1 parts of" in capsys.readouterr().out


def test_the_grid_of_the_page_is_possible(root):
    import tomllib

    from rooflines.studies.sweep.grid import SweepGrid
    from rooflines.studies.sweep.parts import plan_parts

    page = (root / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    parts, refused_cases = plan_parts(SweepGrid.read(tomllib.loads(block), "page"))
    assert sum(part.rows for part in parts) > 100_000
    assert not refused_cases
