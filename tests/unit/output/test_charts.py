from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from rooflines.output.charts.bars import cycle_chart, memory_chart
from rooflines.output.charts.break_even import map_chart
from rooflines.output.charts.roofline import roofline_chart
from rooflines.output.charts.speedup import batch_chart, length_chart
from rooflines.output.charts.svg import Scale, element, legend, plot, short, swatch_line
from rooflines.studies.explore import explore
from rooflines.studies.plan import PlanQuestion

SVG = "{http://www.w3.org/2000/svg}"
QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("independent:llama-3.2-1b", "eagle3:topk=4,nodes=16"),
    acceptance="0.7",
    draft_lengths=(1, 2, 3, 4),
    batches=(8,),
    context=1024,
)


@pytest.fixture(scope="module")
def views():
    return [explore(replace(QUESTION, hardware=name), 3) for name in ("h100-sxm5-80gb", "a100-sxm4-80gb")]


@pytest.fixture(scope="module")
def nowhere():
    return [explore(replace(QUESTION, target="llama-3.1-405b", drafters=("ngram",)), 3)]


def tree(chart):
    return ET.fromstring(chart)  # noqa: S314 - it was written a moment ago


def hovers(chart):
    return [title.text for title in tree(chart).iter(f"{SVG}title")][1:]


def places(chart):
    """Places of all marks but those of the legend, which stand in a group of their own."""
    found = re.findall(r"translate\(([-\d.]+),([-\d.]+)\)scale", chart)
    return [(float(x), float(y)) for x, y in found if (x, y) != ("0.0", "0.0")]


def charts(views):
    return [
        roofline_chart(views),
        length_chart(views, 3),
        batch_chart(views, 8),
        cycle_chart(views),
        memory_chart(views),
        map_chart(views),
    ]


def test_every_chart_is_an_image_of_its_own_that_names_itself(views):
    for chart in charts(views):
        root = tree(chart)
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        assert root.find(f"{SVG}title").text
        width, height = map(float, root.get("viewBox").split()[2:])
        for x, y in places(chart):
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_every_operator_of_every_pass_is_named_under_the_pointer(views):
    found = hovers(roofline_chart(views))
    assert len(found) == sum(len(view.operators) for view in views)
    assert any(text.startswith("qkv projection, verify on h100-sxm5-80gb: ") for text in found)
    alone = hovers(roofline_chart(views[:1]))
    assert any(
        re.match(r"attention, decode: .* FLOP/byte, .*FLOP/s, .*s \(\d+% of the pass\), bound by", text)
        for text in alone
    )


def test_no_mark_stands_above_its_roof(views):
    chart = roofline_chart(views[:1])
    peak = re.search(r"M[\d.]+,[\d.]+L[\d.]+,([\d.]+)L", chart)
    assert min(y for _, y in places(chart)) >= float(peak[1]) - 0.1


def test_speedups_say_their_interval_under_the_pointer(views):
    line = views[0].by_length[0]
    wanted = f"draft 2, {line.speedup[1]:.2f}x ({line.low[1]:.2f} to {line.high[1]:.2f})"
    assert any(text.endswith(wanted) for text in hovers(length_chart(views, 3)))
    textbook = [explore(replace(QUESTION, calibration="textbook"), 3)]
    assert "90 % interval" in length_chart(views, 3)
    assert "90 % interval" not in length_chart(textbook, 3)


def test_crossovers_are_marked_where_they_are(views):
    ends = [line for view in views for line in view.by_batch if line.crossover_batch]
    assert ends
    chart = batch_chart(views, 8)
    for line in ends:
        assert f"{line.drafter}: stops paying at batch {line.crossover_batch}" in hovers(chart)
        assert f">stops at {line.crossover_batch}</text>" in chart


