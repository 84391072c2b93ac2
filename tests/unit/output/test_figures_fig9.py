from __future__ import annotations

from rooflines.output.figures.fig9 import fig9_figure
from rooflines.output.figures.style import figure_style
from rooflines.studies.medusa_fig9 import medusa_fig9


def test_six_series_of_49_points_under_two_roofs_and_a_numbered_ridge():
    with figure_style():
        figure = fig9_figure(medusa_fig9("llama-7b"), 1.935e12, 312e12, "Llama-7B")
    (axis,) = figure.axes
    series = [line for line in axis.lines if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in series] == [49] * 6
    assert len({(line.get_color(), line.get_marker()) for line in series}) == 6
    memory, compute = (line for line in axis.lines if line.get_linestyle() == "--")
    x, y = memory.get_data()
    assert all(abs(b / a - 1.935e12) < 1 for a, b in zip(x, y, strict=True))
    assert set(compute.get_ydata()) == {312e12}
    assert [text.get_text() for text in axis.texts] == ["ridge 161 FLOP/byte"]
