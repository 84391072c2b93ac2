"""Tokens per second and card against tokens per second and user: what batch trades for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError
from rooflines.output.figures.style import (
    BLACK,
    COLOURS,
    DASHES,
    figure_style,
    new_figure,
    place_labels,
    save_figure,
)
from rooflines.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rooflines.studies.capacity import CapacityQuestion

Row = Mapping[str, Any]
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")
# Batches that are written beside a line: every power of 8 reached, and the largest.
_LABELLED: Final = (1, 8, 64, 512)
_TICKS: Final = (1.0, 2.0, 5.0)


def draw_pareto(
    axis: Axes, rows: Sequence[Row], promised_s: float | None = None, loaded: Sequence[Row] = ()
) -> None:
    """One line an option (colour) and drafter (marker and dash), batches written beside some of its points.

    Args:
        axis: an empty axis.
        rows: of the Pareto curves of a capacity answer.
        promised_s: time per output token (s) that gets an upright; None for none.
        loaded: rows of a capacity answer, whose state under their load gets a star, where they have one.

    Raises:
        InputError: no rows.
    """
    if not rows:
        raise InputError("there is nothing to draw: no option carries a load")
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
    _scales(axis)
    points += _stars(axis, loaded)
    if promised_s is not None:
        words = f"{format_quantity(promised_s, 's')} a token, as promised"
        axis.axvline(1.0 / promised_s, color=BLACK, linewidth=0.8, linestyle=DASHES[3], label=words)
    axis.legend(loc="lower left")
    for text in place_labels(axis, labels, points):
        text.set_color(colours[text.xy])


def _scales(axis: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_xscale("log")
    axis.set_yscale("log")
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_locator(LogLocator(subs=_TICKS))
        one.set_major_formatter(lambda value, _: f"{value:,g}")
        one.set_minor_locator(NullLocator())
    axis.set_xlabel("tokens/s per user")
    axis.set_ylabel("tokens/s per card")


def _stars(axis: Axes, loaded: Sequence[Row]) -> list[tuple[float, float]]:
    """Mark the states under load, and return where they are."""
    spots = [
        (1.0 / row["tpot_s"], row["tokens_per_s_per_card"])
        for row in loaded
        if row["tpot_s"] and row["tokens_per_s_per_card"]
    ]
    if spots:
        x, y = zip(*spots, strict=True)
        # Hollow, so that the point of the curve below can be told.
        axis.plot(
            x,
            y,
            linestyle="none",
            marker="*",
            markersize=13,
            color="none",
            markeredgecolor=BLACK,
            zorder=4,
            label="as loaded",
        )
    return spots


def pareto_figure(
    rows: Sequence[Row], title: str = "", promised_s: float | None = None, loaded: Sequence[Row] = ()
) -> Figure:
    """The figure of Pareto curves under a title; see `draw_pareto`."""
    figure, axes = new_figure(6.4, 4.4)
    axes[0].set_title(title)
    draw_pareto(axes[0], rows, promised_s, loaded)
    return figure


def capacity_figure(question: CapacityQuestion, rows: Sequence[Row], loaded: Sequence[Row] = ()) -> Figure:
    """Pareto curves with what was asked of them: the workload above, the promise as an upright.

    Args:
        question: what was asked.
        rows: of its Pareto curves.
        loaded: rows of its answer, where there is one.
    """
    asked = (
        f"prompts of {question.prompt_tokens} tokens, outputs of {question.output_tokens}"
        if question.trace is None
        else f"requests of {Path(question.trace).name}"
    )
    load = "" if question.rate is None else f", {question.rate:g} requests/s"
    return pareto_figure(rows, f"{question.target}, {asked}{load}", question.objective.tpot_s, loaded)


def write_pareto(
    question: CapacityQuestion, rows: Sequence[Row], path: Path, loaded: Sequence[Row] = ()
) -> None:
    """Draw the figure of a capacity question into a file; see `capacity_figure`.

    Raises:
        InputError: no rows, an ending that no figure has, or a file that cannot be written.
    """
    with figure_style():
        save_figure(capacity_figure(question, rows, loaded), path)
