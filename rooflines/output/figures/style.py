"""How every figure looks, and how it is written so that the same numbers give the same file.

Style is set inside a context and never globally. Colours are those of Okabe and Ito
(https://jfly.uni-koeln.de/color/), which people with any common colour blindness tell apart; phases have
markers and roofs have dashes of their own, so that a grey print can be read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from rooflines.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

BLACK: Final = "#000000"
COLOURS: Final = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#D55E00",  # vermilion
    "#CC79A7",  # reddish purple
    "#56B4E9",  # sky blue
    "#F0E442",  # yellow
)
MARKERS: Final = {"decode": "o", "verify": "s", "prefill": "^", "draft": "D"}
DASHES: Final = ("-", "--", "-.", ":")
FILE_TYPES: Final = ("svg", "png", "pdf")

_STYLE: Final = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],  # ships with matplotlib, so that letters do not depend on the machine
    "font.size": 8,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "legend.edgecolor": "#CCCCCC",
    "legend.fontsize": 7.5,
    "legend.framealpha": 1.0,
    "legend.title_fontsize": 8,
    "lines.linewidth": 1.4,
    "savefig.bbox": "standard",
    "savefig.dpi": 150,
    "svg.fonttype": "path",
    "svg.hashsalt": "rooflines",  # identifiers in an SVG are random without it
}
# A date or a version in a file would change it although the picture did not.
_METADATA: Final[dict[str, dict[str, None]]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_MARKER_RADIUS: Final = 6.0  # pixels around the centre of a marker that a label leaves free
# Where a label may stand around its point, in points: nearest first.
_PLACES: Final = tuple(
    (dx * reach, dy * reach)
    for reach in (7, 12, 18, 26, 36, 48)
    for dx, dy in ((-1, 1), (0, 1.2), (1, 1), (1.2, 0), (-1.2, 0), (1, -1), (0, -1.2), (-1, -1))
)


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save in the house style; what was set before is set again afterwards."""
    from matplotlib import rc_context, rcParamsDefault

    # From the defaults, so that a matplotlibrc of the reader's machine changes nothing.
    settings: dict[str, Any] = {
        key: value for key, value in rcParamsDefault.items() if not key.startswith("backend")
    }
    settings.update(_STYLE)
    with rc_context(cast("Any", settings)):
        yield


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure of `columns` axes that no window manager knows of (inches)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0]) if columns else []


def new_mosaic(width: float, height: float, cells: Sequence[Sequence[str]]) -> tuple[Figure, dict[str, Axes]]:
    """An empty figure of axes in rows, by name; a name in neighbouring cells is one axis (inches)."""
    figure, _ = new_figure(width, height, 0)
    return figure, figure.subplot_mosaic([list(row) for row in cells])


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, PNG or PDF; the same figure gives the same bytes in one environment.

    Raises:
        InputError: another ending, or a file that cannot be written.
    """
    kind = file_type(path)
    try:
        figure.savefig(path, format=kind, metadata=_METADATA[kind])
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def file_type(path: Path) -> str:
    """``svg``, ``png`` or ``pdf``, from the ending.

    Raises:
        InputError: another ending.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FILE_TYPES:
        raise InputError(f"{path}: a figure is written as one of .{', .'.join(FILE_TYPES)}")
    return kind


def place_labels(
    axis: Axes, labels: Sequence[tuple[float, float, str]], avoid: Sequence[tuple[float, float]] = ()
) -> list[Annotation]:
    """Write a text beside each point, where it covers no other text of the axis, no legend and no marker.

    Each text takes the nearest free place around its point; where none is free it is left out, since a text
    that cannot be read says nothing.

    Args:
        axis: with its final limits and scales.
        labels: (x, y, text) in data coordinates.
        avoid: points in data coordinates that no text may cover.
    """
    from matplotlib.transforms import Bbox

    figure = axis.get_figure(root=True)
    if figure is None:
        raise InputError("labels can be placed on an axis of a figure only")
    # Layout moves the axes, so it must have happened before anything is measured.
    figure.draw_without_rendering()
    frame = axis.get_window_extent()
    legend = axis.get_legend()
    taken = [one.get_window_extent() for one in (*axis.texts, *([legend] if legend else []))]
    kept_free = axis.transData.transform(avoid) if avoid else ()
    placed: list[Annotation] = []
    for x, y, words in labels:
        text = axis.annotate(
            words, (x, y), (0, 0), textcoords="offset points", ha="center", va="center", fontsize=7
        )
        # A label must not move the axes while it looks for its place.
        text.set_in_layout(False)
        for dx, dy in _PLACES:
            text.set_position((dx, dy))
            box = Bbox.padded(text.get_window_extent(), 1.0)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            near = Bbox.padded(box, _MARKER_RADIUS)
            covers = any(box.overlaps(other) for other in taken) or any(
                near.contains(*spot) for spot in kept_free
            )
            if inside and not covers:
                taken.append(box)
                placed.append(text)
                break
        else:
            text.remove()
    return placed
