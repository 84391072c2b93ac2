"""Speedup over acceptance and draft length as a map, and the best length along it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rooflines.output.figures.style import BLACK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.contour import QuadContourSet
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
# Darkness rises with speedup, so that the map survives a grey print, and stays below that of its numbers.
_COLOURS: Final = "Blues"
_PALER: Final = 1.7
_STEP: Final = 0.25
_LABELLED_STEP: Final = 2  # every second line has its number


def draw_surface(axis: Axes, rows: Sequence[Row], highest: float) -> QuadContourSet:
    """Filled contours with numbers; thick where speculation breaks even; dots where a length is best.

    Args:
        axis: an empty axis.
        rows: a full grid of `acceptance` and `draft_length` with its `speedup`, at one batch.
        highest: largest speedup of the colours, the same on every axis that is compared.

    Returns:
        The filled contours, for a colour bar.
    """
    alphas = sorted({row["acceptance"] for row in rows})
    lengths = sorted({row["draft_length"] for row in rows})
    cells = {(row["acceptance"], row["draft_length"]): row["speedup"] for row in rows}
    grid = np.array([[cells[alpha, length] for alpha in alphas] for length in lengths])
    levels = np.arange(0.0, highest + _STEP, _STEP)
    filled = axis.contourf(
        alphas, lengths, grid, levels=levels, cmap=_COLOURS, vmin=0.0, vmax=_PALER * highest
    )
    lines = axis.contour(alphas, lengths, grid, levels=levels, colors=BLACK, linewidths=0.5)
    numbered = [
        level for level in levels[::_LABELLED_STEP] if grid.min() < level < grid.max() and level != 1.0
    ]
    for text in axis.clabel(lines, levels=numbered, fmt="%g", fontsize=7, zorder=4):
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85})
    axis.contour(alphas, lengths, grid, levels=[1.0], colors=BLACK, linewidths=2.4)
    best = [lengths[int(column.argmax())] for column in grid.T]
    axis.plot(
        alphas,
        best,
        linestyle="none",
        marker="o",
        markersize=4,
        color="white",
        markeredgecolor=BLACK,
        markeredgewidth=0.7,
        label="best draft length",
        clip_on=False,
        zorder=3,
    )
    axis.plot([], [], color=BLACK, linewidth=2.4, label="breaks even")
    axis.grid(visible=False)
    axis.set_yticks(lengths[1::2])
    axis.set_xlabel("acceptance, the same at every position")
    axis.set_ylabel("draft length (tokens)")
    return filled


def surface_figure(rows: Sequence[Row], title: str) -> Figure:
    """One axis a batch, one colour bar; call it within `figure_style`."""
    batches = list(dict.fromkeys(row["batch"] for row in rows))
    figure, axes = new_figure(4.6 * len(batches) + 0.6, 4.0, len(batches))
    figure.suptitle(title, fontsize=10)
    highest = max(row["speedup"] for row in rows)
    for axis, batch in zip(axes, batches, strict=True):
        filled = draw_surface(axis, [row for row in rows if row["batch"] == batch], highest)
        axis.set_title(f"batch {batch}")
    axes[0].legend(loc="upper left")
    figure.colorbar(
        filled, ax=axes, label="speedup over plain decoding", ticks=range(int(highest) + 1), shrink=0.9
    )
    return figure
