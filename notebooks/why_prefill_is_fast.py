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
    # Why prefill is fast

    A prompt is known. All its positions go through a layer together, so a weight that was read once is used
    for every one of them. The very model that waits for memory in decode is bound by arithmetic in prefill,
    and handles a token hundreds of times faster.
    """)
    return


@app.cell
def _():
    from rooflines.studies.serve import make_deployment, make_machine

    machine = make_machine("h100-sxm5-80gb")
    target = make_deployment("llama-3.1-8b", machine)
    machine.basis
    return (machine, make_deployment, make_machine, target)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The same model, two phases

    A prompt of 2048 tokens beside one step of decoding, after as many tokens.
    """)
    return


@app.cell
def _(mo, target):
    from rooflines.output.tables import render
    from rooflines.studies.intensity import study_intensity

    prefill = study_intensity(target, "prefill", batch=1, context=2048)
    decode = study_intensity(target, "decode", batch=1, context=2048)
    mo.md(f"{prefill.text}\n\n{decode.text}")
    return (decode, prefill, render)


@app.cell
def _(machine, target):
    from rooflines.output.figures.roofline import roofline_figure
    from rooflines.output.figures.style import figure_style
    from rooflines.studies.roofline import roofline_points, roofs

    points = [
        *roofline_points(target, "decode", (1,), 2048, 1),
        *roofline_points(target, "verify", (1,), 2048, 8),
        *roofline_points(target, "prefill", (1,), 0, 2048),
    ]
    with figure_style():
        figure = roofline_figure(roofs(target, ("decode", "prefill")), points, title=machine.profile.name)
    figure
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## How long must a prompt be?

    Time per token falls until the arithmetic units are busy, and hardly any further.
    """)
    return


@app.cell
def _(mo, render, target):
    lengths = (1, 16, 64, 256, 1024, 4096)
    times = [float(target.prefill(1.0, float(length)).seconds) for length in lengths]
    mo.md(
        render(
            {
                "prompt (tokens)": lengths,
                "prefill (ms)": [1e3 * time for time in times],
                "per token (us)": [1e6 * time / length for time, length in zip(times, lengths, strict=True)],
                "bound": [str(target.prefill(1.0, float(length)).bound) for length in lengths],
            },
            "markdown",
        )
    )
    return (lengths, times)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Against published numbers

    *How To Scale Your Model* (<https://jax-ml.github.io/scaling-book/applied-inference>) serves LLaMA-3-70B
    on TPU v5e: feed-forward layers become bound by arithmetic beyond 240 tokens, 240 tokens are 26e12
    operations in them, and in int8 on eight chips these take 8 ms at the least. And a prefill of the 8B
    model needs a prompt of about the ridge point, 295 tokens on an H100, by the bare rule of two operations
    and two bytes a weight.
    """)
    return


@app.cell
def _():
    published = {
        "feed-forward operations of 240 tokens": 26e12,
        "their least time, ms": 8.0,
        "v5e ridge": 240.0,
    }
    return (published,)


@app.cell
def _():
    tolerance = {
        "feed-forward operations of 240 tokens": 0.05,
        "their least time, ms": 0.15,
        "v5e ridge": 0.01,
    }
    return (tolerance,)


@app.cell
def _(decode, make_deployment, make_machine, mo, prefill, published, render, tolerance):
    tpu = make_machine("tpu-v5e", "textbook")
    eight = make_deployment("llama-3-70b", tpu, weight_dtype="int8", kv_dtype="int8", tensor=8)
    feed_forward = [
        time
        for time in eight.prefill(1.0, 240.0).operators
        if time.operator.name in ("gate and up projection", "down projection")
    ]
    per_chip = sum(float(time.operator.cost.matmul_flops) * time.operator.count for time in feed_forward)
    ours = {
        "feed-forward operations of 240 tokens": per_chip * 8,
        "their least time, ms": 1e3 * per_chip / tpu.profile.peak_flop_per_s("int8"),
        "v5e ridge": tpu.profile.ridge_point("bf16"),
    }
    for name, value in ours.items():
        assert abs(value / published[name] - 1.0) <= tolerance[name], name
    assert prefill.columns["bound"][-1] == "compute"
    assert decode.columns["bound"][-1] == "memory"
    mo.md(
        render(
            {"what": list(ours), "published": list(published.values()), "ours": list(ours.values())},
            "markdown",
        )
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    Verifying a draft is a small prefill: several known positions, one reading of the weights. How far that
    stays free is the next notebook, `verifying_is_cheap_until_it_is_not.py`.
    """)
    return


if __name__ == "__main__":
    app.run()
