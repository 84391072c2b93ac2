"""The figure of `rooflines.studies.medusa_fig9`: six series under the two roofs of one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.output.figures.style import COLOURS, new_figure
from rooflines.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS: Final = {"ar": "o", "init": "^"}
_MEANING: Final = {"ar": "decode", "init": "prefill"}


def fig9_figure(
    columns: Mapping[str, Sequence[Any]], bytes_per_s: float, peak_flop_per_s: float, title: str
) -> Figure:
    """Points by series (colour) and phase (marker) under the memory and the compute roof.

    Call it within `figure_style`.

    Args:
        columns: of `medusa_fig9`.
        bytes_per_s: memory bandwidth (bytes/s).
        peak_flop_per_s: dense peak (FLOP/s).
        title: above the figure.
    """
    figure, (axis,) = new_figure(8.2, 4.8)
    axis.set_title(title)
    axis.set_xscale("log")
    axis.set_yscale("log")
    x, y = columns["intensity_flop_per_byte"], columns["attained_flop_per_s"]
    left, right = min(x) / 2, max(x) * 2
    ridge = peak_flop_per_s / bytes_per_s
    roof: dict[str, Any] = {"color": "#444444", "linewidth": 1.3, "zorder": 2}
    axis.plot([left, ridge], [left * bytes_per_s, peak_flop_per_s], linestyle="--", **roof)
    axis.plot([ridge, right], [peak_flop_per_s, peak_flop_per_s], linestyle="--", **roof)
    names = list(dict.fromkeys(columns["series"]))
    for phase in _MARKERS:
        for index, name in enumerate(names):
            chosen = [
                i
                for i, (one, when) in enumerate(zip(columns["series"], columns["phase"], strict=True))
                if (one, when) == (name, phase)
            ]
            axis.plot(
                [x[i] for i in chosen],
                [y[i] for i in chosen],
                marker=_MARKERS[phase],
                color=COLOURS[index],
                markersize=8
                - 2 * index,  # decode points of all series meet, so they are drawn one inside another
                markeredgecolor="white",
                markeredgewidth=0.4,
                linestyle="none",
                label=f"{name} {phase} ({_MEANING[phase]})",
                zorder=3,
            )
    axis.annotate(
        f"ridge {ridge:.3g} FLOP/byte",
        (ridge, peak_flop_per_s),
        textcoords="offset points",
        xytext=(-8, 8),
        ha="right",
    )
    axis.set_xlim(left, right)
    axis.set_ylim(min(y) / 2, peak_flop_per_s * 3)
    axis.set_xlabel("operational intensity (FLOP/byte)")
    axis.set_ylabel("attainable (FLOP/s)")
    roofs = f"{format_quantity(bytes_per_s, 'byte/s')}, {format_quantity(peak_flop_per_s, 'FLOP/s')}"
    axis.legend(title=f"7 batches x 7 lengths\n{roofs}", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return figure
