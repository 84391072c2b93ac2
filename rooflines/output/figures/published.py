"""Measured against predicted speedups of published rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import BLACK, COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rooflines.validation.published.predict import Predicted

_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
_BAND: Final = 1.25  # the band of 25 % on both sides
_TICKS: Final = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def draw_speedups(axis: Axes, predicted: Sequence[Predicted]) -> None:
    """One hollow point a row, coloured by source, with the diagonal and a band of 25 %.

    Args:
        axis: an empty axis.
        predicted: rows of one tier; impossible ones are not drawn.

    Raises:
        InputError: no rows.
    """
    rows = [one for one in predicted if not one.claim.impossible]
    if not rows:
        raise InputError("there is nothing to draw: no row was predicted")
    values = [value for one in rows for value in (one.claim.speedup, one.speedup)]
    low, high = min(values) / 1.1, max(values) * 1.1
    axis.fill_between(
        [low, high],
        [low / _BAND, high / _BAND],
        [low * _BAND, high * _BAND],
        color="#EEEEEE",
        linewidth=0,
        label="within 25 %",
    )
    axis.plot([low, high], [low, high], color=BLACK, linewidth=0.8)
    for index, source in enumerate(sorted({one.claim.source for one in rows})):
        own = [one for one in rows if one.claim.source == source]
        axis.plot(
            [one.speedup for one in own],
            [one.claim.speedup for one in own],
            linestyle="none",
            marker=_MARKERS[index % len(_MARKERS)],
            markerfacecolor="none",
            markeredgecolor=COLOURS[index % len(COLOURS)],
            markersize=4,
            label=f"{source} ({len(own)})",
        )
    from matplotlib.ticker import NullLocator

    for scale, one in ((axis.set_xscale, axis.xaxis), (axis.set_yscale, axis.yaxis)):
        scale("log")
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        one.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        one.set_minor_locator(NullLocator())
    axis.set_xlim(low, high)
    axis.set_ylim(low, high)
    axis.set_aspect("equal")
    axis.set_xlabel("predicted speedup")
    axis.set_ylabel("measured speedup")
    axis.legend(loc="upper left")


def speedups_figure(predicted: Sequence[Predicted], title: str) -> Figure:
    """A figure of its own.

    Raises:
        InputError: no rows.
    """
    figure, (axis,) = new_figure(4.8, 4.8)
    draw_speedups(axis, predicted)
    axis.set_title(title)
    return figure
