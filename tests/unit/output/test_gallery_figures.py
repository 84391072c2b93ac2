"""Figures of the gallery show the numbers that they are given, and nothing of them overlaps."""

from __future__ import annotations

from itertools import combinations

import matplotlib.colors
import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.output.figures.acceptance import acceptance_figure, draw_acceptance
from rooflines.output.figures.crossover import crossover_figure, draw_crossover
from rooflines.output.figures.cycle import cycle_figure, draw_cycle
from rooflines.output.figures.style import figure_style, new_figure
from rooflines.output.figures.surface import draw_surface, surface_figure
from rooflines.output.figures.verify_cost import draw_verify_cost, verify_cost_figure
from rooflines.output.gallery import EXHIBITS, write_gallery


@pytest.fixture
def axis():
    with figure_style():
        _, axes = new_figure(5.0, 4.0)
        yield axes[0]


def verify_rows(batch=1):
    return [
        {
            "name": name,
            "batch": batch,
            "positions": width,
            "relative": 1.0 + slope * (width - 1),
            "relative_low": 1.0 + slope * (width - 1) / 2,
            "relative_high": 1.0 + slope * (width - 1) * 2,
        }
        for name, slope in (("one", 0.01), ("two", 0.1))
        for width in (1, 2, 8)
    ]


def surface_rows(batch=1):
    return [
        {"batch": batch, "acceptance": alpha, "draft_length": length, "speedup": alpha * length / 2}
        for alpha in (0.4, 0.6, 0.8)
        for length in (1, 2, 3, 4)
    ]


CYCLE = [
    {
        "batch": 1,
        "drafter": "cheap",
        "draft_steps": 0.2,
        "verify_steps": 1.0,
        "tokens_per_cycle": 3.0,
        "speedup": 2.5,
    },
    {
        "batch": 1,
        "drafter": "dear",
        "draft_steps": 3.0,
        "verify_steps": 1.0,
        "tokens_per_cycle": 3.0,
        "speedup": 0.75,
    },
]


def crossover_rows(end=8):
    return [
        {
            "panel": "one",
            "drafter": name,
            "batch": batch,
            "speedup": start - batch / 8,
            "stops_paying_at": end,
        }
        for name, start in (("a", 2.0), ("b", 2.5))
        for batch in (1, 2, 4, 8, 16)
    ]


def test_each_device_is_a_line_of_its_own_look(axis):
    draw_verify_cost(axis, verify_rows())
    lines = {line.get_label(): line for line in axis.get_lines()}
    assert lines["two"].get_ydata() == pytest.approx([1.0, 1.1, 1.7])
    assert lines["one by one"].get_ydata().tolist() == [1, 8]
    bands = [band.get_paths()[0].vertices[:, 1] for band in axis.collections]
    assert [(band.min(), band.max()) for band in bands] == [
        (1.0, pytest.approx(1.14)),
        (1.0, pytest.approx(2.4)),
    ]
    looks = [
        (lines[name].get_color(), lines[name].get_marker(), lines[name].get_linestyle())
        for name in ("one", "two")
    ]
    assert all(one != other for one, other in zip(*looks, strict=True))


def test_batches_of_verify_cost_are_axes():
    with figure_style():
        figure = verify_cost_figure([*verify_rows(1), *verify_rows(32)], "title")
    assert [axis.get_title("left") for axis in figure.axes] == ["batch 1", "batch 32"]


def test_lines_of_many_points_have_few_markers(axis):
    rows = [{**verify_rows()[0], "positions": width, "relative": width**0.5} for width in range(1, 100)]
    draw_verify_cost(axis, rows)
    draw_verify_cost(axis, [{**row, "name": "few"} for row in rows[:8]])
    every = {line.get_label(): line.get_markevery() for line in axis.get_lines()}
    assert every["few"] is None
    assert isinstance(every["one"], float)


def test_bands_are_named_where_there_are_any():
    sure = [
        {**row, "relative_low": row["relative"], "relative_high": row["relative"]} for row in verify_rows()
    ]
    with figure_style():
        legends = [
            [text.get_text() for text in verify_cost_figure(rows, "title").legends[0].get_texts()]
            for rows in (verify_rows(), sure)
        ]
    assert legends == [["one", "two", "one by one", "90 % interval"], ["one", "two", "one by one"]]


def test_the_map_marks_break_even_and_the_best_length(axis):
    draw_surface(axis, surface_rows(), 1.6)
    best = next(line for line in axis.get_lines() if line.get_label() == "best draft length")
    assert best.get_xdata().tolist() == [0.4, 0.6, 0.8]
    assert best.get_ydata().tolist() == [4, 4, 4]
    (even,) = (one for one in axis.collections if np.allclose(one.get_linewidth(), 2.4))
    vertices = np.concatenate([path.vertices for path in even.get_paths() if len(path.vertices)])
    # alpha length / 2 = 1, up to interpolation between grid points.
    assert vertices[:, 0] * vertices[:, 1] / 2 == pytest.approx(np.ones(len(vertices)), rel=0.05)


