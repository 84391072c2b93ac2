"""Where speculation pays: lines of equal speedup over acceptance and cost ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rooflines.output.charts.svg import (
    DASHES,
    INK,
    SHAPES,
    finished,
    mark,
    plot,
    swatch_line,
)
from rooflines.output.figures.style import COLOURS
from rooflines.output.tables import readable
from rooflines.studies.explore import BreakEvenMap, DeviceView

_HEADROOM: Final = 1.12


def map_chart(views: Sequence[DeviceView]) -> str:
    """Lines of equal speedup over acceptance and cost ratio of the first drafter: below 1 it pays."""
    maps = [one for view in views for one in view.maps]
    if not maps:
        return ""
    first = maps[0]
    highest = max(1.0, *(one.here[1] * _HEADROOM for one in maps))
    plane = plot((0.0, 1.0), (0.0, highest))
    parts = []
    entries = []
    for index, (level, costs) in enumerate(first.cost_ratios.items()):
        inside = _clipped(first.acceptance, costs, highest)
        if not inside:
            continue
        if level == 1.0:
            parts.append(plane.area([*inside, (1.0, 0.0), (inside[0][0], 0.0)], COLOURS[2]))
        colour = INK if level == 1.0 else COLOURS[index % len(COLOURS)]
        parts.append(plane.line(inside, colour, dash=DASHES[index % len(DASHES)]))
        name = "breaks even" if level == 1.0 else f"{level:g}x"
        entries.append((swatch_line(colour, DASHES[index % len(DASHES)]), name))
    parts.append(
        plane.axes(
            "acceptance (constant)", "cost ratio (draft time per token / plain step)", readable, readable
        )
    )
    for index, one in enumerate(maps):
        if math.isfinite(one.here[0]):
            shape, colour = SHAPES[index % len(SHAPES)], COLOURS[index % len(COLOURS)]
            parts.append(plane.mark(*one.here, shape, colour, _map_text(one), size=7.0))
            where = f"{one.hardware}: " if len(views) > 1 else ""
            entries.append((mark(0, 0, shape, colour, ""), f"{where}{one.drafter} {one.speedup:.2f}x"))
    title = f"Break-even map at draft length {first.draft_length} and the verify pass of {first.drafter}"
    return finished(title, plane, parts, entries)


def _map_text(one: BreakEvenMap) -> str:
    return (
        f"{one.drafter}, draft {one.draft_length}: acceptance {one.here[0]:.3f}, "
        f"cost ratio {one.here[1]:.3f}, {one.speedup:.2f}x"
    )


def _clipped(x: Sequence[float], y: Sequence[float], high: float) -> list[tuple[float, float]]:
    """The part of a rising line between 0 and `high`, cut where it enters and leaves."""
    inside: list[tuple[float, float]] = []
    for (x1, y1), (x2, y2) in zip(zip(x, y, strict=True), zip(x[1:], y[1:], strict=False), strict=False):
        inside += [
            (x1 + (x2 - x1) * (edge - y1) / (y2 - y1), edge) for edge in (0.0, high) if y1 < edge <= y2
        ]
        if 0.0 <= y2 <= high:
            inside.append((x2, y2))
    start = [(x[0], y[0])] if 0.0 <= y[0] <= high else []
    return start + inside
