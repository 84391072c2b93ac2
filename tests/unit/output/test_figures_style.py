from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.output.figures.style import figure_style, file_type, new_figure, place_labels, save_figure


def _drawn(path):
    with figure_style():
        figure, (axis,) = new_figure(4, 3)
        axis.plot([1, 2, 3], [3, 1, 2], marker="o", label="one")
        axis.set_xlabel("x (FLOP/byte)")
        axis.legend()
        save_figure(figure, path)
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, kind):
    assert _drawn(tmp_path / f"one.{kind}") == _drawn(tmp_path / f"other.{kind}")


def test_an_svg_holds_no_date(tmp_path):
    assert b"<dc:date>" not in _drawn(tmp_path / "a.svg")


def test_style_ends_with_its_context():
    from matplotlib import rcParams

    before = dict(rcParams)
    with figure_style():
        assert rcParams["svg.hashsalt"] == "rooflines"
        assert rcParams["axes.spines.top"] is False
    assert dict(rcParams) == before


def test_settings_of_the_reader_change_nothing(tmp_path):
    from matplotlib import rc_context

    plain = _drawn(tmp_path / "plain.svg")
    with rc_context({"lines.linewidth": 9.0, "axes.facecolor": "red", "font.size": 20}):
        assert _drawn(tmp_path / "styled.svg") == plain


@pytest.mark.parametrize("name", ["a.jpg", "a", "svg", "a.svg.gz"])
def test_another_ending_is_refused_with_those_that_work(tmp_path, name):
    with pytest.raises(InputError, match=r"\.svg, \.png, \.pdf"):
        file_type(tmp_path / name)


def test_the_case_of_the_ending_does_not_matter(tmp_path):
    assert file_type(tmp_path / "A.SVG") == "svg"


def test_a_figure_in_a_missing_folder_is_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        _drawn(tmp_path / "missing" / "a.svg")


def _boxes(labels, avoid=()):
    with figure_style():
        figure, (axis,) = new_figure(5, 4)
        axis.set_xlim(0, 10)
        axis.set_ylim(0, 10)
        placed = place_labels(axis, labels, avoid)
        figure.draw_without_rendering()
        spots = axis.transData.transform(avoid) if avoid else []
        return [text.get_window_extent() for text in placed], spots, axis.get_window_extent()


def test_labels_of_one_place_do_not_overlap():
    boxes, _, _ = _boxes([(5, 5, f"label {index}") for index in range(12)])
    assert len(boxes) > 5
    for index, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[index + 1 :])


def test_labels_stay_inside_the_axis():
    boxes, _, frame = _boxes([(0, 0, "corner"), (10, 10, "another corner"), (10, 0, "third")])
    assert len(boxes) == 3
    for box in boxes:
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
        assert frame.y0 <= box.y0
        assert box.y1 <= frame.y1


def test_labels_cover_no_marker():
    points = [(5, 5), (5.3, 5.2), (4.7, 5.2), (5, 5.6)]
    boxes, spots, _ = _boxes([(x, y, f"B={x}") for x, y in points], points)
    assert boxes
    assert not any(box.contains(*spot) for box in boxes for spot in spots)
