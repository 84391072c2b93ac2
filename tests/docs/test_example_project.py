"""The example project works as it stands, and fails when its measurements are tampered with."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from rooflines.cli.check import check


@pytest.fixture
def project(root, tmp_path):
    return shutil.copytree(root / "docs" / "example-project", tmp_path / "project")


def run_tests(project):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(project),
    ]
    return subprocess.run(  # noqa: S603 - our own interpreter on our own files
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def tampered(project, change):
    file = project / "measurements" / "runs.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    for run in content["runs"]:
        change(run)
    file.write_text(json.dumps(content), encoding="utf-8")


def test_its_tests_pass(project):
    result = run_tests(project)
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout


def test_they_fail_and_name_the_part_when_verifying_costs_twice_as_much(project):
    def twice(run):
        for cycle in run["cycles"]:
            cycle["verify_s"] *= 2.0

    tampered(project, twice)
    result = run_tests(project)
    assert result.returncode == 1
    assert "3 failed" in result.stdout
    assert "At fault: the verify pass" in result.stdout


def test_noise_skips_them(project):
    def short(run):
        run["cycles"], emitted = run["cycles"][:2], sum(one["emitted"] for one in run["cycles"][:2])
        run["plain_s"], run["plain_wall_s"] = run["plain_s"][:emitted], run["plain_wall_s"][:emitted]
        run["samples"] = run["samples"][:4]

    tampered(project, short)
    result = run_tests(project)
    assert result.returncode == 0, result.stdout
    assert "3 skipped" in result.stdout
    assert "CANNOT TELL" in result.stdout


def test_a_mistake_in_its_settings_is_told(project):
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text(encoding="utf-8").replace('"15%"', '"a lot"'), encoding="utf-8")
    result = run_tests(project)
    assert result.returncode == 1
    assert "tolerance 'a lot' is no number" in result.stdout


def test_the_action_and_the_workflow_use_options_that_exist(root):
    known = {name for option in check.params for name in option.opts}
    action = (root / "docs" / "github-action" / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"(--[a-z-]+)", action))
    assert {
        "--annotations",
        "--junit",
        "--markdown",
        "--tolerance",
        "--calibration",
        "--hardware",
        "--baseline",
    } == used
    assert used <= known
    workflow = (root / "docs/example-project/.github/workflows/speedup.yml").read_text(encoding="utf-8")
    given = set(re.findall(r"^ {10}([a-z]+):", workflow, re.MULTILINE)) - {"path", "name"}
    inputs = set(re.findall(r"^  ([a-z]+):$", action.partition("outputs:")[0], re.MULTILINE))
    assert {"file", "calibration", "hardware"} <= given & inputs
