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
    # A capacity plan

    Requests arrive, prompts are processed beside the decode steps of others, and a batch settles. How many
    cards does a load need, does speculation save some of them, and at which load does it stop paying?

    ## The question

    Llama-3.1-8B for 100 requests a second, 1024 tokens in and 512 out, a token every 20 ms and the first
    within a second, for 95 % of them. One option plain, one with a small model drafting at up to eight
    tokens. Acceptance is an assumption here: give your own.
    """)
    return


@app.cell
def _(mo):
    from rooflines.output.tables import render
    from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity

    answer = make_capacity(
        CapacityQuestion(
            options=(ServedOption("h100-sxm5-80gb", drafters=("independent:llama-3.2-1b", "eagle3")),),
            target="llama-3.1-8b",
            prompt_tokens="1024",
            output_tokens="512",
            rate=100.0,
            acceptance=("0.75",),
            draft_length="0..8",
            slo_tpot="20 ms",
            slo_ttft="1 s",
        )
    )
    shown = (
        "drafter",
        "cards",
        "batch",
        "draft_length",
        "tpot_s",
        "ttft_quantile_s",
        "goodput_requests_per_s",
    )
    table = render({name: [row[name] for row in answer.rows] for name in shown}, "markdown")
    mo.md(f"{answer.text}\n\n{table}")
    return (CapacityQuestion, ServedOption, answer, make_capacity, render)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What the batch trades

    Tokens per second of a card against tokens per second of a user, batch by batch.
    """)
    return


@app.cell
def _(answer):
    from rooflines.output.figures.pareto import pareto_figure
    from rooflines.output.figures.style import figure_style

    with figure_style():
        figure = pareto_figure(answer.pareto, "Llama-3.1-8B on one H100, 1024 tokens in, 512 out")
    figure
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Where speculation stops paying
    """)
    return


@app.cell
def _(answer, mo, render):
    mo.md(
        render({name: [row[name] for row in answer.crossovers] for name in answer.crossovers[0]}, "markdown")
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Against published numbers

    AIConfigurator 0.12.0 publishes serving benchmarks (<https://pypi.org/project/aiconfigurator-core/>,
    Apache-2.0; file 2026-04-06.csv, measured 2025-10-29): Llama-3.1-70B in fp8 on H100 with vLLM, 1024
    tokens in and out, by tensor-parallel degree and concurrency: time per output token in milliseconds.
    `predict` treats each row as a closed system of that many requests; nothing is fitted to it. `rooflines
    validate serving` does so for whole tables.
    """)
    return


@app.cell
def _():
    published = {
        (2, 4): 17.407,
        (2, 16): 19.74,
        (2, 64): 28.769,
        (4, 4): 11.776,
        (4, 16): 13.192,
        (4, 64): 19.515,
    }
    return (published,)


@app.cell
def _(mo, published, render):
    from rooflines.serving.engine import Engine, step_curve
    from rooflines.serving.lengths import parse_lengths
    from rooflines.serving.steady import closed_state
    from rooflines.serving.workload import Workload
    from rooflines.studies.serve import make_deployment, make_machine

    workload = Workload.independent(
        parse_lengths("1024", "prompt tokens"), parse_lengths("1024", "output tokens"), 0.0
    )
    fast = make_machine("h100-sxm5-80gb")

    def tpot_ms(tensor, concurrency):
        engine = Engine(make_deployment("llama-3.1-70b", fast, weight_dtype="fp8", tensor=tensor))
        state = closed_state(step_curve(engine, workload), workload.decode_tokens, float(concurrency))
        return 1e3 * state.tpot_s

    ours = [tpot_ms(*key) for key in published]
    for key, predicted in zip(published, ours, strict=True):
        assert abs(predicted / published[key] - 1.0) <= 0.12, (key, predicted)
    mo.md(
        render(
            {
                "H100 cards": [cards for cards, _ in published],
                "requests at once": [requests for _, requests in published],
                "published (ms)": list(published.values()),
                "ours (ms)": ours,
            },
            "markdown",
        )
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    The error of all 855 usable rows of that table is in [capacity.md](../docs/capacity.md).
    """)
    return


if __name__ == "__main__":
    app.run()
