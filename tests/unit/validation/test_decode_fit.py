"""The form is found again on a simulated machine; what cannot be known is said, and no form is forced."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rooflines.errors import FileFormatError, InputError
from rooflines.hardware.calibration import ANY
from rooflines.hardware.calibration_files import calibration_text, read_calibration
from rooflines.measurement.schema import Inputs, Step, StepsFile
from rooflines.timing.step_times import StepTable
from rooflines.validation.decode_calibration import calibrate_decode
from rooflines.validation.decode_costs import measured_passes
from rooflines.validation.decode_fit import fit_decode, missing_axes
from rooflines.validation.measured_model import first_layers, int4_storage, measured_model, quantised_copy


@pytest.fixture(scope="module")
def made(simulator, root, profile):
    return calibrate_decode(simulator.decode_file(root, seed=1), "decode.json", profile, "mine")


def entry(made, operator, storage=ANY):
    return made.calibration.find(operator, "bf16", storage)


def test_the_bandwidths_of_the_machine_are_found_again(made, simulator):
    """Given 3 % noise, 12 % drift and hiccups: bandwidths to 4 %, the host's time within half a millisecond."""
    assert made.fit.fits
    assert made.fit.separates
    assert made.fit.sharpness <= 1.25
    linear, copy = entry(made, "linear", "bf16").constants, entry(made, "linear", "int4-g32").constants
    assert linear.bandwidth_efficiency * 32e9 == pytest.approx(simulator.BANDWIDTH, rel=0.04)
    # The packed copy is taken for 4.625 bits a weight (a zero point of 4 bits), the truth stores 5.
    assert copy.bandwidth_efficiency * 32e9 == pytest.approx(simulator.INT4_BANDWIDTH, rel=0.25)
    assert made.calibration.host_overhead_s == pytest.approx(simulator.HOST_S, abs=0.5e-3)
    assert linear.overhead_s == pytest.approx(simulator.KERNEL_S, rel=0.35)


def test_arithmetic_is_found_within_the_noise_of_wide_passes(made, simulator):
    found = entry(made, "linear", "bf16").constants.compute_efficiency * 208e9
    # Activations, which the simulated machine moves for nothing, take a part of the time of wide passes.
    assert found == pytest.approx(simulator.RATE, rel=0.25)


def test_without_noise_the_fit_meets_every_pass(simulator, root):
    file = simulator.decode_file(root, noise=0.0, drift=0.0, rounds=1)
    samples = [one for one in file.samples if one.case != "empty"]
    passes = measured_passes(measured_model(file.inputs), samples, "int4-g32")
    fit = fit_decode(passes)
    again = passes.times(fit.seconds_per_byte, fit.seconds_per_flop, fit.kernel_s, fit.host_s, fit.sharpness)
    # One hiccup of 30 % may stand among single, unrepeated times: the soft loss must not follow it.
    errors = np.abs(again / passes.seconds - 1.0)
    assert np.median(errors) < 0.01


def test_a_smooth_maximum_is_told_from_a_sum(simulator, root):
    """Passes made with p = 2.5 give p = 2.5 back, and a much smaller error than adding does."""
    file = simulator.decode_file(root, rounds=1)
    samples = [one for one in file.samples if one.case not in ("empty", "draft")]
    plain = measured_passes(measured_model(file.inputs), samples, None)
    groups = len(plain.groups)
    seconds = plain.times(np.full(groups, 1 / 8e9), np.full(groups, 1 / 60e9), 2e-5, 1e-3, 2.5)
    made = type(plain)(**{name: getattr(plain, name) for name in plain.__slots__} | {"seconds": seconds})
    fit = fit_decode(made)
    assert fit.sharpness == 2.5
    assert fit.rms < 0.01


def test_residuals_are_of_passes_that_were_held_out(made):
    told = entry(made, "linear", "bf16").residuals
    assert {one.region for one in told} >= {
        "all",
        "all layers",
        "decode",
        "2-8 positions",
        "prefill",
        "draft",
        "parts",
    }
    everything = told[0]
    assert everything.rows == 36
    assert not everything.in_sample
    assert 0 < everything.median_abs_error < 0.05
    assert everything.log_q05 < everything.log_q95


def test_provenance_says_what_was_left_out(made):
    provenance = entry(made, "linear", "bf16").provenance
    assert provenance.files == ("decode.json",)
    assert provenance.stack == "torch 2.13.0"
    assert [left.rows for left in provenance.left_out] == [1]


