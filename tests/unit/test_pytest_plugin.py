"""The plugin's own rules; what it does in a project is held by tests/docs/test_example_project.py."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_the_marker_is_known_wherever_the_package_is_installed(pytestconfig):
    told = [line for line in pytestconfig.getini("markers") if line.startswith("rooflines(")]
    assert len(told) == 1
    assert "rooflines check" in told[0]


def test_loading_it_costs_no_other_test_run_anything():
    """Every pytest run of every project with the package loads the plugin: nothing heavy may come along."""
    code = "import sys, rooflines.pytest_plugin; print([m for m in ('numpy', 'pydantic', 'click') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "body", ["def test_it(rooflines_report): pass", "@pytest.mark.rooflines()\ndef test_it(): pass"]
)
def test_a_report_without_a_file_is_a_mistake_that_is_told(tmp_path, body):
    (tmp_path / "test_it.py").write_text(f"import pytest\n{body}\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter
    assert done.returncode == 1
    assert 'mark it @pytest.mark.rooflines("runs.json")' in done.stdout
