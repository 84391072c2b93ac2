"""Speedup against batch down to where it stops paying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import COLOURS, DASHES, new_figure, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
_EVEN: Final = "#777777"


def draw_crossover(axis: Axes, rows: Sequence[Row], by: str, word: str = "") -> None:
    """One line for each value of a column; a ring where a line falls to 1 for good, with its batch.

    Args:
        axis: an empty axis.
        rows: with `batch`, `speedup`, `stops_paying_at` and the column.
        by: the column that tells lines apart.
        word: written before its value in the legend.

    Raises:
        InputError: no rows.
    """
    if not rows:
        raise InputError("nothing to draw: no configuration of this plan fits in memory")
    labels: list[tuple[float, float, str]] = []
    for index, value in enumerate(dict.fromkeys(row[by] for row in rows)):
        line = [row for row in rows if row[by] == value]
        colour = COLOURS[index % len(COLOURS)]
        axis.plot(
            [row["batch"] for row in line],
            [row["speedup"] for row in line],
            color=colour,
            linestyle=DASHES[index % len(DASHES)],
            label=f"{word}{value}",
        )
        end = line[0]["stops_paying_at"]
        if end is not None:
            axis.plot(end, 1.0, marker="o", markersize=7, color="white", markeredgecolor=colour, zorder=3)
            labels.append((end, 1.0, f"{end}"))
    axis.axhline(1.0, color=_EVEN, linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("batch (sequences)")
    axis.set_ylim(0.0, 1.08 * max(row["speedup"] for row in rows))
    axis.legend(loc="lower left")
    place_labels(axis, labels, [(row["batch"], row["speedup"]) for row in rows])


def crossover_figure(rows: Sequence[Row], panels: Mapping[str, tuple[str, str]], title: str) -> Figure:
    """One axis a panel; call it within `figure_style`.

    Args:
        rows: with a column `panel`.
        panels: panel -> column that tells its lines apart, and the word before its values.
        title: above all of them.
    """
    figure, axes = new_figure(3.9 * len(panels), 3.6, len(panels))
    figure.suptitle(title, fontsize=10)
    for axis, (panel, (by, word)) in zip(axes, panels.items(), strict=True):
        draw_crossover(axis, [row for row in rows if row["panel"] == panel], by, word)
        axis.set_title(panel)
    axes[0].set_ylabel("speedup over plain decoding")
    return figure
