"""The example project works as it stands, and fails when its measurements are tampered with."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from rooflines.cli.check import check
from rooflines.validation.check_settings import CheckSettings, run_check


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


def test_the_figures_in_the_document_are_those_of_the_recorded_runs(root):
    folder = root / "docs" / "example-project" / "measurements"
    settings = CheckSettings(
        calibration=str(folder / "calibration.toml"), hardware=str(folder / "machine.toml")
    )
    cases = run_check(folder / "runs.json", settings).cases
    speedups = [case.measured.value for case in cases]
    errors = [
        [
            abs(math.expm1(layer.difference.value))
            for case in cases
            for layer in case.layers
            if layer.name == name
        ]
        for name in ("composition", "roofline")
    ]
    errors.append([abs(case.leviathan / case.measured.value - 1.0) for case in cases])
    composition, roofline, leviathan = ((np.median(one), max(one)) for one in errors)
    told = " ".join((root / "docs" / "check.md").read_text(encoding="utf-8").split())
    assert (
        f"eight cases, measured speedup {min(speedups):.2f} to {max(speedups):.2f}; composition off by "
        f"{100 * composition[0]:.1f} % in the median and {100 * composition[1]:.1f} % at most, roofline by "
        f"{100 * roofline[0]:.1f} % and {100 * roofline[1]:.1f} %, Leviathan's formula by "
        f"{100 * leviathan[0]:.0f} % and {100 * leviathan[1]:.0f} %."
    ) in told
