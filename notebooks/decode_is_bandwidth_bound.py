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
    # Decode is bound by bandwidth

    One token of plain decoding uses every weight once, for one multiplication and one addition. The weight
    has to come out of memory for that, so a chip that can do hundreds of operations in the time of reading
    a byte waits for its memory.

    This notebook asks where a step of Llama-3.1-8B on one H100 spends its time, and holds the answer
    against what vLLM was measured to take. Sources stand beside each number that comes from outside.
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
    ## One step, operator by operator

    `study_intensity` is what `rooflines intensity` prints. Read the column of FLOP per byte: linear layers
    do about one, since a weight of two bytes is used for two operations. The device could do 295 in the
    time of one byte (its *ridge point*).
    """)
    return


@app.cell
def _(mo, target):
    from rooflines.output.tables import render
    from rooflines.studies.intensity import study_intensity

    step = study_intensity(target, "decode", batch=1, context=1024)
    shown = (
        "operator",
        "count",
        "flops",
        "weight_bytes",
        "kv_bytes",
        "intensity_flop_per_byte",
        "time_s",
        "share",
        "bound",
    )
    mo.md(f"{step.text}\n\n{render({name: step.columns[name] for name in shown}, 'markdown')}")
    return (render, step, study_intensity)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Under the roof

    The same operators as points: on the slope, far left of the ridge. A larger batch moves the linear
    layers to the right, because its sequences share the weights. Attention stays where it is, because each
    sequence has a cache of its own.
    """)
    return


@app.cell
def _(machine, target):
    from rooflines.output.figures.roofline import roofline_figure
    from rooflines.output.figures.style import figure_style
    from rooflines.studies.roofline import roofline_points, roofs

    points = roofline_points(target, "decode", (1, 8, 64), 1024, 1)
    with figure_style():
        figure = roofline_figure(roofs(target, ("decode",)), points, title=machine.profile.name)
    figure
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Against published numbers

    - SpecDecode-Bench fitted the time of a vLLM 0.10.1 step of this very model on an H100 to 5.886 ms and
      21.01 us a token and 39.26 ns a cached token (<https://specdecode-bench.github.io>): 5.95 ms for one
      sequence at a context of 1024.
    - A public calculator prints 41.8 ms for 70B weights of 16 bits read by one H100
      (<https://www.aiinframap.com/tools/chips/memory-bandwidth-bottleneck-detector>), which is a bare
      division: *textbook*.
    - The ridge point of a TPU v5e is 240 (<https://jax-ml.github.io/scaling-book/applied-inference>).
    """)
    return


@app.cell
def _():
    published = {"H100 step, ms": 5.95, "70B textbook step, ms": 41.8, "TPU v5e ridge, FLOP/byte": 240.0}
    return (published,)


@app.cell
def _():
    tolerance = {"H100 step, ms": 0.15, "70B textbook step, ms": 0.05, "TPU v5e ridge, FLOP/byte": 0.01}
    return (tolerance,)


@app.cell
def _(make_deployment, make_machine, mo, published, render, step, target, tolerance):
    large = make_deployment("llama-3.1-70b", make_machine("h100-sxm5-80gb", "textbook"))
    ours = {
        "H100 step, ms": 1e3 * float(target.decode(1.0, 1024.0).seconds),
        "70B textbook step, ms": 1e3 * float(large.decode(1.0, 1024.0).seconds),
        "TPU v5e ridge, FLOP/byte": make_machine("tpu-v5e", "textbook").profile.ridge_point("bf16"),
    }
    for name, value in ours.items():
        assert abs(value / published[name] - 1.0) <= tolerance[name], name
    assert step.columns["bound"][-1] == "memory"
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
    All three hold. So most of the arithmetic of the chip idles during decode. Two things can use it: more
    sequences at once, and more tokens of one sequence at once. The second is speculation.
    """)
    return


if __name__ == "__main__":
    app.run()
