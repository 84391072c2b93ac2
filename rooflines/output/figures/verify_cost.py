"""What a verify pass costs in plain steps, against the positions that it verifies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.output.figures.style import COLOURS, DASHES, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")
_EVEN: Final = "#777777"
_TICKS: Final = (1, 2, 5, 10, 20, 50, 100)
_NEAR_ONE: Final = (1, 1.2, 1.5, 2, 3, 5)
_MOST_MARKERS: Final = 20  # of a line that has one at each point
_BETWEEN: Final = 0.05  # markers of the others, in diagonals of the axis
_LOW: Final = 5.0  # up to here an axis has ticks between 1 and 2


def draw_verify_cost(axis: Axes, rows: Sequence[Row]) -> None:
    """T(n) / T(1) against n, one line a device; dashed: as many plain steps as positions.

    Args:
        axis: an empty axis.
        rows: of one batch, with `name`, `positions`, `relative` and the ends of its 90 % interval.
    """
    for index, name in enumerate(dict.fromkeys(row["name"] for row in rows)):
        line = [row for row in rows if row["name"] == name]
        positions = [row["positions"] for row in line]
        low, high = ([row[f"relative_{end}"] for row in line] for end in ("low", "high"))
        axis.fill_between(positions, low, high, color=COLOURS[index % len(COLOURS)], alpha=0.12, linewidth=0)
        axis.plot(
            positions,
            [row["relative"] for row in line],
            color=COLOURS[index % len(COLOURS)],
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle=DASHES[index % len(DASHES)],
            markersize=4,
            markevery=None if len(line) <= _MOST_MARKERS else _BETWEEN,
            label=name,
        )
    widest = max(row["positions"] for row in rows)
    highest = 1.3 * max(row["relative"] for row in rows)
    axis.plot([1, widest], [1, widest], color=_EVEN, linewidth=0.8, linestyle=DASHES[1], label="one by one")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_ylim(0.9, highest)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ticks = _NEAR_ONE if highest < _LOW else _TICKS
    axis.set_yticks([tick for tick in ticks if tick < highest])
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.minorticks_off()
    axis.set_xlabel("positions verified per sequence")
    axis.set_ylabel("time of the pass (plain steps)")


def verify_cost_figure(rows: Sequence[Row], title: str) -> Figure:
    """One axis a batch; call it within `figure_style`."""
    from matplotlib.patches import Patch

    batches = list(dict.fromkeys(row["batch"] for row in rows))
    figure, axes = new_figure(4.8 * len(batches), 4.2, len(batches))
    figure.suptitle(title, fontsize=10)
    for axis, batch in zip(axes, batches, strict=True):
        draw_verify_cost(axis, [row for row in rows if row["batch"] == batch])
        axis.set_title(f"batch {batch}")
    handles, labels = axes[0].get_legend_handles_labels()
    if any(row["relative_low"] < row["relative_high"] for row in rows):
        handles.append(Patch(color=_EVEN, alpha=0.25, linewidth=0))
        labels.append("90 % interval")
    figure.legend(handles, labels, loc="outside lower center", ncols=-(-len(labels) // 2))
    return figure
