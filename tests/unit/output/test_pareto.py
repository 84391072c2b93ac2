from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.output.figures.pareto import draw_pareto, pareto_figure
from rooflines.output.figures.style import figure_style, new_figure


def row(option, drafter, batch, per_user):
    return {
        "option": option,
        "drafter": drafter,
        "batch": batch,
        "draft_length": 0,
        "tokens_per_s_per_user": per_user,
        "tokens_per_s_per_card": per_user * batch,
    }


ROWS = [
    row("1 x a", who, batch, fast / batch**0.3)
    for who, fast in (("none", 100.0), ("ngram", 150.0))
    for batch in (1, 8, 64)
]


@pytest.fixture
def axis():
    with figure_style():
        _, axes = new_figure(5.0, 4.0)
        yield axes[0]


def test_every_drafter_is_a_line_through_its_rows(axis):
    draw_pareto(axis, ROWS)
    lines = {line.get_label(): line for line in axis.get_lines()}
    assert set(lines) == {"plain decoding", "ngram"}
    assert lines["ngram"].get_xdata().tolist() == [item["tokens_per_s_per_user"] for item in ROWS[3:]]
    assert lines["ngram"].get_ydata().tolist() == [item["tokens_per_s_per_card"] for item in ROWS[3:]]
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines.values()]
    assert all(one != other for one, other in zip(*looks, strict=True))


def test_axes_are_logarithmic_and_say_their_units(axis):
    draw_pareto(axis, ROWS)
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert axis.get_xlabel() == "tokens/s per user"
    assert axis.get_ylabel() == "tokens/s per card"


def test_batches_are_written_beside_their_points(axis):
    draw_pareto(axis, ROWS)
    assert {"B 1", "B 8", "B 64"} <= {text.get_text() for text in axis.texts}


def test_several_options_are_named_and_coloured(axis):
    other = [{**item, "option": "2 x b"} for item in ROWS[:3]]
    draw_pareto(axis, [*ROWS[:3], *other])
    first, second = axis.get_lines()
    assert (first.get_label(), second.get_label()) == ("1 x a: plain decoding", "2 x b: plain decoding")
    assert first.get_color() != second.get_color()
    assert first.get_marker() == second.get_marker()


def test_nothing_to_draw_is_refused(axis):
    with pytest.raises(InputError, match="nothing to draw"):
        draw_pareto(axis, [])


def test_a_figure_has_its_title():
    with figure_style():
        assert (
            pareto_figure(ROWS, "llama").axes[0].get_title() == "llama"
            or pareto_figure(ROWS, "llama").axes[0].get_title(loc="left") == "llama"
        )
