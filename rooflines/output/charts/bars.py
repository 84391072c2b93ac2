"""Stacked bars: the time of a cycle, and the memory of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rooflines.output.charts.svg import (
    INK,
    QUIET,
    WIDTH,
    bar,
    chart,
    element,
    legend,
    swatch_box,
    swatch_line,
    text,
)
from rooflines.output.figures.style import COLOURS
from rooflines.studies.explore import DeviceView
from rooflines.units import Dimension, format_quantity

# Parts of a cycle and of the memory, in the order in which they are stacked.
_CYCLE: Final = (("draft_s", "draft"), ("verify_s", "verify"), ("overhead_s", "overhead"))
_MEMORY: Final = (
    ("weights_bytes", "weights"),
    ("drafter_weights_bytes", "drafter"),
    ("kv_bytes", "KV cache"),
    ("state_bytes", "states"),
    ("drafter_kv_bytes", "drafter's KV"),
    ("logits_bytes", "logits"),
    ("reserve_bytes", "reserve"),
)
_ROW: Final = 46.0


def cycle_chart(views: Sequence[DeviceView]) -> str:
    """One stacked bar a drafter, with the plain step above and the time per token beside it."""
    rows = [(view, row) for view in views for row in view.cycles if row["speedup"] is not None]
    if not rows:
        return ""
    longest = max(sum(row[key] for key, _ in _CYCLE) for _, row in rows)
    longest = max(longest, *(row["target_step_s"] for _, row in rows))
    parts = []
    for index, (view, row) in enumerate(rows):
        top = 14.0 + index * (_ROW + 14.0)
        parts.append(text(16, top + 10, _cycle_text(view, row, many=len(views) > 1), colour=INK))
        parts.append(_stack(row, _CYCLE, top + 16, longest, "s"))
        plain = row["target_step_s"]
        parts.append(
            bar(
                16,
                top + 38,
                _length(plain, longest),
                8,
                colour=QUIET,
                hover=f"plain decode step: {format_quantity(plain, 's')}",
            )
        )
    entries = [(swatch_box(colour), name) for colour, (_, name) in zip(COLOURS, _CYCLE, strict=False)]
    entries.append((swatch_box(QUIET), "a plain decode step"))
    legends, end = legend(entries, 14.0 + len(rows) * (_ROW + 14.0) + 8)
    return chart("Where the time of a cycle goes", end, [*parts, legends])


def memory_chart(views: Sequence[DeviceView]) -> str:
    """One bar a drafter against the capacity of a device."""
    rows = [(view, row) for view in views for row in view.plan.memory]
    longest = max(max(row["capacity_bytes"], sum(row[key] for key, _ in _MEMORY)) for _, row in rows)
    parts = []
    for index, (view, row) in enumerate(rows):
        top = 14.0 + index * _ROW
        parts.append(text(16, top + 10, _memory_text(view, row, many=len(views) > 1), colour=INK))
        parts.append(_stack(row, _MEMORY, top + 16, longest, "byte"))
        end = 16 + _length(row["capacity_bytes"], longest)
        ends = {"x1": f"{end:.1f}", "x2": f"{end:.1f}", "y1": f"{top + 13:.1f}", "y2": f"{top + 37:.1f}"}
        parts.append(element("line", **ends, stroke=INK, stroke_width=2))
    used = [part for part in _MEMORY if any(row[part[0]] for _, row in rows)]
    colours = dict(zip(_MEMORY, COLOURS, strict=False))
    entries = [(swatch_box(colours[part]), part[1]) for part in used]
    entries.append((swatch_line(INK), "capacity"))
    legends, end = legend(entries, 14.0 + len(rows) * _ROW + 8)
    return chart("Memory of one device", end, [*parts, legends])


def _stack(
    row: dict[str, Any], parts: Sequence[tuple[str, str]], top: float, longest: float, unit: Dimension
) -> str:
    drawn, x = [], 16.0
    for (key, name), colour in zip(parts, COLOURS, strict=False):
        width = _length(row[key], longest)
        if width:
            drawn.append(
                bar(x, top, width, 18, colour=colour, hover=f"{name}: {format_quantity(row[key], unit)}")
            )
        x += width
    return "".join(drawn)


def _length(value: float, longest: float) -> float:
    return value / longest * (WIDTH - 32.0)


def _cycle_text(view: DeviceView, row: dict[str, Any], *, many: bool) -> str:
    where = f"{view.plan.question.hardware}: " if many else ""
    return (
        f"{where}{row['drafter']}, draft {row['draft_length']}: {row['tokens_per_cycle']:.2f} tokens / "
        f"{row['cycle_cost']:.2f} steps = {row['speedup']:.2f}x"
    )


def _memory_text(view: DeviceView, row: dict[str, Any], *, many: bool) -> str:
    where = f"{view.plan.question.hardware}: " if many else ""
    verdict = "fits" if row["fits"] else "does not fit"
    return f"{where}{row['drafter']}: {verdict}; largest batch {row['largest_batch']}"
