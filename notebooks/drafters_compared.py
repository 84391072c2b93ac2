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
    # Drafters compared

    Who proposes? A small model, a head on the target, a block in one pass, an earlier part of the text.
    They differ in what they cost and in how often they are right, and no one of them is best everywhere.

    ## What they cost

    At equal acceptance only the costs differ. A bar that ends before its black line gains.
    """)
    return


@app.cell
def _():
    from rooflines.output.figures.cycle import cycle_figure
    from rooflines.output.figures.style import figure_style
    from rooflines.rows import as_rows
    from rooflines.studies.gallery import acceptance_decay, cycle_breakdown

    with figure_style():
        cycles = cycle_figure(
            as_rows(cycle_breakdown()), "Llama-3.1-8B on one H100, five drafted tokens, acceptance 0.75"
        )
    cycles
    return (acceptance_decay, as_rows, figure_style)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## How often they are right

    Published rates by position (DSpark, <https://arxiv.org/abs/2607.05147>, figure 2, read off).
    """)
    return


@app.cell
def _(acceptance_decay, as_rows, figure_style):
    from rooflines.output.figures.acceptance import acceptance_figure

    with figure_style():
        rates = acceptance_figure(as_rows(acceptance_decay()), "Qwen3-4B")
    rates
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Both together

    One plan takes several drafters, each with its own published acceptance (table 1 of the same paper,
    GSM8K), and says which one at which batch.
    """)
    return


@app.cell
def _(mo):
    from rooflines.output.tables import render
    from rooflines.studies.plan import PlanQuestion, make_plan

    plan = make_plan(
        PlanQuestion(
            hardware="h100-sxm5-80gb",
            target="qwen3-8b",
            drafters=("eagle3:qwen3-8b-eagle3", "dflash:qwen3-8b-dflash", "dspark:qwen3-8b-dspark"),
            acceptance=(
                "eagle3=preset:eagle3-qwen3-8b-gsm8k",
                "dflash=preset:dflash-qwen3-8b-gsm8k",
                "dspark=preset:dspark-qwen3-8b-gsm8k",
            ),
            draft_lengths=(3, 5, 7),
            batches=(1, 32, 128),
            context=2048,
        )
    )
    shown = ("drafter", "batch", "draft_length", "tokens_per_cycle", "cycle_cost", "speedup")
    mo.md(f"{plan.text}\n\n{render({name: plan.columns()[name] for name in shown}, 'markdown')}")
    return (render,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Against published numbers

    DFlash (<https://arxiv.org/abs/2602.06036>, table 5) ran Llama-3.1-8B with SGLang on a B200, whose host
    does not work while the device does: a cycle takes about 3 ms more than its passes, which one row shows
    (2.1x). With that time, and acceptance as printed (tokens per cycle), these other rows follow.
    SpecDecode-Bench (<https://specdecode-bench.github.io>, figure 1) ran EAGLE-3 with vLLM on an H100,
    which charges 1.207 ms a cycle by its own simulator.
    """)
    return


@app.cell
def _():
    # hardware, drafter, tokens per cycle, draft length, batch, host time per cycle (s), context -> speedup
    published = {
        ("b200-sxm-180gb", "dflash:block=10", 4.32, 9, 32, 3e-3, 1024): 1.6,
        ("b200-sxm-180gb", "dflash:block=10", 4.91, 9, 8, 3e-3, 1024): 2.5,
        ("b200-sxm-180gb", "eagle3:topk=10,nodes=59", 4.55, 7, 4, 3e-3, 1024): 1.6,
        ("b200-sxm-180gb", "eagle3:topk=10,nodes=59", 4.55, 7, 8, 3e-3, 1024): 1.3,
        ("h100-sxm5-80gb", "eagle3", 2.391, 3, 16, 1.207e-3, 400): 1.699,
        ("h100-sxm5-80gb", "eagle3", 2.391, 3, 64, 1.207e-3, 400): 1.486,
        ("h100-sxm5-80gb", "eagle3", 2.391, 3, 128, 1.207e-3, 400): 1.222,
    }
    return (published,)


@app.cell
def _(mo, published, render):
    from rooflines.speculation.acceptance_text import parse_rates
    from rooflines.speculation.cycle import cycle, cycle_times
    from rooflines.speculation.drafters.registry import make_drafter
    from rooflines.studies.serve import make_deployment, make_machine

    def predicted(hardware, drafter, tokens, length, batch, host_s, context):
        target = make_deployment("llama-3.1-8b", make_machine(hardware))
        proposer = make_drafter(drafter, target)
        times = cycle_times(target, proposer, float(batch), float(context), float(length), overhead_s=host_s)
        return float(cycle(times, parse_rates(f"accepted-length:{tokens}@{length}")).speedup)

    ours = [predicted(*key) for key in published]
    for key, speedup in zip(published, ours, strict=True):
        assert abs(speedup / published[key] - 1.0) <= 0.25, (key, speedup)
    mo.md(
        render(
            {
                "device": [key[0] for key in published],
                "drafter": [key[1] for key in published],
                "tokens per cycle": [key[2] for key in published],
                "batch": [key[4] for key in published],
                "published": list(published.values()),
                "ours": ours,
            },
            "markdown",
        )
    )
    return


if __name__ == "__main__":
    app.run()
