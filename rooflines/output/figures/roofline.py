"""The roofline: attained FLOP/s over operational intensity, on logarithmic axes.

Roofs are told apart by dashes, operators by colour, phases by marker, models by the rim of the marker;
predicted points are filled and measured ones hollow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rooflines.output.figures.style import BLACK, COLOURS, DASHES, MARKERS, new_figure, place_labels
from rooflines.studies.roofline import EVERYTHING, GROUPS, OTHER, Roof, RooflinePoint
from rooflines.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Rims of the markers of the first, second, third ... model: colour and width in points.
_RIMS: Final = (("white", 0.5), (BLACK, 1.0), ("#777777", 1.6), (BLACK, 2.0))
# Groups often share a place at small batches, so that they are drawn one inside another: the more time a
# group takes, the larger its marker.
_SIZES: Final = (9.5, 8.2, 7.0, 6.0, 5.2, 4.5, 3.8, 3.2)
_ORDER: Final = (EVERYTHING, *dict.fromkeys(GROUPS.values()), OTHER)
_COLOUR: Final = dict(zip(_ORDER, (BLACK, *COLOURS), strict=True))
_SPARE_DECADES: Final = 0.35


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A measurement to stand beside predictions.

    Attributes:
        phase: of the pass.
        group: of operators.
        intensity_flop_per_byte: (FLOP/byte).
        attained_flop_per_s: (FLOP/s).
    """

    phase: str
    group: str
    intensity_flop_per_byte: float
    attained_flop_per_s: float


def draw_roofline(
    axis: Axes,
    roofs: Sequence[Roof],
    points: Sequence[RooflinePoint],
    measured: Sequence[MeasuredPoint] = (),
) -> None:
    """Draw roofs and points; labels are placed last, so the axis should have its final place.

    Args:
        axis: an empty axis.
        roofs: at least one.
        points: predictions.
        measured: measurements.
    """
    models = list(dict.fromkeys(point.model for point in points))
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("operational intensity (FLOP/byte)")
    axis.set_ylabel("attained (FLOP/s)")
    _limits(axis, roofs, points, measured)
    for index, roof in enumerate(roofs):
        _draw_roof(axis, roof, DASHES[index % len(DASHES)])
    sizes = _sizes(points)
    for point in sorted(points, key=lambda one: -sizes[one.group]):
        rim, width = _RIMS[models.index(point.model) % len(_RIMS)]
        axis.plot(
            point.intensity_flop_per_byte,
            point.attained_flop_per_s,
            marker=MARKERS[point.phase],
            markersize=sizes[point.group],
            color=_COLOUR[point.group],
            markeredgecolor=rim,
            markeredgewidth=width,
            linestyle="none",
            zorder=3,
        )
    _draw_network_points(axis, roofs, points)
    for seen in measured:
        axis.plot(
            seen.intensity_flop_per_byte,
            seen.attained_flop_per_s,
            marker=MARKERS[seen.phase],
            markersize=7,
            markerfacecolor="none",
            markeredgecolor=_COLOUR[seen.group],
            markeredgewidth=1.4,
            linestyle="none",
            zorder=4,
        )
    _legends(axis, roofs, points, measured)
    _label(axis, roofs, points)


def roofline_figure(
    roofs: Sequence[Roof],
    points: Sequence[RooflinePoint],
    measured: Sequence[MeasuredPoint] = (),
    title: str = "",
) -> Figure:
    """A figure of one roofline; call it within `figure_style`."""
    figure, (axis,) = new_figure(8.2, 5.0)
    axis.set_title(title)
    draw_roofline(axis, roofs, points, measured)
    return figure


def roof_label(roof: Roof) -> str:
    """A roof in words: device, dtype, peak, bandwidth and ridge."""
    peak = format_quantity(roof.peak_flop_per_s, "FLOP/s")
    bandwidth = format_quantity(roof.memory_bytes_per_s, "byte/s")
    return f"{roof.name}\n{roof.arithmetic} {peak}, {bandwidth}, ridge {roof.ridge_flop_per_byte:.3g}"


def _sizes(points: Sequence[RooflinePoint]) -> dict[str, float]:
    """Sizes of markers by group (points), in the order of the largest share that each takes of a pass."""

    def of(point: RooflinePoint) -> tuple[str, str, str, int]:
        return point.hardware, point.model, point.phase, point.batch

    whole = {of(point): point.seconds for point in points if point.group == EVERYTHING}
    shares: dict[str, float] = {}
    for point in points:
        share = point.seconds / whole.get(of(point), point.seconds)
        shares[point.group] = max(shares.get(point.group, 0.0), share)
    ranked = sorted(shares, key=lambda group: (group != EVERYTHING, -shares[group]))
    return dict(zip(ranked, _SIZES, strict=False))


