"""A pytest plugin: measured speedups of speculative decoding as tests.

It comes with the package. Mark a test with the file of runs to be judged; the test fails where prediction and
measurement part, naming the part at fault, and is skipped where noise allows no verdict. The fixture
``rooflines_report`` has the numbers; ``rooflines_check`` judges any file. Settings are those of
``[tool.rooflines.check]`` in the project's pyproject.toml; what a marker says comes first.

    @pytest.mark.rooflines("measurements/runs.json", tolerance="10%")
    def test_speculation_pays(rooflines_report):
        assert all(case.measured.low > 1.1 for case in rooflines_report.cases)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pytest

if TYPE_CHECKING:
    from rooflines.validation.check import CheckReport

MARKER: Final = "rooflines"
_FIXTURE: Final = "rooflines_report"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(file, tolerance=, calibration=, hardware=, baseline=): judge measured speculation "
        "(rooflines check); paths are relative to pytest's root directory",
    )


@pytest.fixture
def rooflines_check(request: pytest.FixtureRequest) -> Callable[..., CheckReport]:
    """Judge a file: ``rooflines_check(file, tolerance="10%")`` fails or skips the test by the verdict."""
    return lambda file, **settings: _judge(_report(request.config.rootpath, file, settings))


@pytest.fixture
def rooflines_report(request: pytest.FixtureRequest) -> CheckReport:
    """The report on the file that the test's marker names; where it disagrees, the test fails."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or len(marker.args) != 1:
        raise pytest.UsageError(
            f'{request.node.nodeid} uses {_FIXTURE}: mark it @pytest.mark.{MARKER}("runs.json")'
        )
    return _report(request.config.rootpath, marker.args[0], marker.kwargs)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Judge a marked test before it runs: as its failure, not as an error of a fixture."""
    if isinstance(item, pytest.Function) and item.get_closest_marker(MARKER) and _FIXTURE in item.funcargs:
        _judge(cast("CheckReport", item.funcargs[_FIXTURE]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A marked test is judged whether or not it asks for the numbers."""
    for item in items:
        if not isinstance(item, pytest.Function) or item.get_closest_marker(MARKER) is None:
            continue
        if _FIXTURE not in item.fixturenames:
            item.fixturenames.append(_FIXTURE)


def _report(root: Path, file: str | Path, given: dict[str, str]) -> CheckReport:
    """The report on a file; a mistake in what it is told ends the test in one line."""
    from rooflines.errors import RooflinesError
    from rooflines.validation.check_settings import read_settings, run_check, settings_of

    try:
        return run_check(root / file, settings_of(given, root).over(read_settings(root)))
    except RooflinesError as error:
        raise pytest.UsageError(str(error)) from None


def _judge(report: CheckReport) -> CheckReport:
    """The report, unless its verdict ends the test."""
    from rooflines.output.check_report import check_text

    if report.verdict == "disagree":
        pytest.fail(check_text(report), pytrace=False)
    if report.verdict == "cannot tell":
        pytest.skip(check_text(report).splitlines()[0])
    return report
