from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.output.figures.pareto import capacity_figure, draw_pareto, pareto_figure
from rooflines.output.figures.style import figure_style, new_figure
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity


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
        assert pareto_figure(ROWS, "llama").axes[0].get_title("left") == "llama"


def test_a_promise_is_an_upright_at_the_tokens_that_it_leaves_a_user(axis):
    draw_pareto(axis, ROWS, promised_s=0.04)
    (upright,) = [line for line in axis.get_lines() if "promised" in line.get_label()]
    assert list(upright.get_xdata()) == [25.0, 25.0]
    assert "40 ms" in upright.get_label()


def test_states_under_load_are_stars_and_rows_without_are_left_out(axis):
    loaded = [
        {"tpot_s": 0.02, "tokens_per_s_per_card": 300.0},
        {"tpot_s": None, "tokens_per_s_per_card": None},
    ]
    draw_pareto(axis, ROWS, loaded=loaded)
    (stars,) = [line for line in axis.get_lines() if line.get_label() == "as loaded"]
    assert (list(stars.get_xdata()), list(stars.get_ydata())) == ([50.0], [300.0])


QUESTION = CapacityQuestion(
    options=(ServedOption("h100-sxm5-80gb"),),
    target="llama-3.1-8b",
    prompt_tokens="1024",
    output_tokens="lognormal:200,0.5",
    rate=30.0,
    slo_tpot="25 ms",
    calibration="textbook",
)


def test_a_figure_of_a_question_says_what_was_asked():
    with figure_style():
        (axis,) = capacity_figure(QUESTION, ROWS).axes
    title = axis.get_title("left")
    assert title == "llama-3.1-8b, prompts of 1024 tokens, outputs of lognormal:200,0.5, 30 requests/s"
    assert "25 ms a token, as promised" in [text.get_text() for text in axis.get_legend().get_texts()]


def test_the_state_under_load_lies_on_the_curve_of_its_batch():
    """Few requests wait for others at half load, so that the mean state is one of the curve's."""
    answer = make_capacity(replace(QUESTION, output_tokens="256", rate=10.0))
    (row,) = answer.rows
    line = [item for item in answer.pareto if item["drafter"] == "none"]
    per_card = np.interp(
        row["batch"], [item["batch"] for item in line], [item["tokens_per_s_per_card"] for item in line]
    )
    assert row["tokens_per_s_per_card"] == pytest.approx(per_card, rel=0.1)
    assert row["tokens_per_s_per_card"] * row["tpot_s"] == pytest.approx(row["batch"], rel=0.1)
