"""Published speedups as people see them: the figure, the words, the table of host times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rooflines.engines.host import HOST_TIMES
from rooflines.errors import InputError
from rooflines.output.figures.published import speedups_figure
from rooflines.output.figures.style import figure_style
from rooflines.output.published_report import _hosts, _targets
from rooflines.output.published_tables import impossible_columns, percent, speedups_words
from rooflines.studies.serve import make_machine
from rooflines.validation.published.judge import EVERY_SOURCE, validate_speedups
from rooflines.validation.published.sources import PRODUCTION

TABLE = Path(__file__).parents[1] / "validation" / "published" / "speedups.csv"


@pytest.fixture(scope="module")
def found():
    return validate_speedups([TABLE], make_machine)


def test_the_figure_has_a_point_a_possible_row_and_a_diagonal(found):
    rows = [one for one in found.predicted if one.claim.known.tier == PRODUCTION]
    possible = [one for one in rows if not one.claim.impossible]
    assert len(possible) < len(rows)
    with figure_style():
        (axis,) = speedups_figure(rows, "Production engine").axes
    diagonal, *sources = axis.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    points = [point for line in sources for point in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    assert sorted(points) == sorted((one.speedup, one.claim.speedup) for one in possible)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("predicted speedup", "measured speedup")
    assert axis.get_xlim() == axis.get_ylim()


def test_nothing_to_draw(found):
    impossible = [one for one in found.predicted if one.claim.impossible]
    with pytest.raises(InputError, match="nothing to draw"):
        speedups_figure(impossible, "x")


def test_words_say_how_many_how_wrong_and_what_was_asked(found):
    words = speedups_words(found)
    assert words.startswith(f"{len(found.predicted) - 1} rows of 1 file(s)")
    assert "1 impossible" in words
    assert f"median error {percent(found.verdicts[0].median_abs_error)}" in words
    assert "rank correlation >= 0.9" in words


def test_targets_that_are_missed_are_said_to_be(found):
    columns = _targets(found)
    assert set(columns["tier"]) == {PRODUCTION, "field report"}
    wrong = [
        replace(one, median_abs_error=0.5) if one.source == EVERY_SOURCE else one for one in found.verdicts
    ]
    missed = _targets(replace(found, verdicts=tuple(wrong)))
    met = {
        (tier, what): ok for tier, what, ok in zip(missed["tier"], missed["what"], missed["met"], strict=True)
    }
    assert met[PRODUCTION, "median abs error"] is False
    assert met["field report", "median abs error"] is False


def test_every_host_time_is_listed_with_its_source():
    columns = _hosts()
    assert columns["source"] == [one.source for one in HOST_TIMES]
    assert columns["cycle (ms)"][0] == pytest.approx(1.207)


def test_impossible_rows_are_named(found):
    columns = impossible_columns(found)
    assert columns["source"] == ["specdecodebench2026"]
    assert columns["speedup"][0] > columns["tokens per cycle"][0]


def test_shares():
    assert [percent(0.1234), percent(float("nan"))] == ["12.3 %", "-"]
