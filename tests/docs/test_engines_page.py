"""docs/engines.md: its links lead somewhere, and its commands run."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.measurement.readers.catalogue import reader


@pytest.fixture
def page(root):
    return (root / "docs" / "engines.md").read_text(encoding="utf-8")


@pytest.fixture
def commands(page):
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [
        shlex.split(line.removeprefix("$ rooflines ")) for line in joined.splitlines() if line.startswith("$")
    ]


def test_links_lead_to_files(root, page):
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page)
    assert links
    assert all((root / "docs" / link).exists() for link in links)


def test_kinds_that_are_shown_can_be_read(commands):
    kinds = [words[1] for words in commands if words[0] == "import"]
    assert len(kinds) == 3
    assert all(reader(kind).kind == kind for kind in kinds)


def test_the_plan_that_is_shown_prints_settings(commands):
    (plan,) = (words for words in commands if words[0] == "plan" and "--emit" in words)
    result = CliRunner().invoke(main, [*plan, "--calibration", "textbook"])
    assert result.exit_code == 0, result.stderr
    assert "--speculative-algorithm EAGLE3" in result.stdout


def test_the_plan_on_measured_steps_runs_where_its_files_are(root, commands, tmp_path, monkeypatch):
    printed = root / "tests" / "unit" / "measurement" / "samples" / "llama-bench.json"
    for name in ("f32.json", "q4.json"):
        shutil.copy(printed, tmp_path / name)
    shutil.copy(root / "docs" / "example-project" / "measurements" / "machine.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    (plan,) = (words for words in commands if words[0] == "plan" and "--steps" in words)
    result = CliRunner().invoke(main, plan)
    assert result.exit_code == 0, result.stderr
    assert "do not speculate" in result.stdout
    assert "last position only" in result.stderr
