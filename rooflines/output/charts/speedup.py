"""Speedup against draft length and against batch, with intervals and crossovers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rooflines.output.charts.svg import (
    DASHES,
    GRID,
    INK,
    QUIET,
    SHAPES,
    Plot,
    finished,
    mark,
    plot,
    swatch_box,
    swatch_line,
)
from rooflines.output.figures.style import COLOURS
from rooflines.output.tables import readable
from rooflines.studies.explore import DeviceView, SpeedupLine

_HEADROOM: Final = 1.12


def length_chart(views: Sequence[DeviceView], draft_length: int) -> str:
    """Speedup against draft length at the batch chosen, with intervals."""
    lines = [(view, line) for view in views for line in view.by_length]
    if not lines:
        return ""
    longest = max(max(line.x) for _, line in lines)
    plane = plot((0.0, longest + 0.5), (0.0, _top(lines)), whole=True)
    parts = [
        plane.axes("draft length (tokens)", "speedup over plain decoding", readable, readable),
        _upright(plane, draft_length) if draft_length <= longest else "",
    ]
    drawn, entries = _speedup_lines(plane, lines, "draft length")
    return finished("Speedup against draft length", plane, [*parts, drawn], entries)


def batch_chart(views: Sequence[DeviceView], batch: int) -> str:
    """Speedup at the best draft length against batch, with intervals and crossovers."""
    lines = [(view, line) for view in views for line in view.by_batch]
    if not lines:
        return ""
    largest = max(2, *(max(line.x) for _, line in lines))
    plane = plot((1.0, largest * 1.15), (0.0, _top(lines)), bases=(2, 0))
    parts = [
        plane.axes("batch (sequences)", "speedup at the best draft length", readable, readable),
        _upright(plane, batch) if batch <= largest else "",
    ]
    drawn, entries = _speedup_lines(plane, lines, "batch")
    parts.append(drawn)
    ends = [(line.crossover_batch, line.drafter) for _, line in lines if line.crossover_batch is not None]
    # The last one first, so that texts to the left of their marks go down like a staircase.
    for index, (end, drafter) in enumerate(sorted(ends, reverse=True)):
        hover = f"{drafter}: stops paying at batch {end}"
        parts.append(plane.mark(end, 1.0, "D", INK, hover, size=6.5))
        parts.append(plane.label(end, 1.0, f"stops at {end}", anchor="end", dy=18.0 + 14.0 * index))
    return finished("Speedup against batch", plane, parts, entries)


def _speedup_lines(
    plane: Plot, lines: Sequence[tuple[DeviceView, SpeedupLine]], axis: str
) -> tuple[str, list[tuple[str, str]]]:
    devices = list(dict.fromkeys(view.plan.question.hardware for view, _ in lines))
    drafters = list(dict.fromkeys(line.drafter for _, line in lines))
    parts = [plane.line([(plane.x.low, 1.0), (plane.x.high, 1.0)], QUIET, width=1.0)]
    entries = []
    for view, line in lines:
        colour = COLOURS[drafters.index(line.drafter) % len(COLOURS)]
        shape = SHAPES[drafters.index(line.drafter) % len(SHAPES)]
        dash = DASHES[devices.index(view.plan.question.hardware) % len(DASHES)]
        if line.low is not None and line.high is not None:
            lower, upper = zip(line.x, line.low, strict=True), zip(line.x, line.high, strict=True)
            parts.append(plane.area([*lower, *reversed(list(upper))], colour))
        parts.append(plane.line(zip(line.x, line.speedup, strict=True), colour, dash=dash))
        name = f"{view.plan.question.hardware}: {line.drafter}" if len(devices) > 1 else line.drafter
        parts += [
            plane.mark(x, line.speedup[i], shape, colour, f"{name}, {axis} {x}: {_speedup_text(line, i)}")
            for i, x in enumerate(line.x)
        ]
        entries.append((swatch_line(colour, dash) + mark(1, 0, shape, colour, ""), name))
    if any(line.low is not None for _, line in lines):
        entries.append((swatch_box(GRID), "90 % interval"))
    return "".join(parts), entries


def _speedup_text(line: SpeedupLine, index: int) -> str:
    drafted = f"draft {line.draft_length[index]}, {line.speedup[index]:.2f}x"
    if line.low is None or line.high is None:
        return drafted
    return f"{drafted} ({line.low[index]:.2f} to {line.high[index]:.2f})"


def _top(lines: Iterable[tuple[DeviceView, SpeedupLine]]) -> float:
    return _HEADROOM * max(1.0, *(max(line.high or line.speedup) for _, line in lines))


def _upright(plane: Plot, at: float) -> str:
    return plane.line([(at, plane.y.low), (at, plane.y.high)], QUIET, dash="2 3", width=1.0)
