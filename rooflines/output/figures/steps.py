"""Measured times of passes against their width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rooflines.output.figures.style import COLOURS, DASHES, new_figure
from rooflines.studies.measured import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS: Final = ("s", "o", "^", "D")
_EVEN: Final = "#777777"
_MILLISECONDS: Final = 1e3


def draw_steps(axis: Axes, curves: Sequence[Curve]) -> None:
    """T(n) in milliseconds, medians with quartiles; hollow, since measured."""
    for index, curve in enumerate(curves):
        middle = _MILLISECONDS * np.array(curve.median_s)
        spread = np.abs(_MILLISECONDS * np.array([curve.low_s, curve.high_s]) - middle)
        axis.errorbar(
            curve.positions, middle, spread, capsize=2, elinewidth=0.8, label=_label(curve), **_line(index)
        )
    axis.set_ylabel("time of a pass (ms)")
    axis.set_ylim(bottom=0.0)
    _finish(axis)


def draw_growth(axis: Axes, curves: Sequence[Curve]) -> None:
    """T(n) / T(1): what verifying n positions costs in plain steps; at n it would save nothing."""
    widest = max(curve.positions[-1] for curve in curves)
    highest = 1.0
    for index, curve in enumerate(curves):
        growth = np.array(curve.median_s) / curve.median_s[0]
        highest = max(highest, float(growth.max()))
        axis.plot(curve.positions, growth, label=_label(curve), **_line(index))
    even = np.geomspace(1, widest, 65)  # a straight line would bend on the logarithmic axis
    axis.plot(even, even, color=_EVEN, linewidth=0.8, linestyle=DASHES[1], label="one by one")
    axis.axhline(1.0, color=_EVEN, linewidth=0.8)
    axis.set_ylabel("time of a pass / of the narrowest")
    axis.set_ylim(0.0, 1.1 * highest)
    _finish(axis)


def steps_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Both, side by side; call it within `figure_style`."""
    figure, (left, right) = new_figure(9.6, 3.9, 2)
    figure.suptitle(title, fontsize=10)
    draw_steps(left, curves)
    draw_growth(right, curves)
    return figure


def _line(index: int) -> dict[str, Any]:
    colour = COLOURS[index % len(COLOURS)]
    return {
        "color": colour,
        "marker": _MARKERS[index % len(_MARKERS)],
        "markersize": 4,
        "markerfacecolor": "white",
        "markeredgecolor": colour,
        "linestyle": DASHES[index % len(DASHES)],
    }


def _label(curve: Curve) -> str:
    sequences = "" if curve.batch == 1 else f"batch {curve.batch}, "
    return f"{sequences}context {curve.context}"


def _finish(axis: Axes) -> None:
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("new positions n (1 decodes, more verify)")
    axis.legend(loc="upper left")