def test_a_calibration_is_written_and_read(made, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(calibration_text(made.calibration), encoding="utf-8")
    again = read_calibration(file)
    assert again.device == "measured-simulated-1t"
    assert calibration_text(again) == file.read_text(encoding="utf-8")


def test_kernels_that_no_form_fits_leave_their_table(simulator, root, profile):
    """fp32 on MKL: T(2) is 1.69 times T(1), T(4) only 1.38 times."""
    grid = [cell for cell in simulator.GRID if cell[0] == "step"]
    made = calibrate_decode(simulator.decode_file(root, grid=grid, dtype="fp32"), "d", profile, "mine")
    assert not made.fit.fits
    assert "No form fits" in made.text
    assert not made.calibration.operators
    steps = StepTable.of(made.calibration.steps)
    curve = [steps.verify(1, 128, n).seconds / steps.decode(1, 128).seconds for n in (2, 4, 8)]
    assert curve == pytest.approx([1.69, 1.38, 1.57], rel=0.06)


def test_widths_alone_cannot_separate_bandwidth_from_overhead(simulator, root, profile):
    grid = [("step", 1, n, 128, simulator.LAYERS) for n in range(1, 17)]
    made = calibrate_decode(simulator.decode_file(root, grid=grid), "d", profile, "mine")
    assert not made.fit.separates
    assert "cannot separate bandwidth of linear bf16" in made.text
    for axis in ("--depth", "--context", "--batch"):
        assert axis in made.text
    assert len(made.calibration.steps) == 16
    assert not made.calibration.operators


def test_depths_need_the_head_to_tell_bytes_from_kernels(simulator, root, profile):
    """Kernels and bytes of a layer grow together; the head alone has the one without the other."""
    grid = [("step", 1, n, 128, d) for n in (1, 4, 16) for d in (1, 5, 10, 20, 30)]
    made = calibrate_decode(simulator.decode_file(root, grid=grid), "d", profile, "mine")
    assert not made.fit.separates
    assert "the head alone" in made.text
    grid += [("head", 1, n, 0, 0) for n in (1, 8)]
    made = calibrate_decode(simulator.decode_file(root, grid=grid), "d", profile, "mine")
    assert made.fit.separates


def test_what_should_vary_is_named():
    class Sample:
        case, batch, context, depth = "step", 1, 128, 30

    assert len(missing_axes([Sample()])) == 4
    assert missing_axes([]) == missing_axes([Sample()])


def test_speculation_is_never_fitted(simulator, root, profile):
    with pytest.raises(InputError, match="speculation judges"):
        calibrate_decode(simulator.speculation_file(root), "runs.json", profile, "mine")


def test_a_handful_of_points_is_refused_with_what_to_add(simulator, root, profile):
    file = simulator.decode_file(root, grid=simulator.GRID[:4])
    with pytest.raises(InputError, match="at least 8 are needed; add layers that run"):
        calibrate_decode(file, "d", profile, "mine")


def test_a_table_of_another_tool_is_taken_as_it_is(simulator, root, profile):
    file = simulator.decode_file(root)
    steps = tuple(Step(batch=1, new_positions=n, context=0, seconds=(0.01 * n, 0.03 * n)) for n in (1, 2))
    header = {
        name: getattr(file, name) for name in type(file).model_fields if name not in ("kind", "samples")
    }
    table = StepsFile(**header, source="llama-bench b1234", steps=steps)
    made = calibrate_decode(table, "bench.json", profile, "mine")
    assert made.fit is None
    assert [cell.time_s for cell in made.calibration.steps] == pytest.approx([0.02, 0.04])


def test_the_measured_model_comes_from_its_config(simulator, root):
    inputs = simulator.header(root)["inputs"]
    model = measured_model(inputs)
    assert (len(model.layers), model.dtype) == (30, "bf16")
    short = first_layers(model, 10)
    assert short.parameters_total == model.parameters_total - 20 * (simulator.LAYER_PARAMETERS + 2 * 576)
    with pytest.raises(FileFormatError, match="no config"):
        measured_model(Inputs())


def test_a_copy_in_four_bits_has_its_head_in_four_bits_too(simulator, root):
    inputs = simulator.header(root)["inputs"]
    model = measured_model(inputs)
    assert int4_storage(inputs) == "int4-g32"
    copy = quantised_copy(model, "int4-g32")
    matrices = simulator.LAYERS * simulator.LAYER_PARAMETERS + simulator.HEAD_PARAMETERS
    bits = 4 + (16 + 4) / 32
    vectors = (2 * simulator.LAYERS + 1) * 576 * 2
    embedding = simulator.HEAD_PARAMETERS * 2
    assert copy.weight_bytes == pytest.approx(matrices * bits / 8 + vectors + embedding)
    with pytest.raises(FileFormatError, match="group_size is None"):
        int4_storage(Inputs(config=json.dumps({})))
