"""The gallery: a figure with its numbers beside it, for each that people expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rooflines.hardware.catalogue import load_hardware
from rooflines.output.figures.acceptance import acceptance_figure
from rooflines.output.figures.crossover import crossover_figure
from rooflines.output.figures.cycle import cycle_figure
from rooflines.output.figures.fig9 import fig9_figure
from rooflines.output.figures.pareto import pareto_figure
from rooflines.output.figures.style import figure_style, save_figure
from rooflines.output.figures.surface import surface_figure
from rooflines.output.figures.verify_cost import verify_cost_figure
from rooflines.output.tables import render
from rooflines.rows import Columns, Row, as_rows
from rooflines.studies import gallery
from rooflines.studies.medusa_fig9 import medusa_fig9

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS: Final = {
    "draft length kept": ("draft_length", "draft "),
    "best draft length": ("drafter", ""),
    "context": ("context", "context "),
}


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A figure of the gallery.

    Attributes:
        name: of its files.
        title: above it.
        words: what to see in it.
        numbers: computes its table.
        draw: draws that table under the title.
    """

    name: str
    title: str
    words: str
    numbers: Callable[[], Columns]
    draw: Callable[[Columns, str], Figure]


def _fig9(columns: Columns, title: str) -> Figure:
    profile = load_hardware(gallery.H100)
    return fig9_figure(columns, profile.bandwidth_bytes_per_s, profile.peak_flop_per_s("bf16"), title)


def _rows(draw: Callable[[list[Row], str], Figure]) -> Callable[[Columns, str], Figure]:
    return lambda columns, title: draw(as_rows(columns), title)


EXHIBITS: Final = (
    Exhibit(
        "operators",
        "Llama-3.1-8B on one H100, textbook roofline",
        "Where the operators of a model stand, in the form of Medusa's figure 9. Decode lies on the "
        "slope: its linear layers rise with the batch, its attention does not, at about H / K = 4 FLOP "
        "per byte with grouped queries (1 in the figure of the paper). Prefill lies under the flat roof.",
        lambda: medusa_fig9(gallery.EIGHT_B, gallery.H100),
        _fig9,
    ),
    Exhibit(
        "verify-cost",
        f"Verifying for Llama-3.1-8B, context {gallery.CONTEXT}",
        "At batch 1 a pass of tens of positions costs little more than a plain step on every device; at "
        "batch 32 it costs more from the first positions on, sooner where the ridge is low. Steps are "
        "tiles: products are cut into whole ones. Devices that nobody measured have smooth lines. Bands "
        "are 90 % intervals.",
        gallery.verify_cost,
        _rows(verify_cost_figure),
    ),
    Exhibit(
        "speedup-surface",
        f"Llama-3.2-1B drafting for Llama-3.1-70B on 4 x H100, context {gallery.SURFACE_CONTEXT}",
        "The best draft length grows with acceptance and shrinks with load. Left of the thick line "
        "speculation loses.",
        gallery.speedup_surface,
        _rows(surface_figure),
    ),
    Exhibit(
        "crossovers",
        "Qwen3-8B on one H100, published acceptance of chat prompts (MT-Bench); the first two at context "
        f"{gallery.CROSSOVER_CONTEXTS[0]}, the first and the last with EAGLE-3",
        "A draft length that is kept stops paying at a batch (ring) that a shorter one survives; the best "
        "length at each batch pays up to the last batch that fits. With longer contexts reading the cache "
        "outweighs the arithmetic, and the gain hardly falls.",
        gallery.batch_crossovers,
        lambda columns, title: crossover_figure(as_rows(columns), _PANELS, title),
    ),
    Exhibit(
        "acceptance",
        "Acceptance along the draft, Qwen3-4B (DSpark, arXiv 2607.05147, figure 2)",
        "Left: each position, given that all before it were accepted. A block drafter (DFlash) falls "
        "behind after its first token, one that drafts a token after another (EAGLE-3) does not. Right: "
        "the product, which is what the cycle gets; its sum and one more are the tokens of a cycle.",
        gallery.acceptance_decay,
        _rows(acceptance_figure),
    ),
    Exhibit(
        "cycle",
        f"A cycle of {gallery.CYCLE_LENGTH} drafted tokens for Llama-3.1-8B on one H100, "
        f"context {gallery.CONTEXT}, acceptance {gallery.CYCLE_ACCEPTANCE} for all",
        "A comparison of costs: no two drafters have the same acceptance. A bar that ends before its "
        "black line gains. At batch 1 drafting decides, at batch 64 verifying does, and a tree of 60 "
        "nodes costs far more than it could emit.",
        gallery.cycle_breakdown,
        _rows(cycle_figure),
    ),
    Exhibit(
        "pareto",
        "Llama-3.1-8B on one H100, prompts of 1024, outputs of 512, acceptance 0.75",
        "What the batch trades: tokens per second of a card against tokens per second of a user. A "
        "drafter moves the curve to the right, less so where batches are large.",
        gallery.pareto,
        _rows(pareto_figure),
    ),
)


def write_gallery(folder: Path) -> list[Path]:
    """Every figure as SVG, its table as CSV, and a page that shows them all."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for exhibit in EXHIBITS:
        columns = exhibit.numbers()
        table, picture = folder / f"{exhibit.name}.csv", folder / f"{exhibit.name}.svg"
        table.write_text(render(columns, "csv") + "\n", encoding="utf-8")
        with figure_style():
            save_figure(exhibit.draw(columns, exhibit.title), picture)
        written += [table, picture]
    page = folder / "gallery.md"
    page.write_text(_page(), encoding="utf-8")
    return [*written, page]


def _page() -> str:
    """The page, in the order of the exhibits."""
    intro = (
        "`rooflines report gallery` makes these figures and the tables beside them. Settings are stated "
        "above each; times are those of the calibration that `--calibration auto` takes for the device."
    )
    parts = ["# Gallery", intro]
    for exhibit in EXHIBITS:
        parts += [
            f"## {exhibit.title}",
            f"![{exhibit.title}]({exhibit.name}.svg)",
            f"{exhibit.words} [Numbers]({exhibit.name}.csv)",
        ]
    parts.append("Medusa's own figure 9 and its siblings for 13B and 33B: [medusa-fig9](../medusa-fig9).")
    return "\n\n".join(parts) + "\n"
