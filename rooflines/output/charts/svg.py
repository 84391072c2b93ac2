"""The parts of a chart: elements, scales, axes, marks, legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from rooflines.output.tables import readable

INK: Final = "#1a1a1a"
QUIET: Final = "#555555"
GRID: Final = "#dddddd"
WIDTH: Final = 560.0
DASHES: Final = ("", "6 4", "2 3")  # one a device
SHAPES: Final = ("o", "s", "^", "D", "v")  # one a drafter
_LETTER: Final = 7.0  # mean width of a letter of 12 px in a sans-serif face (px)
_LINE: Final = 17.0
_SWATCH: Final = 20.0
_GAP: Final = 16.0
_SHAPES: Final[dict[str, str]] = {
    "o": "M-1,0A1,1,0,1,0,1,0A1,1,0,1,0,-1,0Z",
    "s": "M-.9,-.9H.9V.9H-.9Z",
    "^": "M0,-1.1L1,.8H-1Z",
    "D": "M0,-1.2L1.2,0L0,1.2L-1.2,0Z",
    "v": "M0,1.1L1,-.8H-1Z",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places.

    Attributes:
        low: value at the start.
        high: value at the end, above `low`.
        start: place of the low end (px).
        end: place of the high end (px).
        base: of a logarithmic scale; 0 for a linear one.
        whole: whether its values are whole numbers, so that its ticks are.
    """

    low: float
    high: float
    start: float
    end: float
    base: int = 0
    whole: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value (px)."""
        low, high, at = (math.log(v) if self.base else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the scale."""
        return math.isfinite(value) and self.low <= value <= self.high

    def ticks(self) -> list[float]:
        """Round values along the scale, about six."""
        if self.base:
            return _powers(self.low, self.high, self.base)
        step = _round_step((self.high - self.low) / 6.0)
        step = max(step, 1.0) if self.whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _powers(low: float, high: float, base: int) -> list[float]:
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / 9))
    return [float(base) ** power for power in range(first, last + 1, step)]


