import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell(hide_code=True)
def _():
    import marimo as mo

    return (mo,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Choosing a draft length

    A longer draft can yield more tokens per cycle, but each further token is accepted less often, and costs
    the same to draft. There is a best length, and it depends on acceptance, on what drafting costs and on
    the load.

    ## When verifying is free

    Leviathan, Kalman and Matias (<https://arxiv.org/abs/2211.17192>) take the verify pass as one step.
    `study_speedup` is `rooflines speedup`: acceptance, draft length and the cost of a drafted token in
    plain steps are all that it needs.
    """)
    return


@app.cell
def _(mo):
    from rooflines.output.tables import render
    from rooflines.speculation.acceptance_text import parse_acceptance
    from rooflines.studies.speedup import study_speedup

    study = study_speedup(parse_acceptance("0.8"), range(9), cost_ratio=0.05)
    mo.md(f"{study.text}\n\n{render(study.columns, 'markdown')}")
    return (parse_acceptance, render, study_speedup)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## When it is not

    With every pass priced, the best length also falls with the batch. White dots are the best lengths; left
    of the thick line speculation loses.
    """)
    return


@app.cell
def _():
    from rooflines.output.figures.style import figure_style
    from rooflines.output.figures.surface import surface_figure
    from rooflines.rows import as_rows
    from rooflines.studies.gallery import speedup_surface

    surface = as_rows(speedup_surface())
    with figure_style():
        figure = surface_figure(surface, "Llama-3.2-1B drafting for Llama-3.1-70B on 4 x H100, context 2048")
    figure
    return (surface,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    What each further token adds, by position (`rooflines plan --explain`):
    """)
    return


@app.cell
def _(mo, render):
    from rooflines.studies.plan import PlanQuestion, make_plan

    plan = make_plan(
        PlanQuestion(
            hardware="h100-sxm5-80gb",
            target="llama-3.1-70b",
            tensor_parallel=4,
            drafters=("independent:llama-3.2-1b",),
            acceptance="0.8",
            draft_lengths=(2, 4, 6, 8),
            batches=(1, 64),
            context=2048,
            explain=True,
        )
    )
    columns = {name: [row[name] for row in plan.marginal] for name in plan.marginal[0]}
    mo.md(f"{plan.text}\n\n{render(columns, 'markdown')}")
    return (plan,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Against published numbers

    Table 4 of the paper (appendix A.3) predicts T5-XXL's improvement from acceptance, draft length and cost
    ratio. All are printed to two digits. (Two more of its rows do not follow from their own numbers:
    `tests/golden/test_leviathan.py`.)
    """)
    return


@app.cell
def _():
    published = {
        (0.75, 7, 0.02): 3.2,
        (0.80, 7, 0.04): 3.3,
        (0.82, 7, 0.11): 2.5,
        (0.62, 7, 0.02): 2.3,
        (0.68, 5, 0.04): 2.4,
        (0.65, 5, 0.02): 2.4,
        (0.73, 5, 0.04): 2.6,
        (0.53, 5, 0.02): 1.9,
    }
    return (published,)


@app.cell
def _(mo, parse_acceptance, plan, published, render, study_speedup, surface):
    ours = {
        (alpha, length, cost): study_speedup(parse_acceptance(f"{alpha}"), (length,), cost).columns[
            "speedup"
        ][-1]
        for alpha, length, cost in published
    }
    for key, speedup in ours.items():
        assert abs(speedup - published[key]) <= 0.055, key
    best = {row["batch"]: row["draft_length"] for row in plan.recommendation}
    assert best[64] < best[1]
    assert max(surface, key=lambda row: row["speedup"])["acceptance"] == max(
        row["acceptance"] for row in surface
    )
    mo.md(
        render(
            {
                "acceptance": [alpha for alpha, _, _ in published],
                "draft length": [length for _, length, _ in published],
                "cost ratio": [cost for _, _, cost in published],
                "published": list(published.values()),
                "ours": list(ours.values()),
            },
            "markdown",
        )
    )
    return


if __name__ == "__main__":
    app.run()