def _limits(
    axis: Axes, roofs: Sequence[Roof], points: Sequence[RooflinePoint], measured: Sequence[MeasuredPoint]
) -> None:
    both: list[RooflinePoint | MeasuredPoint] = [*points, *measured]
    x = [one.intensity_flop_per_byte for one in both]
    x += [_network_intensity(point) for point in points if _crosses_network(point, roofs)]
    x += [roof.ridge_flop_per_byte for roof in roofs]
    y = [one.attained_flop_per_s for one in both]
    y += [roof.peak_flop_per_s for roof in roofs]
    y += [min(roof.memory_bytes_per_s * min(x) for roof in roofs)]
    spare = 10**_SPARE_DECADES
    axis.set_xlim(min(x) / spare, max(x) * spare * 2)
    axis.set_ylim(min(y) / spare, max(y) * spare)


def _draw_roof(axis: Axes, roof: Roof, dashes: str) -> None:
    left, right = axis.get_xlim()
    ridge = roof.ridge_flop_per_byte
    axis.plot(
        [left, ridge, right],
        [left * roof.memory_bytes_per_s, roof.peak_flop_per_s, roof.peak_flop_per_s],
        color="#444444",
        linestyle=dashes,
        linewidth=1.3,
        zorder=2,
    )
    axis.plot([ridge, ridge], [axis.get_ylim()[0], roof.peak_flop_per_s], color="#AAAAAA", linewidth=0.7)
    axis.plot(ridge, roof.peak_flop_per_s, marker="|", markersize=9, color="#444444", zorder=2.5)
    if roof.network_bytes_per_s is not None:
        bend = roof.peak_flop_per_s / roof.network_bytes_per_s
        axis.plot(
            [left, bend],
            [left * roof.network_bytes_per_s, roof.peak_flop_per_s],
            color="#999999",
            linestyle=dashes,
            linewidth=1.0,
            zorder=2,
        )


def _crosses_network(point: RooflinePoint, roofs: Sequence[Roof]) -> bool:
    linked = any(roof.network_bytes_per_s for roof in roofs if roof.hardware == point.hardware)
    return linked and point.group == EVERYTHING and point.network_bytes > 0


def _network_intensity(point: RooflinePoint) -> float:
    return point.matmul_flops / point.network_bytes


def _draw_network_points(axis: Axes, roofs: Sequence[Roof], points: Iterable[RooflinePoint]) -> None:
    """The whole pass once more, over FLOP per byte on the link, to be read against the network roof."""
    for point in points:
        if _crosses_network(point, roofs):
            axis.plot(
                _network_intensity(point),
                point.attained_flop_per_s,
                marker=MARKERS[point.phase],
                markersize=6,
                color="#999999",
                markeredgecolor="white",
                markeredgewidth=0.5,
                linestyle="none",
                zorder=3,
            )


def _legends(
    axis: Axes, roofs: Sequence[Roof], points: Sequence[RooflinePoint], measured: Sequence[MeasuredPoint]
) -> None:
    from matplotlib.lines import Line2D

    def dot(label: str, **kwargs: object) -> Line2D:
        settings: dict[str, object] = {"marker": "o", "color": BLACK, "markersize": 6, **kwargs}
        line = Line2D([], [], linestyle="none", label=label)
        line.set(**settings)
        return line

    entries: list[Line2D] = [
        Line2D([], [], color="#444444", linestyle=DASHES[index % len(DASHES)], label=roof_label(roof))
        for index, roof in enumerate(roofs)
    ]
    links = {roof.name: roof.network_bytes_per_s for roof in roofs}
    entries += [
        Line2D([], [], color="#999999", label=f"{name}\nlink {format_quantity(rate, 'byte/s')} one way")
        for name, rate in links.items()
        if rate is not None
    ]
    both: list[RooflinePoint | MeasuredPoint] = [*points, *measured]
    used = {one.group for one in both}
    entries += [dot(group, color=_COLOUR[group], marker="h") for group in _ORDER if group in used]
    if any(_crosses_network(point, roofs) for point in points):
        entries.append(dot("whole pass, per byte on the link", color="#999999", marker="h"))
    phases = dict.fromkeys(one.phase for one in both)
    entries += [dot(phase, marker=MARKERS[phase], color="#777777") for phase in phases]
    models = list(dict.fromkeys(point.model for point in points))
    if len(models) > 1:
        for index, model in enumerate(models):
            rim, width = _RIMS[index % len(_RIMS)]
            entries.append(dot(model, color="#BBBBBB", markeredgecolor=rim, markeredgewidth=width))
    if measured:
        entries.append(dot("measured", markerfacecolor="none"))
    axis.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def _label(axis: Axes, roofs: Sequence[Roof], points: Sequence[RooflinePoint]) -> None:
    ridges = dict.fromkeys(
        (roof.ridge_flop_per_byte, roof.peak_flop_per_s, f"ridge {roof.ridge_flop_per_byte:.3g}")
        for roof in roofs
    )
    batches = dict.fromkeys(point.batch for point in points)
    labels = [*ridges]
    if len(batches) > 1:
        # Batches rise in the same order on every device and for every model: those of one are labelled.
        first = (EVERYTHING, points[0].hardware, points[0].model)
        labels += [
            (point.intensity_flop_per_byte, point.attained_flop_per_s, f"B={point.batch}")
            for point in points
            if (point.group, point.hardware, point.model) == first
        ]
    markers = [(point.intensity_flop_per_byte, point.attained_flop_per_s) for point in points]
    place_labels(axis, [label for label in labels if math.isfinite(label[0])], markers)