def test_the_map_gets_darker_with_speedup_and_stays_paler_than_its_numbers():
    with figure_style():
        _, axes = new_figure(5.0, 4.0)
        filled = draw_surface(axes[0], surface_rows(), 1.6)
    colours = [filled.cmap(filled.norm(speedup)) for speedup in (0.0, 0.5, 1.0, 1.6)]
    lightness = [np.dot(matplotlib.colors.to_rgb(one), (0.299, 0.587, 0.114)) for one in colours]
    assert np.all(np.diff(lightness) < 0)
    assert min(lightness) > 0.4


def test_maps_that_are_compared_share_their_colours():
    with figure_style():
        figure = surface_figure(
            [*surface_rows(1), *({**row, "speedup": row["speedup"] / 2} for row in surface_rows(64))], "title"
        )
    scales = {
        one.get_clim()
        for axis in figure.axes[:2]
        for one in axis.collections
        if getattr(one, "filled", False)
    }
    assert len(scales) == 1


def test_bars_are_stacked_and_the_speedup_stands_outside_them(axis):
    draw_cycle(axis, CYCLE)
    ends = sorted(round(bar.get_x() + bar.get_width(), 9) for bar in axis.patches)
    assert ends == [1.0, 1.0, 1.2, 4.0]
    texts = {text.get_text().strip(): text.get_position()[0] for text in axis.texts}
    assert texts == {"2.50x": 3.0, "0.75x": 4.0}  # right of bar and line, whichever is longer
    assert len({bar.get_hatch() for bar in axis.patches}) == 2


def test_parts_that_cost_nothing_are_left_out_of_the_legend():
    with figure_style():
        figure = cycle_figure(CYCLE, "title")
        labelled = [text.get_text() for text in figure.legends[0].get_texts()]
        assert set(labelled) == {"verify", "draft", "tokens emitted"}
        more = cycle_figure([{**row, "overhead_steps": 0.1} for row in CYCLE], "title")
        assert "overhead" in [text.get_text() for text in more.legends[0].get_texts()]


def test_a_crossover_is_ringed_with_its_batch(axis):
    draw_crossover(axis, crossover_rows(), "drafter")
    assert [text.get_text() for text in axis.texts] == ["8", "8"]
    assert any(list(line.get_xdata()) == [8] and list(line.get_ydata()) == [1.0] for line in axis.get_lines())


def test_what_always_pays_has_no_ring(axis):
    draw_crossover(axis, crossover_rows(end=None), "drafter")
    assert not axis.texts


def test_panels_of_crossovers_are_drawn_by_their_own_column():
    rows = [*crossover_rows(), *({**row, "panel": "two", "length": 3} for row in crossover_rows())]
    with figure_style():
        figure = crossover_figure(rows, {"one": ("drafter", ""), "two": ("length", "draft ")}, "title")
    first, second = ([text.get_text() for text in axis.get_legend().get_texts()] for axis in figure.axes)
    assert (first, second) == (["a", "b"], ["draft 3"])


def test_no_crossovers_are_refused(axis):
    with pytest.raises(InputError, match="nothing to draw"):
        draw_crossover(axis, [], "drafter")


def test_measured_acceptance_is_hollow(axis):
    rows = [
        {"task": "chat", "drafter": "D", "position": k, "acceptance": 0.5, "survival": 0.5**k} for k in (1, 2)
    ]
    draw_acceptance(axis, rows, "survival")
    (line,) = axis.get_lines()
    assert line.get_ydata().tolist() == [0.5, 0.25]
    assert line.get_markerfacecolor() == "white"
    with figure_style():
        titles = [one.get_title("left") for one in acceptance_figure(rows, "title").axes]
    assert titles == ["chat", "chat"]


@pytest.fixture(scope="module")
def drawn():
    with figure_style():
        figures = {exhibit.name: exhibit.draw(exhibit.numbers(), exhibit.title) for exhibit in EXHIBITS}
        for figure in figures.values():
            figure.draw_without_rendering()
        yield figures


@pytest.mark.parametrize("name", [exhibit.name for exhibit in EXHIBITS])
def test_no_text_of_an_exhibit_covers_another(name, drawn):
    figure = drawn[name]
    boxes = []
    for axis in figure.axes:
        texts = [axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        low, high = sorted(axis.get_xlim())
        texts += [tick.label1 for tick in axis.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        low, high = sorted(axis.get_ylim())
        texts += [tick.label1 for tick in axis.yaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes += [
            (text.get_text(), text.get_window_extent())
            for text in texts
            if text.get_text() and text.get_visible()
        ]
    if figure._suptitle is not None:
        boxes.append((figure._suptitle.get_text(), figure._suptitle.get_window_extent()))
    assert len(boxes) > 8
    covered = [(one, other) for (one, box), (other, place) in combinations(boxes, 2) if box.overlaps(place)]
    assert not covered
    assert all(box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1 for _, box in boxes), "a text is cut off"


def test_the_page_shows_every_figure_and_its_table(tmp_path):
    written = {path.name for path in write_gallery(tmp_path)}
    page = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    for exhibit in EXHIBITS:
        assert {f"{exhibit.name}.svg", f"{exhibit.name}.csv"} <= written
        assert f"({exhibit.name}.svg)" in page
        assert f"({exhibit.name}.csv)" in page
