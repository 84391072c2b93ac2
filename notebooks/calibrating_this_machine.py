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
    # Calibrating this machine

    A datasheet says what a device could do. What it does is less, not by the same share everywhere, and
    differs between engines. So a prediction in seconds needs constants from measurements, and a calibration
    keeps them with their errors.

    ## Why: one published number

    gpt-fast reports 104.9 tokens/s for Llama-2-7B in 16 bits on an A100 80GB limited to 330 W, one sequence
    with a prompt of five tokens and some two hundred generated
    (<https://github.com/pytorch-labs/gpt-fast>). The bare datasheet promises 40 % more; constants fitted to
    kernels of another engine on such a card come near, without having seen that number.
    """)
    return


@app.cell
def _():
    published = {"Llama-2-7B on an A100, tokens/s": 104.9}
    return (published,)


@app.cell
def _(mo, published):
    from rooflines.output.tables import render
    from rooflines.studies.serve import make_deployment, make_machine

    def tokens_per_s(calibration):
        target = make_deployment("llama-2-7b", make_machine("a100-sxm4-80gb", calibration))
        return 1.0 / float(target.decode(1.0, 100.0).seconds)

    textbook, calibrated = tokens_per_s("textbook"), tokens_per_s("auto")
    (seen,) = published.values()
    assert abs(calibrated / seen - 1.0) <= 0.15
    assert textbook / seen - 1.0 > 0.30
    mo.md(
        render(
            {
                "constants": ["published", "textbook", "calibrated"],
                "tokens/s": [seen, textbook, calibrated],
                "over published": [0.0, textbook / seen - 1.0, calibrated / seen - 1.0],
            },
            "markdown",
        )
    )
    return (render,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## This machine

    `make measurements` times it, and `rooflines report measured` fits and checks what was measured, into
    `reports/measurements`. Where that has not been run yet, what follows shows a recorded run of the same
    kind, from `docs/example-project`.
    """)
    return


@app.cell
def _(mo):
    from rooflines.measurement.files import read_measured

    root = mo.notebook_dir().parent
    measured_here = (root / "reports/measurements/decode-calibration.toml").is_file()
    folder = root / ("reports/measurements" if measured_here else "docs/example-project/measurements")
    calibration_file = folder / ("decode-calibration.toml" if measured_here else "calibration.toml")
    speculation_file = folder / ("speculation.json" if measured_here else "runs.json")
    runs = read_measured(speculation_file)
    origin = f"{runs.inputs.model} in {runs.inputs.dtype} on {runs.machine.device}, {runs.created[:10]}"
    mo.md(f"Measured: {origin}, in `{folder.name}`.")
    return (calibration_file, folder, read_measured, runs, speculation_file)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ### What it sustains

    Reading streams and multiplying squares, on the threads that were used.
    """)
    return


@app.cell
def _(folder, mo, render):
    from rooflines.hardware.catalogue import load_hardware
    from rooflines.units import format_quantity

    profile = load_hardware(folder / "machine.toml")
    stated = {"memory bandwidth": format_quantity(profile.bandwidth_bytes_per_s, "byte/s")} | {
        f"peak, {name}": format_quantity(profile.peak_flop_per_s(name), "FLOP/s") for name in profile.peaks
    }
    mo.md(render({"what": list(stated), "sustained": list(stated.values())}, "markdown"))
    return (profile,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ### How a pass grows with its width

    Medians with quartiles, hollow since measured. On a CPU memory and arithmetic add up, so verifying is
    not free there from the second position on.
    """)
    return


@app.cell
def _(folder, mo, read_measured):
    from rooflines.output.figures.steps import steps_figure
    from rooflines.output.figures.style import figure_style
    from rooflines.studies.measured import curves

    decode_file = folder / "decode.json"
    if decode_file.is_file():
        with figure_style():
            shown = steps_figure(curves(read_measured(decode_file)), folder.name)
    else:
        shown = mo.md("The recorded run keeps no decode passes: `make measurements` makes `decode.json`.")
    shown
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ### The constants, and how wrong they are

    Errors are those of whole passes that were left out of the fit one by one.
    """)
    return


@app.cell
def _(calibration_file, mo, render):
    from rooflines.hardware.calibration_files import load_calibration

    calibration = load_calibration(calibration_file)
    linear = next(one for one in calibration.operators if one.operator == "linear")
    residuals = {
        name: [getattr(one, name) for one in linear.residuals]
        for name in ("region", "rows", "median_abs_error", "p90_abs_error", "bias")
    }
    mo.md(f"{calibration.name}: {linear.form}\n\n{render(residuals, 'markdown')}")
    return (calibration,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ### Held against speculation that it never saw

    The calibration predicts the speedup of every run of the speculative loop from single passes. The
    composition of the parts that were timed within the loop is held against the same. A case that
    disagrees names the part at fault, as `rooflines check` does.
    """)
    return


@app.cell
def _(calibration, mo, profile, render, runs, speculation_file):
    from rooflines.output.check_report import check_columns
    from rooflines.validation.check import Reference, check_speculation

    report = check_speculation(runs, speculation_file.name, reference=Reference(profile, calibration))
    columns = check_columns(report)
    mo.md(render(columns, "markdown"))
    return


if __name__ == "__main__":
    app.run()
