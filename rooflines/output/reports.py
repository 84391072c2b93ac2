"""Reports that are made of several figures or tables."""

from __future__ import annotations

from pathlib import Path

from rooflines.hardware.catalogue import load_hardware
from rooflines.output.figures.fig9 import fig9_figure
from rooflines.output.figures.style import figure_style, save_figure
from rooflines.output.tables import render
from rooflines.studies.magnitudes import large_draft_map, magnitudes
from rooflines.studies.medusa_fig9 import HARDWARE, MODELS, medusa_fig9


def write_medusa_fig9(folder: Path) -> list[Path]:
    """Figure 9 and its siblings for 13B and 33B as SVG and CSV, the first as PNG too."""
    folder.mkdir(parents=True, exist_ok=True)
    profile = load_hardware(HARDWARE)
    written = []
    for size, model in MODELS.items():
        columns = medusa_fig9(model)
        table = folder / f"llama-{size}.csv"
        table.write_text(render(columns, "csv") + "\n", encoding="utf-8")
        written.append(table)
        with figure_style():
            figure = fig9_figure(
                columns,
                profile.bandwidth_bytes_per_s,
                profile.peak_flop_per_s("fp16"),
                f"Llama-{size.upper()} on one {profile.name}, textbook roofline",
            )
            for kind in ("svg", "png") if size == "7b" else ("svg",):
                save_figure(figure, folder / f"llama-{size}.{kind}")
                written.append(folder / f"llama-{size}.{kind}")
    return written


def write_magnitudes(folder: Path) -> list[Path]:
    """The table of magnitudes and the map of a 7B draft for a 13B target, as Markdown and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, grid = magnitudes(), large_draft_map()
    texts = {
        "magnitudes.md": render(rows, "markdown", "Magnitudes"),
        "magnitudes.csv": render(rows, "csv"),
        "large_draft.md": render(grid, "markdown", "Speedup of a 7B draft for a 13B target"),
        "large_draft.csv": render(grid, "csv"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return [folder / name for name in texts]
