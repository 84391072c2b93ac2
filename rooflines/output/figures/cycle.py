"""What a cycle is made of, by drafter: bars of draft and verify in plain decode steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rooflines.output.figures.style import BLACK, COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
# Column, what people call it, colour, hatch: a grey print has the hatches.
PARTS: Final = (
    ("verify_steps", "verify", COLOURS[0], ""),
    ("draft_steps", "draft", COLOURS[1], "////"),
    ("overhead_steps", "overhead", COLOURS[2], "...."),
)
_ROOM: Final = 1.16  # right of the longest bar, for its number


def draw_cycle(axis: Axes, rows: Sequence[Row], names: bool = True) -> None:
    """One bar a drafter; a line where the tokens of a cycle end, and the speedup at the end of the bar.

    A bar as long as the line breaks even: it costs as many plain steps as the cycle emits tokens.

    Args:
        axis: an empty axis.
        rows: of one batch, with `drafter`, `tokens_per_cycle`, `speedup` and columns of `PARTS`; a part that
            the rows lack, or that is 0 in all, is left out.
        names: whether the drafters are written at the bars.
    """
    heights = list(range(len(rows)))[::-1]
    ends = [0.0] * len(rows)
    for column, label, colour, hatch in PARTS:
        widths = [float(row.get(column, 0.0)) for row in rows]
        if any(widths):
            axis.barh(
                heights,
                widths,
                left=ends,
                height=0.62,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.6,
                label=label,
            )
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
    for index, (row, height) in enumerate(zip(rows, heights, strict=True)):
        tokens = row["tokens_per_cycle"]
        axis.plot(
            [tokens, tokens],
            [height - 0.42, height + 0.42],
            color=BLACK,
            linewidth=2.0,
            label=None if index else "tokens emitted",
        )
        axis.text(max(ends[index], tokens), height, f"  {row['speedup']:.2f}x", va="center", fontsize=7.5)
    axis.set_yticks(heights, [row["drafter"] for row in rows] if names else [""] * len(rows))
    axis.set_xlim(0.0, _ROOM * max(*ends, *(row["tokens_per_cycle"] for row in rows)))
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("plain decode steps, and tokens")


def cycle_figure(rows: Sequence[Row], title: str) -> Figure:
    """One axis a batch; call it within `figure_style`."""
    batches = list(dict.fromkeys(row["batch"] for row in rows))
    tallest = max(sum(row["batch"] == batch for row in rows) for batch in batches)
    figure, axes = new_figure(4.6 * len(batches) + 1.4, 0.36 * tallest + 1.6, len(batches))
    figure.suptitle(title, fontsize=10)
    for index, (axis, batch) in enumerate(zip(axes, batches, strict=True)):
        draw_cycle(axis, [row for row in rows if row["batch"] == batch], names=index == 0)
        axis.set_title(f"batch {batch}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
