"""The roofline of the explorer: operators of three passes under the roofs of their devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rooflines.output.charts.svg import (
    DASHES,
    INK,
    QUIET,
    Plot,
    finished,
    mark,
    plot,
    short,
    swatch_line,
)
from rooflines.output.figures.style import COLOURS, MARKERS
from rooflines.output.tables import readable
from rooflines.studies.explore import DeviceView, OperatorPoint
from rooflines.studies.roofline import Roof
from rooflines.units import format_quantity

_SPARE: Final = 2.5  # factor that logarithmic axes reach beyond their points


def roofline_chart(views: Sequence[DeviceView]) -> str:
    """Decode, prefill and verify operators under the roofs of their devices; the hover names them."""
    roofs = [roof for view in views for roof in view.roofs]
    points = [point for view in views for point in view.operators]
    plane = _roofline_plane(roofs, points)
    names = list(dict.fromkeys(point.operator for point in points))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    devices = list(dict.fromkeys(roof.hardware for roof in roofs))
    parts = [plane.axes("operational intensity (FLOP/byte)", "attained (FLOP/s)", short, short)]
    parts += [_roof(plane, roof, DASHES[devices.index(roof.hardware) % len(DASHES)]) for roof in roofs]
    parts += [
        plane.mark(
            point.intensity_flop_per_byte,
            point.attained_flop_per_s,
            MARKERS[point.phase],
            colours[point.operator],
            _operator_text(point, many=len(devices) > 1),
        )
        for point in points
    ]
    entries = [(mark(0, 0, MARKERS[phase], QUIET, ""), phase) for phase in _unique(points, "phase")]
    entries += [(mark(0, 0, "o", colour, ""), name) for name, colour in colours.items()]
    entries += [
        (swatch_line(INK, DASHES[devices.index(roof.hardware) % len(DASHES)]), _roof_text(roof))
        for roof in roofs
    ]
    return finished("Roofline: operators of decode, prefill and verify passes", plane, parts, entries)


def _roofline_plane(roofs: Sequence[Roof], points: Sequence[OperatorPoint]) -> Plot:
    x = [point.intensity_flop_per_byte for point in points] + [roof.ridge_flop_per_byte for roof in roofs]
    y = [point.attained_flop_per_s for point in points] + [roof.peak_flop_per_s for roof in roofs]
    return plot((min(x) / _SPARE, max(x) * _SPARE), (min(y) / _SPARE, max(y) * _SPARE), bases=(10, 10))


def _roof(plane: Plot, roof: Roof, dash: str) -> str:
    right, ridge = plane.x.high, roof.ridge_flop_per_byte
    start = max(plane.x.low, plane.y.low / roof.memory_bytes_per_s)
    line = [
        (start, start * roof.memory_bytes_per_s),
        (ridge, roof.peak_flop_per_s),
        (right, roof.peak_flop_per_s),
    ]
    upright = plane.line([(ridge, plane.y.low), (ridge, roof.peak_flop_per_s)], QUIET, dash="2 3", width=1.0)
    return upright + plane.line(line, INK, dash=dash)


def _roof_text(roof: Roof) -> str:
    peak = format_quantity(roof.peak_flop_per_s, "FLOP/s")
    bandwidth = format_quantity(roof.memory_bytes_per_s, "byte/s")
    return f"{roof.hardware}: {roof.arithmetic} {peak}, {bandwidth}, ridge {roof.ridge_flop_per_byte:.3g}"


def _operator_text(point: OperatorPoint, *, many: bool) -> str:
    where = f" on {point.hardware}" if many else ""
    return (
        f"{point.operator}, {point.phase}{where}: {readable(point.intensity_flop_per_byte, 3)} FLOP/byte, "
        f"{format_quantity(point.attained_flop_per_s, 'FLOP/s')}, {format_quantity(point.seconds, 's')} "
        f"({point.share:.0%} of the pass), bound by {point.bound}"
    )


def _unique(points: Iterable[OperatorPoint], field: str) -> list[str]:
    return list(dict.fromkeys(getattr(point, field) for point in points))
