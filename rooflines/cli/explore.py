"""``rooflines explore``: the interactive page."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--port", default=2718, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open it.")
def explore(port: int, browser: bool) -> None:
    """Look at a plan: move sliders, see what changes."""
    from rooflines.explorer.serve import serve

    serve(port, browser=browser)
