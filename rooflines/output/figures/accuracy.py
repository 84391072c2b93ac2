"""Predicted beside measured times: points, errors by size and group, coverage, models of a verify pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.output.figures.style import BLACK, COLOURS, new_figure
from rooflines.validation.judge import EVERYWHERE, Judged, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES: Final = ("linear", "decode_attention", "prefill_attention", "moe", "collective")
_TITLES: Final = {
    "linear": "products",
    "decode_attention": "decode attention",
    "prefill_attention": "prefill attention",
    "moe": "experts",
    "collective": "all-reduces",
}
_MARKERS: Final = ("o", "s", "^", "D", "v")
_GREY: Final = "#999999"
# More points than these cover each other, and the file grows: every n-th is drawn.
_MOST_POINTS: Final = 200
_FOLD: Final = 2.0
_SIZES: Final = {
    "linear": "positions m",
    "decode_attention": "KV read (bytes)",
    "prefill_attention": "prompt (tokens)",
    "moe": "tokens",
    "collective": "message (bytes)",
}
_BAND: Final = (0.85, 0.95)
_LARGE: Final = 100
_ROOM_FOR_LEGEND: Final = 2.2  # in rows of devices


def _columns(judged: Sequence[Judged], operator: str, *names: str) -> tuple[NDArray[np.float64], ...]:
    """Columns of all held-out rows of a class, thinned evenly."""
    parts = [one for one in judged if one.group.operator == operator and one.quantity == "time"]
    columns = [
        np.concatenate([np.asarray(getattr(one, name), dtype=float) for one in parts] or [np.zeros(0)])
        for name in names
    ]
    step = max(1, -(-len(columns[0]) // _MOST_POINTS))
    return tuple(column[::step] for column in columns)


def predicted_figure(judged: Sequence[Judged]) -> Figure:
    """Predicted over measured times, one axis for constants and one for the plain roofline."""
    figure, axes = new_figure(8.4, 4.2, 2)
    for axis, name, title in (
        (axes[0], "predicted", "Constants fitted on other shapes"),
        (axes[1], "plain", "Plain roofline"),
    ):
        draw_predicted(axis, judged, name)
        axis.set_title(title)
    axes[0].legend(loc="upper left")
    return figure


def draw_predicted(axis: Axes, judged: Sequence[Judged], name: str) -> None:
    """One point a row: predicted (filled markers are predictions) against measured, both logarithmic.

    Args:
        axis: an empty axis.
        judged: rows beside their predictions.
        name: ``predicted`` or ``plain``.
    """
    ends = [np.inf, -np.inf]
    for index, operator in enumerate(CLASSES):
        measured, predicted = _columns(judged, operator, "measured", name)
        if not len(measured):
            continue
        axis.plot(
            measured,
            predicted,
            linestyle="none",
            marker=_MARKERS[index],
            markersize=2.2,
            color=COLOURS[index],
            alpha=0.6,
            label=_TITLES[operator],
        )
        ends = [min(ends[0], float(measured.min())), max(ends[1], float(measured.max()))]
    for factor, dashes in ((1.0, "-"), (_FOLD, ":"), (1.0 / _FOLD, ":")):
        axis.plot(ends, [end * factor for end in ends], color=BLACK, linewidth=0.8, linestyle=dashes)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("measured (s); dotted: a factor of 2")
    axis.set_ylabel("predicted (s)")


def residual_figure(judged: Sequence[Judged]) -> Figure:
    """Signed errors by size, one axis a class."""
    from matplotlib.ticker import NullFormatter

    present = [name for name in CLASSES if any(one.group.operator == name for one in judged)]
    figure, axes = new_figure(3.0 * len(present), 3.0, len(present))
    for axis, operator in zip(axes, present, strict=True):
        size, measured, predicted, plain = _columns(
            judged, operator, "size", "measured", "predicted", "plain"
        )
        for value, colour, label, marker in (
            (plain, _GREY, "plain roofline", "x"),
            (predicted, COLOURS[0], "constants", "o"),
        ):
            axis.plot(
                size,
                100.0 * (value / measured - 1.0),
                linestyle="none",
                marker=marker,
                markersize=2.2,
                color=colour,
                alpha=0.6,
                label=label,
            )
        axis.axhline(0.0, color=BLACK, linewidth=0.8)
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_ylim(-100.0, 100.0)
        axis.set_xlabel(_SIZES[operator])
        axis.set_title(_TITLES[operator])
    axes[0].set_ylabel("predicted over measured - 1 (%)")
    axes[0].legend(loc="lower right")
    return figure


def error_figure(found: Sequence[Verdict]) -> Figure:
    """Median error of each group of a class and region: one row a device, ours filled, plain hollow."""
    present = [name for name in CLASSES if any(one.group.operator == name for one in found)]
    devices = sorted({one.group.device for one in found})
    figure, axes = new_figure(3.0 * len(present), 0.4 * len(devices) + 1.6, len(present))
    for axis, operator in zip(axes, present, strict=True):
        regions = list(
            dict.fromkeys(
                one.region for one in found if one.group.operator == operator and one.region != EVERYWHERE
            )
        )
        for index, region in enumerate(regions):
            chosen = [one for one in found if one.group.operator == operator and one.region == region]
            height = [devices.index(one.group.device) + 0.22 * (index - 1) for one in chosen]
            axis.plot(
                [100.0 * one.plain_median_abs_error for one in chosen],
                height,
                linestyle="none",
                marker=_MARKERS[index],
                markersize=3.5,
                markerfacecolor="none",
                markeredgewidth=0.5,
                color=COLOURS[index],
            )
            axis.plot(
                [100.0 * one.median_abs_error for one in chosen],
                height,
                linestyle="none",
                marker=_MARKERS[index],
                markersize=3.5,
                color=COLOURS[index],
                label=region,
            )
        axis.set_yticks(range(len(devices)), devices if axis is axes[0] else [""] * len(devices))
        axis.set_xlim(0.0, 100.0)
        axis.set_ylim(-_ROOM_FOR_LEGEND, len(devices) - 0.5)
        axis.set_xlabel("median error (%)")
        axis.set_title(_TITLES[operator])
        axis.legend(loc="lower right")
    return figure


def coverage_figure(found: Sequence[Verdict]) -> Figure:
    """Share of the rows of each group inside their 90 % interval, by class; large groups filled."""
    figure, (axis,) = new_figure(6.0, 3.0)
    present = [name for name in CLASSES if any(one.group.operator == name for one in found)]
    axis.axhspan(100.0 * _BAND[0], 100.0 * _BAND[1], color="#EEEEEE", zorder=0)
    for index, operator in enumerate(present):
        chosen = [
            one
            for one in found
            if one.group.operator == operator and one.region == EVERYWHERE and one.coverage is not None
        ]
        for place, one in enumerate(chosen):
            axis.plot(
                index + 0.7 * (place / max(len(chosen) - 1, 1) - 0.5),
                100.0 * (one.coverage or 0.0),
                marker="o",
                markersize=4,
                color=COLOURS[index],
                markerfacecolor=COLOURS[index] if one.rows >= _LARGE else "none",
            )
    axis.set_xticks(range(len(present)), [_TITLES[name] for name in present])
    axis.set_ylim(0.0, 102.0)
    axis.set_ylabel("rows inside the 90 % interval (%)")
    axis.set_title("Filled: groups of 100 rows or more; grey: 85-95 %")
    return figure


def verify_models_figure(columns: Mapping[str, Sequence[Any]], models: Sequence[str]) -> Figure:
    """Median error of the models of a verify pass by width, the median over groups as a line."""
    figure, (axis,) = new_figure(5.6, 3.2)
    regions = list(dict.fromkeys(columns["region"]))
    for index, model in enumerate(models):
        values = [
            [
                100.0 * error
                for error, name in zip(columns[model], columns["region"], strict=True)
                if name == region
            ]
            for region in regions
        ]
        offset = 0.08 * (index - (len(models) - 1) / 2.0)
        for place, errors in enumerate(values):
            axis.plot(
                [place + offset] * len(errors),
                errors,
                linestyle="none",
                marker=_MARKERS[index],
                markersize=3,
                color=COLOURS[index],
                alpha=0.5,
            )
        axis.plot(
            [place + offset for place in range(len(regions))],
            [float(np.median(errors)) for errors in values],
            marker=_MARKERS[index],
            markersize=6,
            color=COLOURS[index],
            label=model,
        )
    axis.set_xticks(range(len(regions)), [region.replace("n ", "") for region in regions])
    axis.set_xlabel("positions in the verify pass")
    axis.set_ylabel("median error of the layer's time (%)")
    axis.set_ylim(bottom=0.0)
    axis.legend(loc="upper left")
    return figure
