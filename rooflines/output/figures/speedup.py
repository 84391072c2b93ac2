"""Speedup against draft length, and the best of it against batch, as lines on an axis."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import COLOURS, DASHES, new_mosaic, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
_EVEN: Final = "#777777"
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")
_LOG_BASE: Final = 2
_HEADROOM: Final = 1.12  # room above the highest line for its label
_BESIDE: Final = 0.6  # draft lengths that the axis reaches beyond its ends
_MOST_LINES: Final = len(COLOURS)
_TITLE_LETTERS: Final = 108  # of a line of the title


def draw_speedup_by_length(axis: Axes, rows: Sequence[Row], highest: float | None = None) -> None:
    """One line a batch over draft lengths, its best point ringed and numbered; Leviathan's form dashed.

    Of more batches than there are colours, those are drawn that lie most evenly between the ends.

    Args:
        axis: an empty axis.
        rows: of a plan with one drafter; rows without a speed are left out.
        highest: speedup that the axis must hold, the same on all that are compared; None for that of `rows`.

    Raises:
        InputError: no row has a speed.
    """
    from matplotlib.ticker import MaxNLocator

    fitting = sorted({row["batch"] for row in _with_speed(rows)})
    batches = spread(fitting, _MOST_LINES)
    labels: list[tuple[float, float, str]] = []
    points: list[tuple[float, float]] = []
    colours: dict[tuple[float, float], str] = {}
    for index, batch in enumerate(batches):
        line = [row for row in _with_speed(rows) if row["batch"] == batch]
        lengths = [row["draft_length"] for row in line]
        speeds = [row["speedup"] for row in line]
        colour, marker = COLOURS[index % len(COLOURS)], _MARKERS[index % len(_MARKERS)]
        axis.plot(lengths, speeds, color=colour, marker=marker, markersize=4, label=f"batch {batch}")
        free = [row["leviathan_speedup"] for row in line]
        if all(value is not None for value in free):
            axis.plot(lengths, free, color=colour, linestyle=DASHES[1], linewidth=0.8)
        best = max(line, key=lambda row: row["speedup"])
        axis.plot(
            best["draft_length"],
            best["speedup"],
            marker="o",
            markersize=9,
            color="none",
            markeredgecolor=colour,
        )
        colours[best["draft_length"], best["speedup"]] = colour
        labels.append((best["draft_length"], best["speedup"], f"{best['speedup']:.2f}x"))
        points += list(zip(lengths, speeds, strict=True))
        points += [(x, y) for x, y in zip(lengths, free, strict=True) if y is not None]
    if any(row["leviathan_speedup"] is not None for row in _with_speed(rows)):
        axis.plot([], [], color=_EVEN, linestyle=DASHES[1], linewidth=0.8, label="Leviathan: verify free")
    axis.axhline(1.0, color=_EVEN, linewidth=0.8)
    axis.set_xlabel("draft length (tokens)")
    axis.set_ylabel("speedup over plain decoding")
    axis.set_ylim(0.0, _HEADROOM * max(highest or 0.0, *(y for _, y in points)))
    # A single length gets an axis too.
    axis.set_xlim(min(x for x, _ in points) - _BESIDE, max(x for x, _ in points) + _BESIDE)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    shown = None if len(batches) == len(fitting) else f"{len(batches)} of {len(fitting)} batches"
    axis.legend(loc="best", title=shown)
    for text in place_labels(axis, labels, [*points, *_halfway(points)]):
        text.set_color(colours[text.xy])


def spread(values: Sequence[int], most: int) -> list[int]:
    """At most `most` of rising values, the ends among them, as even on a logarithmic axis as they come.

    Args:
        values: rising, above 0.
        most: 2 or more.
    """
    if len(values) <= most:
        return list(values)
    step = math.log(values[-1] / values[0]) / (most - 1)
    wanted = [math.log(values[0]) + step * index for index in range(most)]
    return sorted({min(values, key=lambda value: abs(math.log(value) - place)) for place in wanted})


def _halfway(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points between neighbours, where lines pass that a label should leave free."""
    return [((a + b) / 2, (c + d) / 2) for (a, c), (b, d) in pairwise(points) if b > a]


def draw_speedup_by_batch(axis: Axes, rows: Sequence[Row], crossovers: Mapping[str, int | None]) -> None:
    """The best speedup over draft lengths against batch, one line a drafter; where it ends is marked.

    Args:
        axis: an empty axis.
        rows: of a plan; rows without a speed are left out.
        crossovers: drafter -> batch from which on it does not pay; None where it still does.

    Raises:
        InputError: no row has a speed.
    """
    usable = _with_speed(rows)
    for index, drafter in enumerate(dict.fromkeys(row["drafter"] for row in usable)):
        best: dict[int, float] = {}
        for row in usable:
            if row["drafter"] == drafter:
                best[row["batch"]] = max(best.get(row["batch"], 0.0), row["speedup"])
        colour = COLOURS[index % len(COLOURS)]
        axis.plot(
            list(best),
            list(best.values()),
            color=colour,
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle=DASHES[index % len(DASHES)],
            markersize=4,
            label=drafter,
        )
        end = crossovers.get(drafter)
        if end is not None:
            axis.axvline(end, color=colour, linewidth=0.8, linestyle=DASHES[3])
            # One below the other, where drafters end at neighbouring batches.
            height = 0.97 - 0.05 * index
            words = f"stops paying at {end} "
            axis.text(end, height, words, fontsize=7.5, ha="right", transform=axis.get_xaxis_transform())
    axis.axhline(1.0, color=_EVEN, linewidth=0.8)
    axis.set_xscale("log", base=_LOG_BASE)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("batch (sequences)")
    axis.set_ylabel("speedup at the best draft length")
    axis.set_ylim(0.0, _HEADROOM * max(row["speedup"] for row in usable))
    axis.legend(loc="best")


def speedup_figure(
    by_length: Sequence[Row], by_batch: Sequence[Row], crossovers: Mapping[str, int | None], title: str
) -> Figure:
    """A panel a drafter over draft lengths, and one of all over batches; call it within `figure_style`.

    Args:
        by_length: rows of a plan at the batches that get a line.
        by_batch: rows of a plan at the batches of an axis.
        crossovers: drafter -> batch from which on it does not pay; None where it still does.
        title: wrapped to the width of the figure, line by line.

    Raises:
        InputError: no row has a speed.
    """
    drafters = list(dict.fromkeys(row["drafter"] for row in _with_speed(by_length)))
    cells = [*drafters, ""]
    cells += [""] * (len(cells) % 2)  # the panel of batches takes what is left of the last row
    rows = [cells[place : place + 2] for place in range(0, len(cells), 2)]
    figure, axes = new_mosaic(9.6, 3.9 * len(rows), rows)
    lines = [part for line in title.splitlines() for part in textwrap.wrap(line, _TITLE_LETTERS)]
    figure.suptitle("\n".join(lines), fontsize=10)
    draw_speedup_by_batch(axes[""], by_batch, crossovers)
    drawn = [row[key] or 0.0 for row in _with_speed(by_length) for key in ("speedup", "leviathan_speedup")]
    for drafter in drafters:
        if len(drafters) > 1:
            axes[drafter].set_title(drafter)
        own = [row for row in by_length if row["drafter"] == drafter]
        draw_speedup_by_length(axes[drafter], own, max(drawn))
    return figure


def _with_speed(rows: Sequence[Row]) -> list[Row]:
    usable = [row for row in rows if row["speedup"] is not None]
    if not usable:
        raise InputError("nothing to draw: no configuration of this plan fits in memory")
    return usable