def _round_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, the nearest above."""
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))


@dataclass(frozen=True, slots=True)
class Plot:
    """Two scales, and what is drawn between them.

    Attributes:
        x: to the right.
        y: upwards.
    """

    x: Scale
    y: Scale

    def line(
        self, points: Iterable[tuple[float, float]], colour: str, *, dash: str = "", width: float = 1.8
    ) -> str:
        """A line through points in data coordinates."""
        path = "L".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        return element(
            "path", d=f"M{path}", fill="none", stroke=colour, stroke_width=width, stroke_dasharray=dash
        )

    def area(self, outline: Iterable[tuple[float, float]], colour: str, opacity: float = 0.15) -> str:
        """A filled outline in data coordinates."""
        path = "L".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in outline)
        return element("path", d=f"M{path}Z", fill=colour, fill_opacity=opacity, stroke="none")

    def mark(self, x: float, y: float, shape: str, colour: str, hover: str, *, size: float = 5.0) -> str:
        """A marker that says what it is under the pointer."""
        return mark(self.x(x), self.y(y), shape, colour, hover, size=size)

    def label(
        self, x: float, y: float, words: str, *, anchor: str = "start", dx: float = 6.0, dy: float = -6.0
    ) -> str:
        """A text beside a point."""
        return text(self.x(x) + dx, self.y(y) + dy, words, anchor=anchor)

    def axes(
        self, x_label: str, y_label: str, x_text: Callable[[float], str], y_text: Callable[[float], str]
    ) -> str:
        """Grid, ticks and labels with units."""
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        parts = [
            text((left + right) / 2, bottom + 36, x_label, anchor="middle", colour=INK),
            element(
                "text",
                escape(y_label),
                transform=f"translate({left - 48:.0f},{(top + bottom) / 2:.0f})rotate(-90)",
                text_anchor="middle",
                fill=INK,
            ),
        ]
        for value in self.x.ticks():
            at = self.x(value)
            parts.append(_rule(at, bottom, at, top))
            parts.append(text(at, bottom + 16, x_text(value), anchor="middle"))
        for value in self.y.ticks():
            at = self.y(value)
            parts.append(_rule(left, at, right, at))
            parts.append(text(left - 6, at + 4, y_text(value), anchor="end"))
        return "".join(parts)


def plot(
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    bases: tuple[int, int] = (0, 0),
    whole: bool = False,
    height: float = 250.0,
) -> Plot:
    """An empty plot of the usual size.

    Args:
        x: ends of the horizontal axis.
        y: ends of the vertical axis.
        bases: of logarithmic axes; 0 for linear ones.
        whole: whether the horizontal axis counts something.
        height: of the plotted area (px).
    """
    return Plot(Scale(*x, 64.0, WIDTH - 16.0, bases[0], whole), Scale(*y, height + 14.0, 14.0, bases[1]))


def element(name: str, *content: str, **attributes: object) -> str:
    """An SVG element; content is markup, attributes are escaped, empty ones left out."""
    written = "".join(
        f' {key.replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items() if value != ""
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: str, *, anchor: str = "start", colour: str = QUIET) -> str:
    """A text (px)."""
    return element("text", escape(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, fill=colour)


def mark(x: float, y: float, shape: str, colour: str, hover: str, *, size: float = 5.0) -> str:
    """A marker at a place (px) that says what it is under the pointer."""
    title = [element("title", escape(hover))] if hover else []
    return element(
        "path",
        *title,
        d=_SHAPES[shape],
        transform=f"translate({x:.1f},{y:.1f})scale({size:g})",
        fill=colour,
        stroke="#ffffff",
        stroke_width=0.18,
    )


def bar(x: float, y: float, width: float, height: float, *, colour: str, hover: str) -> str:
    """A piece of a bar (px) that says what it is under the pointer."""
    return element(
        "rect",
        element("title", escape(hover)),
        x=f"{x:.1f}",
        y=f"{y:.1f}",
        width=f"{max(width, 0.0):.1f}",
        height=f"{height:.1f}",
        fill=colour,
        stroke="#ffffff",
    )


def legend(entries: Sequence[tuple[str, str]], top: float) -> tuple[str, float]:
    """Swatches with names, in rows.

    Args:
        entries: (markup of a swatch around 0, 0; name).
        top: (px).

    Returns:
        Markup, and where it ends (px).
    """
    parts, x, y = [], 16.0, top
    for swatch, name in entries:
        wide = _SWATCH + _LETTER * len(name) + _GAP
        if x + wide > WIDTH and x > _GAP:
            x, y = 16.0, y + _LINE
        parts.append(element("g", swatch, transform=f"translate({x + 6:.1f},{y:.1f})"))
        parts.append(text(x + _SWATCH, y + 4, name, colour=INK))
        x += wide
    return "".join(parts), y + _LINE


def swatch_line(colour: str, dash: str = "") -> str:
    """A swatch of a line."""
    return element("line", x1=-7, y1=0, x2=9, y2=0, stroke=colour, stroke_width=2.2, stroke_dasharray=dash)


def swatch_box(colour: str) -> str:
    """A swatch of a bar."""
    return element("rect", x=-6, y=-6, width=12, height=12, fill=colour)


def chart(title: str, height: float, parts: Iterable[str]) -> str:
    """A whole chart of the usual width; its title is read out."""
    return element(
        "svg",
        element("title", escape(title)),
        element("rect", width=f"{WIDTH:g}", height=f"{height:.0f}", fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {height:.0f}",
        role="img",
        font_family="system-ui, sans-serif",
        font_size=12,
    )


def finished(title: str, plane: Plot, parts: Sequence[str], entries: Sequence[tuple[str, str]]) -> str:
    """A chart of a plot with its legend below."""
    legends, end = legend(entries, plane.y.start + 60)
    return chart(title, end, [*parts, legends])


def short(value: float) -> str:
    """A number on an axis: 3 digits, with a prefix from thousands on."""
    for limit, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            factor = 1e3 if prefix == "k" else limit
            return f"{readable(value / factor, 3)}{prefix}"
    return readable(value, 3)


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
    return element("line", **ends, stroke=GRID)
