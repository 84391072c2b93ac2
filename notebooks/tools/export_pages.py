"""Runs notebooks and writes each as one HTML file that loads nothing: prose, code, and what cells show.

`marimo export html` writes a file that fetches marimo's frame from a CDN when it is opened. Cells here show
prose, text and figures, which need no frame: python notebooks/tools/export_pages.py FOLDER [NOTEBOOK.py ...]
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import re
import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import marimo as mo
from matplotlib.figure import Figure

from rooflines.output.page import inline_svg

NOTEBOOKS: Final = Path(__file__).resolve().parents[1]
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE: Final = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
a { color: #0b5394; }
pre, code { font: .85rem/1.45 ui-monospace, monospace; }
pre { background: #f6f6f6; padding: .75rem; overflow-x: auto; }
.paragraph { display: block; margin: 1rem 0; }
.shown { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #d0d0d0; }
svg { max-width: 100%; height: auto; }
"""
# What marimo's frame would have to draw.
_FRAME: Final = re.compile(r"<marimo-[\w-]+")


def cells(source: str) -> list[str]:
    """The code of each cell as it is read, empty where the notebook hides it."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any(
            "app.cell" in ast.unparse(d) for d in node.decorator_list
        ):
            hidden = any("hide_code=True" in ast.unparse(d) for d in node.decorator_list)
            kept = [line for line in node.body if not isinstance(line, ast.Return)]
            lines = source.splitlines()[kept[0].lineno - 1 : kept[-1].end_lineno] if kept else []
            found.append("" if hidden else textwrap.dedent("\n".join(lines)))
    return found


def shown(output: Any, number: int) -> str:
    """What a cell shows, as HTML.

    Raises:
        TypeError: only marimo's frame could show it.
    """
    if output is None:
        return ""
    if isinstance(output, Figure):
        return inline_svg(output, f"cell{number}")
    text = f"<p>{escape(output)}</p>" if isinstance(output, str) else mo.as_html(output).text
    frame = _FRAME.search(text)
    if frame:
        raise TypeError(
            f"cell {number} shows {frame[0]}>, which needs marimo's frame: use prose, text or a figure"
        )
    return text


def page(path: Path) -> str:
    """Run a notebook, and lay out its cells."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, _ = module.app.run()
    codes = cells(path.read_text(encoding="utf-8"))
    parts = []
    for number, (code, output) in enumerate(zip(codes, outputs, strict=True), 1):
        parts += [f"<pre>{escape(code)}</pre>"] if code else []
        text = shown(output, number)
        # What may be too wide is scrolled, with the keyboard too.
        focus = ' tabindex="0"' if "<table" in text else ""
        parts += [f'<div class="shown"{focus}>{text}</div>'] if text else []
    title = escape(path.stem.replace("_", " ").capitalize())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where pages go")
    parser.add_argument("notebooks", type=Path, nargs="*", help="all of them where none is named")
    asked = parser.parse_args(arguments)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for path in asked.notebooks or sorted(NOTEBOOKS.glob("*.py")):
        (asked.folder / f"{path.stem}.html").write_text(page(path), encoding="utf-8")


if __name__ == "__main__":
    main()
