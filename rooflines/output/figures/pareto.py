"""Tokens per second and card against tokens per second and user: what batch trades for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import (
    COLOURS,
    DASHES,
    figure_style,
    new_figure,
    place_labels,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")
# Batches that are written beside a line: every power of 8 reached, and the largest.
_LABELLED: Final = (1, 8, 64, 512)
_TICKS: Final = (1.0, 2.0, 5.0)


def draw_pareto(axis: Axes, rows: Sequence[Row]) -> None:
    """One line an option (colour) and drafter (marker and dash), batches written beside some of its points.

    Args:
        axis: an empty axis.
        rows: of a capacity answer.

    Raises:
        InputError: no rows.
    """
    if not rows:
        raise InputError("there is nothing to draw: no option carries a load")
    from matplotlib.ticker import LogLocator, NullLocator

    options = list(dict.fromkeys(row["option"] for row in rows))
    drafters = list(dict.fromkeys(row["drafter"] for row in rows))
    labels: list[tuple[float, float, str]] = []
    points: list[tuple[float, float]] = []
    colours: dict[tuple[float, float], str] = {}
    for option in options:
        for drafter in drafters:
            line = [row for row in rows if row["option"] == option and row["drafter"] == drafter]
            if not line:
                continue
            kind = drafters.index(drafter)
            # One option: drafters get the colours; several: options do.
            hue = kind if len(options) == 1 else options.index(option)
            named = "plain decoding" if drafter == "none" else drafter
            axis.plot(
                [row["tokens_per_s_per_user"] for row in line],
                [row["tokens_per_s_per_card"] for row in line],
                color=COLOURS[hue % len(COLOURS)],
                marker=_MARKERS[kind % len(_MARKERS)],
                linestyle=DASHES[kind % len(DASHES)],
                markersize=4,
                label=named if len(options) == 1 else f"{option}: {named}",
            )
            spots = [(row["tokens_per_s_per_user"], row["tokens_per_s_per_card"]) for row in line]
            points += spots
            colours |= dict.fromkeys(spots, COLOURS[hue % len(COLOURS)])
            nearest = {min(line, key=lambda row: abs(row["batch"] - batch))["batch"] for batch in _LABELLED}
            labels += [
                (*spot, f"B {row['batch']}")
                for spot, row in zip(spots, line, strict=True)
                if row["batch"] in nearest
            ]
    axis.set_xscale("log")
    axis.set_yscale("log")
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_locator(LogLocator(subs=_TICKS))
        one.set_major_formatter(lambda value, _: f"{value:,g}")
        one.set_minor_locator(NullLocator())
    axis.set_xlabel("tokens/s per user")
    axis.set_ylabel("tokens/s per card")
    axis.legend(loc="lower left")
    for text in place_labels(axis, labels, points):
        text.set_color(colours[text.xy])


def pareto_figure(rows: Sequence[Row], title: str = "") -> Figure:
    """The figure of a capacity answer."""
    figure, axes = new_figure(6.4, 4.4)
    axes[0].set_title(title)
    draw_pareto(axes[0], rows)
    return figure


def write_pareto(rows: Sequence[Row], path: Path, title: str = "") -> None:
    """Draw the figure of a capacity answer into a file.

    Raises:
        InputError: no rows, an ending that no figure has, or a file that cannot be written.
    """
    with figure_style():
        save_figure(pareto_figure(rows, title), path)
