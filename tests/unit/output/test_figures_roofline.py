from __future__ import annotations

import pytest

from rooflines.output.figures.roofline import MeasuredPoint, draw_roofline, roof_label, roofline_figure
from rooflines.output.figures.style import figure_style, new_figure, save_figure
from rooflines.studies.roofline import Roof, roofline_points, roofs
from rooflines.studies.serve import make_deployment, make_machine


@pytest.fixture(scope="module")
def served():
    return make_deployment("llama-2-7b", make_machine("a100-sxm4-80gb", "textbook"))


@pytest.fixture(scope="module")
def drawn(served):
    above = roofs(served, ("decode", "prefill"))
    points = [
        *roofline_points(served, "decode", (1, 8, 64), 1024, 1),
        *roofline_points(served, "prefill", (1, 8, 64), 0, 1024),
    ]
    return above, points


def _axis(above, points, measured=()):
    with figure_style():
        figure, (axis,) = new_figure(8.2, 5)
        draw_roofline(axis, above, points, measured)
        figure.draw_without_rendering()
    return axis


def test_no_point_lies_above_its_roof(drawn):
    above, points = drawn
    (roof,) = above
    for point in points:
        bound = min(roof.peak_flop_per_s, point.intensity_flop_per_byte * roof.memory_bytes_per_s)
        assert point.attained_flop_per_s <= bound * (1 + 1e-12)


def test_both_axes_are_logarithmic_and_labelled_with_units(drawn):
    axis = _axis(*drawn)
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert "FLOP/byte" in axis.get_xlabel()
    assert "FLOP/s" in axis.get_ylabel()


def test_the_ridge_is_marked_and_numbered_where_the_bounds_meet(drawn):
    axis = _axis(*drawn)
    (ridge,) = [text for text in axis.texts if text.get_text().startswith("ridge")]
    assert ridge.get_text() == "ridge 153"  # 312 TFLOP/s over 2.039 TB/s
    assert ridge.xy[0] == pytest.approx(312e12 / 2.039e12)
    assert ridge.xy[1] == 312e12


def test_every_point_is_inside_the_axis(drawn):
    axis = _axis(*drawn)
    left, right = axis.get_xlim()
    low, high = axis.get_ylim()
    for point in drawn[1]:
        assert left < point.intensity_flop_per_byte < right
        assert low < point.attained_flop_per_s < high


def test_texts_do_not_overlap(drawn):
    boxes = [text.get_window_extent() for text in _axis(*drawn).texts]
    assert len(boxes) > 4
    for index, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[index + 1 :])


def test_measured_points_are_hollow_and_predicted_ones_filled(drawn):
    above, points = drawn
    axis = _axis(above, points, [MeasuredPoint("decode", "attention", 2.0, 2e12)])
    at = {(line.get_xdata()[0], line.get_ydata()[0]): line for line in axis.lines if line.get_xdata().size}
    assert at[(2.0, 2e12)].get_markerfacecolor() == "none"
    one = points[0]
    assert at[(one.intensity_flop_per_byte, one.attained_flop_per_s)].get_markerfacecolor() != "none"


def test_phases_have_markers_and_devices_dashes_of_their_own(served):
    other = make_deployment("llama-2-7b", make_machine("h100-sxm5-80gb", "textbook"))
    above = [*roofs(served, ("decode",)), *roofs(other, ("decode",))]
    points = [
        *roofline_points(served, "decode", (1,), 1024, 1),
        *roofline_points(other, "verify", (1,), 1024, 5),
    ]
    handles = _axis(above, points).get_legend().legend_handles
    markers = {handle.get_label(): handle.get_marker() for handle in handles}
    assert markers["decode"] != markers["verify"]
    dashes = [handle.get_linestyle() for handle in handles if "ridge" in handle.get_label()]
    assert len(set(dashes)) == 2


def test_models_share_a_roofline_and_are_named(served):
    small = make_deployment("tinyllama-1.1b-v1.0", served.machine)
    points = [point for one in (served, small) for point in roofline_points(one, "decode", (1,), 64, 1)]
    labels = [entry.get_text() for entry in _axis(roofs(served, ("decode",)), points).get_legend().texts]
    assert {"llama-2-7b", "tinyllama-1.1b-v1.0"} <= set(labels)


def test_the_link_is_a_roof_only_where_devices_share_the_work():
    machine = make_machine("h100-sxm5-80gb", "textbook")
    alone = make_deployment("llama-2-7b", machine)
    shared = make_deployment("llama-2-7b", machine, tensor=4)
    assert roofs(alone, ("decode",))[0].network_bytes_per_s is None
    assert roofs(shared, ("decode",))[0].network_bytes_per_s == 450e9
    axis = _axis(roofs(shared, ("decode",)), roofline_points(shared, "decode", (1,), 64, 1))
    assert any("450 GB/s" in entry.get_text() for entry in axis.get_legend().texts)


def test_each_arithmetic_has_its_own_roof():
    machine = make_machine("h100-sxm5-80gb", "textbook")
    mixed = make_deployment("llama-2-7b", machine, weight_dtype="fp8")
    peaks = {roof.arithmetic: roof.peak_flop_per_s for roof in roofs(mixed, ("decode",))}
    assert peaks["fp8"] == pytest.approx(2 * peaks["fp16"])


def test_a_roof_says_device_peak_bandwidth_and_ridge():
    roof = Roof("some-device", "Some device", "bf16", 100e12, 1e12)
    assert roof.ridge_flop_per_byte == 100
    assert roof_label(roof) == "Some device\nbf16 100 TFLOP/s, 1 TB/s, ridge 100"


def test_two_drawings_give_the_same_svg(drawn, tmp_path):
    for name in ("one.svg", "other.svg"):
        with figure_style():
            save_figure(roofline_figure(*drawn, title="Llama"), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_what_takes_more_time_has_a_larger_marker(served):
    points = roofline_points(served, "decode", (1,), 1024, 1)
    axis = _axis(roofs(served, ("decode",)), points)
    size = {
        (line.get_xdata()[0], line.get_ydata()[0]): line.get_markersize()
        for line in axis.lines
        if line.get_xdata().size
    }
    by_time = sorted(points, key=lambda point: -point.seconds)
    sizes = [size[point.intensity_flop_per_byte, point.attained_flop_per_s] for point in by_time]
    assert len(sizes) > 3
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
