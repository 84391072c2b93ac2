"""Speedup against draft length, and the best of it against batch, as lines on an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import BLACK, COLOURS, DASHES, new_figure, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
_EVEN: Final = "#777777"
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")
_LOG_BASE: Final = 2
_HEADROOM: Final = 1.12  # room above the highest line for its label


def draw_speedup_by_length(axis: Axes, rows: Sequence[Row]) -> None:
    """One line a batch over draft lengths, its best point ringed and numbered; Leviathan's form dashed.

    Args:
        axis: an empty axis.
        rows: of a plan with one drafter; rows without a speed are left out.

    Raises:
        InputError: no row has a speed.
    """
    batches = list(dict.fromkeys(row["batch"] for row in _with_speed(rows)))
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
    axis.plot([], [], color=_EVEN, linestyle=DASHES[1], linewidth=0.8, label="Leviathan: verify free")
    axis.axhline(1.0, color=_EVEN, linewidth=0.8)
    axis.set_xlabel("draft length (tokens)")
    axis.set_ylabel("speedup over plain decoding")
    axis.set_ylim(0.0, _HEADROOM * max(y for _, y in points))
    axis.legend(loc="lower right")
    for text in place_labels(axis, labels, [*points, *_halfway(points)]):
        text.set_color(colours[text.xy])


def _halfway(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points between neighbours, where lines pass that a label should leave free."""
    return [((a + b) / 2, (c + d) / 2) for (a, c), (b, d) in pairwise(points) if b > a]


def draw_speedup_by_batch(axis: Axes, rows: Sequence[Row], crossover_batch: int | None) -> None:
    """The best speedup over draft lengths against batch, one line a drafter; the crossover marked.

    Raises:
        InputError: no row has a speed.
    """
    usable = _with_speed(rows)
    for index, drafter in enumerate(dict.fromkeys(row["drafter"] for row in usable)):
        best: dict[int, float] = {}
        for row in usable:
            if row["drafter"] == drafter:
                best[row["batch"]] = max(best.get(row["batch"], 0.0), row["speedup"])
        axis.plot(
            list(best),
            list(best.values()),
            color=COLOURS[index % len(COLOURS)],
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle=DASHES[index % len(DASHES)],
            markersize=4,
            label=drafter,
        )
    axis.axhline(1.0, color=_EVEN, linewidth=0.8)
    if crossover_batch is not None:
        axis.axvline(crossover_batch, color=BLACK, linewidth=0.8, linestyle=DASHES[3])
        axis.text(crossover_batch, 0.05, f" stops paying at {crossover_batch}", fontsize=7.5)
    axis.set_xscale("log", base=_LOG_BASE)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("batch (sequences)")
    axis.set_ylabel("speedup at the best draft length")
    axis.set_ylim(bottom=0.0)
    axis.legend(loc="lower left")


def speedup_figure(
    by_length: Sequence[Row], by_batch: Sequence[Row], crossover_batch: int | None, title: str
) -> Figure:
    """Both, side by side; call it within `figure_style`."""
    figure, (left, right) = new_figure(9.6, 3.9, 2)
    figure.suptitle(title, fontsize=10)
    draw_speedup_by_batch(right, by_batch, crossover_batch)
    draw_speedup_by_length(left, by_length)
    return figure


def _with_speed(rows: Sequence[Row]) -> list[Row]:
    usable = [row for row in rows if row["speedup"] is not None]
    if not usable:
        raise InputError("nothing to draw: no configuration of this plan fits in memory")
    return usable
