"""Acceptance along a draft: of a position given those before it, and of all positions up to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.output.figures.style import COLOURS, DASHES, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")


def draw_acceptance(axis: Axes, rows: Sequence[Row], column: str) -> None:
    """One line a drafter (colour, marker) over drafted positions; hollow, since measured.

    Args:
        axis: an empty axis.
        rows: of one task, with `drafter`, `position` and the column.
        column: ``acceptance`` or ``survival``.
    """
    for index, drafter in enumerate(dict.fromkeys(row["drafter"] for row in rows)):
        line = [row for row in rows if row["drafter"] == drafter]
        colour = COLOURS[index % len(COLOURS)]
        axis.plot(
            [row["position"] for row in line],
            [row[column] for row in line],
            color=colour,
            linestyle=DASHES[index % len(DASHES)],
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=5,
            markerfacecolor="white",
            markeredgecolor=colour,
            label=drafter,
        )
    axis.set_ylim(0.0, 1.0)
    axis.set_xlabel("drafted position")


def acceptance_figure(rows: Sequence[Row], title: str) -> Figure:
    """Conditional acceptance, then survival, one axis a task; call it within `figure_style`."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    panels = [(column, task) for column in ("acceptance", "survival") for task in tasks]
    figure, axes = new_figure(2.4 * len(panels), 3.2, len(panels))
    figure.suptitle(title, fontsize=10)
    for axis, (column, task) in zip(axes, panels, strict=True):
        draw_acceptance(axis, [row for row in rows if row["task"] == task], column)
        axis.set_title(task)
    axes[0].set_ylabel("accepted, given all before")
    axes[len(tasks)].set_ylabel("accepted with all before")
    axes[0].legend(loc="lower left")
    return figure