def test_parts_of_a_bar_are_as_long_as_their_times(views):
    view = views[0]
    root = tree(cycle_chart([view]))
    widths = {}
    for rect in root.iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            widths.setdefault(title.text.split(":")[0], float(rect.get("width")))
    row = view.cycles[0]
    assert widths["draft"] / widths["verify"] == pytest.approx(row["draft_s"] / row["verify_s"], abs=2e-3)
    assert widths["plain decode step"] / widths["verify"] == pytest.approx(
        row["target_step_s"] / row["verify_s"], abs=2e-3
    )


def test_memory_says_whether_it_fits(views, nowhere):
    assert "fits; largest batch" in memory_chart(views)
    assert "does not fit; largest batch 0" in memory_chart(nowhere)


def test_where_nothing_fits_there_is_no_chart_of_speed(nowhere):
    assert (
        length_chart(nowhere, 3)
        == batch_chart(nowhere, 8)
        == cycle_chart(nowhere)
        == map_chart(nowhere)
        == ""
    )
    assert hovers(roofline_chart(nowhere))


def test_the_map_marks_every_drafter_on_its_line(views):
    chart = map_chart(views)
    assert "breaks even" in chart
    for one in (one for view in views for one in view.maps):
        assert any(
            text.startswith(f"{one.drafter}, draft {one.draft_length}: acceptance 0.700")
            for text in hovers(chart)
        )


@pytest.mark.parametrize(("base", "middle"), [(0, 50.5), (10, 10.0)])
def test_a_scale_goes_from_end_to_end(base, middle):
    scale = Scale(1.0, 100.0, 10.0, 110.0, base)
    assert [scale(1.0), scale(middle), scale(100.0)] == pytest.approx([10.0, 60.0, 110.0])
    assert all(scale.holds(tick) for tick in scale.ticks())
    assert not scale.holds(math.nan)
    assert not scale.holds(101.0)


@pytest.mark.parametrize(
    ("low", "high", "base", "ticks"),
    [
        (0.0, 1.0, 0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 3.2, 0, [0.0, 1.0, 2.0, 3.0]),
        (1.0, 300.0, 2, [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        (0.5, 2e4, 10, [1, 10, 100, 1000, 10000]),
    ],
)
def test_ticks_are_round(low, high, base, ticks):
    assert Scale(low, high, 0.0, 1.0, base).ticks() == pytest.approx(ticks)


def test_texts_and_attributes_cannot_break_out():
    assert element("text", x='"><script>') == '<text x="&quot;&gt;&lt;script&gt;"/>'
    assert "<script>" not in plot((0, 1), (0, 1)).mark(0, 0, "o", "red", "<script>")
    assert "<b>" not in legend([(swatch_line("red"), "<b>")], 0.0)[0]


def test_a_legend_breaks_into_rows():
    one = legend([("", "a")], 0.0)[1]
    many = legend([("", "a rather long name of a drafter")] * 6, 0.0)[1]
    assert many > one


@pytest.mark.parametrize(
    ("value", "text"), [(0.2, "0.2"), (1000.0, "1,000"), (20_000.0, "20k"), (1e15, "1P"), (2.5e12, "2.5T")]
)
def test_numbers_on_axes_are_short(value, text):
    assert short(value) == text


def test_what_is_counted_has_whole_ticks():
    assert Scale(0.0, 2.5, 0.0, 1.0, whole=True).ticks() == [0.0, 1.0, 2.0]
    assert Scale(0.0, 2.5, 0.0, 1.0).ticks()[1] == 0.5
    assert Scale(0.0, 60.0, 0.0, 1.0, whole=True).ticks() == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def test_short_drafts_are_counted_in_whole_tokens():
    view = explore(replace(QUESTION, drafters=("ngram",), draft_lengths=(1, 2)), 2)
    texts = tree(length_chart([view], 2)).iter(f"{SVG}text")
    labels = [text.text for text in texts if text.get("text-anchor") == "middle"]
    assert labels == ["draft length (tokens)", "speedup over plain decoding", "0", "1", "2"]
