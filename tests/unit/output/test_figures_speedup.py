from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.output.figures.speedup import draw_speedup_by_batch, draw_speedup_by_length
from rooflines.output.figures.style import figure_style, new_figure


def _row(batch, draft_length, speedup, drafter="one"):
    free = None if speedup is None else speedup + 0.1
    return {
        "drafter": drafter,
        "batch": batch,
        "draft_length": draft_length,
        "speedup": speedup,
        "leviathan_speedup": free,
    }


ROWS = [_row(1, 1, 1.6), _row(1, 2, 2.1), _row(1, 3, 1.9), _row(8, 1, 1.4), _row(8, 2, 1.2), _row(8, 3, 0.8)]


def _drawn(draw, *arguments):
    with figure_style():
        _, (axis,) = new_figure(5, 4)
        draw(axis, *arguments)
    return axis


def test_the_best_draft_length_of_each_batch_is_numbered():
    axis = _drawn(draw_speedup_by_length, ROWS)
    assert {text.get_text(): text.xy for text in axis.texts} == {"2.10x": (2, 2.1), "1.40x": (1, 1.4)}


def test_each_batch_has_a_line_through_its_rows():
    lines = {line.get_label(): line for line in _drawn(draw_speedup_by_length, ROWS).lines}
    assert lines["batch 8"].get_xdata().tolist() == [1, 2, 3]
    assert lines["batch 8"].get_ydata().tolist() == [1.4, 1.2, 0.8]


def test_what_does_not_fit_gets_no_line():
    labels = [line.get_label() for line in _drawn(draw_speedup_by_length, [*ROWS, _row(64, 1, None)]).lines]
    assert "batch 8" in labels
    assert "batch 64" not in labels


def test_nothing_that_fits_is_refused():
    with pytest.raises(InputError, match="fits in memory"):
        _drawn(draw_speedup_by_length, [_row(1, 1, None)])


def test_against_batch_the_best_length_counts():
    (line,) = [one for one in _drawn(draw_speedup_by_batch, ROWS, None).lines if one.get_label() == "one"]
    assert line.get_xdata().tolist() == [1, 8]
    assert line.get_ydata().tolist() == [2.1, 1.4]


def test_the_crossover_is_marked_where_it_lies_and_only_there():
    axis = _drawn(draw_speedup_by_batch, ROWS, 5)
    assert [text.get_text().strip() for text in axis.texts] == ["stops paying at 5"]
    assert any(list(line.get_xdata()) == [5, 5] for line in axis.lines)
    assert not _drawn(draw_speedup_by_batch, ROWS, None).texts


def test_drafters_differ_in_dashes_as_well_as_in_colour():
    rows = [*ROWS, *(_row(batch, 1, 1.1, "two") for batch in (1, 8))]
    lines = {line.get_label(): line for line in _drawn(draw_speedup_by_batch, rows, None).lines}
    assert lines["one"].get_linestyle() != lines["two"].get_linestyle()
    assert lines["one"].get_color() != lines["two"].get_color()
