from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.output.figures.speedup import (
    draw_speedup_by_batch,
    draw_speedup_by_length,
    speedup_figure,
    spread,
)
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
    (line,) = [one for one in _drawn(draw_speedup_by_batch, ROWS, {}).lines if one.get_label() == "one"]
    assert line.get_xdata().tolist() == [1, 8]
    assert line.get_ydata().tolist() == [2.1, 1.4]


def test_each_end_is_marked_where_it_lies_and_only_there():
    rows = [*ROWS, *(_row(batch, 1, 1.1, "two") for batch in (1, 8))]
    axis = _drawn(draw_speedup_by_batch, rows, {"one": 5, "two": None})
    assert [text.get_text().strip() for text in axis.texts] == ["stops paying at 5"]
    (line,) = [line for line in axis.lines if line.get_label() == "one"]
    (mark,) = [line for line in axis.lines if list(line.get_xdata()) == [5, 5]]
    assert mark.get_color() == line.get_color()
    assert not _drawn(draw_speedup_by_batch, ROWS, {"one": None}).texts


def test_drafters_differ_in_dashes_as_well_as_in_colour():
    rows = [*ROWS, *(_row(batch, 1, 1.1, "two") for batch in (1, 8))]
    lines = {line.get_label(): line for line in _drawn(draw_speedup_by_batch, rows, {}).lines}
    assert lines["one"].get_linestyle() != lines["two"].get_linestyle()
    assert lines["one"].get_color() != lines["two"].get_color()


def test_draft_lengths_have_whole_ticks():
    for lengths in ((1, 2), (1, 3), (6,), (1, 40)):
        axis = _drawn(draw_speedup_by_length, [_row(1, length, 1.5) for length in lengths])
        left, right = axis.get_xlim()
        ticks = [tick for tick in axis.get_xticks() if left <= tick <= right]
        assert ticks
        assert all(float(tick).is_integer() for tick in ticks)


def test_many_batches_are_thinned_evenly_and_the_legend_says_so():
    axis = _drawn(draw_speedup_by_length, [_row(batch, 2, 2.0 - batch / 100) for batch in range(1, 38)])
    legend = axis.get_legend()
    assert legend.get_title().get_text() == "7 of 37 batches"
    named = [text.get_text() for text in legend.get_texts()]
    assert named[0] == "batch 1"
    assert "batch 37" in named
    colours = [line.get_color() for line in axis.lines if str(line.get_label()).startswith("batch")]
    assert len(set(colours)) == len(colours) == 7


def test_what_is_spread_keeps_its_ends_and_steps_by_a_factor():
    assert spread([1, 8, 64], 7) == [1, 8, 64]
    assert spread(list(range(1, 1025)), 6) == [1, 4, 16, 64, 256, 1024]
    assert spread([3, 4, 1000, 1001], 2) == [3, 1001]


def _figure(rows, title="title"):
    with figure_style():
        figure = speedup_figure(rows, rows, {}, title)
        figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_drafter_has_a_panel_and_all_share_the_last(count):
    names = [f"drafter {index}" for index in range(count)]
    rows = [{**row, "drafter": name} for name in names for row in ROWS]
    figure = _figure(rows)
    *panels, last = sorted(figure.axes, key=lambda axis: axis.get_xscale() == "log")
    assert [axis.get_title("left") for axis in panels] == (names if count > 1 else [""])
    assert {line.get_label() for line in last.lines} >= set(names)
    assert len({axis.get_ylim() for axis in panels}) == 1


def test_a_drafter_that_fits_nowhere_has_no_panel():
    figure = _figure([*ROWS, _row(1, 1, None, "two")])
    assert len(figure.axes) == 2


def test_a_long_title_stays_inside_its_figure():
    figure = _figure(ROWS, "a target\n" + "drafting: some drafter, acceptance " + ",".join(["0.75"] * 60))
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
