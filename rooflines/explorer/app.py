"""The explorer as a marimo app: controls at the side, and beside them what follows.

`rooflines explore` serves it. Cells only wire controls to calls: `controls` says what values mean, `page`
what is shown, out of studies.
"""

from __future__ import annotations

import marimo

app = marimo.App(width="full", app_title="rooflines explorer", html_head_file="head.html")

with app.setup:
    import marimo as mo

    from rooflines.errors import RooflinesError
    from rooflines.explorer.choices import Choices, from_address
    from rooflines.explorer.controls import (
        drafted,
        drafter_options,
        drafting_controls,
        expert_options,
        keep_address,
        read_address,
        served,
        serving_controls,
    )
    from rooflines.explorer.page import shown_html


@app.cell
def _address() -> tuple[Choices, dict[str, Choices], list[str]]:
    first, notes = from_address(read_address(mo.query_params()))
    # Controls that are made anew when others change start from here.
    last = {"choices": first}
    return first, last, notes


@app.cell
def _serving(first: Choices) -> tuple[mo.ui.batch]:
    serving = serving_controls(first)
    return (serving,)


@app.cell
def _served(first: Choices, serving: mo.ui.batch) -> tuple[Choices, str]:
    try:
        base, refused = served(first, serving.value), ""
    except RooflinesError as error:
        base, refused = first, str(error)
    return base, refused


@app.cell
def _drafting(base: Choices, last: dict[str, Choices]) -> tuple[mo.ui.batch]:
    drafting = drafting_controls(drafter_options(base), last["choices"], expert_options(base))
    return (drafting,)


@app.cell
def _controls(drafting: mo.ui.batch, serving: mo.ui.batch) -> None:
    mo.Html(f'<aside class="controls"><h1>rooflines explorer</h1>{serving}{drafting}</aside>')


@app.cell
def _answer(
    base: Choices, drafting: mo.ui.batch, last: dict[str, Choices], notes: list[str], refused: str
) -> None:
    last["choices"] = drafted(base, drafting.value)
    keep_address(mo.query_params(), last["choices"])
    mo.Html(f"<main>{shown_html(last['choices'], notes, refused)}</main>")


if __name__ == "__main__":
    app.run()
