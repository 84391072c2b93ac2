"""The study of accuracy on excerpts of every table, and its parts worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import CannotTellError
from rooflines.hardware.constants import Constants
from rooflines.output.accuracy_report import write_accuracy
from rooflines.studies.accuracy import MODELS, median_constants, study_accuracy, verify_models
from rooflines.studies.accuracy_targets import Target, targets
from rooflines.validation.judge import Judged
from rooflines.validation.kernel_tables import Group


@pytest.fixture(scope="module")
def study(root):
    return study_accuracy(root / "tests" / "reference" / "kernels")


def layer(measured, predicted, size):
    count = len(measured)
    numbers = {name: np.full(count, np.nan) for name in ("low", "high")}
    return Judged(
        Group("h100-sxm5-80gb", "vllm", "", "", "layer", "bf16"),
        "time",
        "by hand",
        "rows.csv",
        line=np.arange(count) + 2,
        region=np.full(count, "m <= 64"),
        shape=np.full(count, "a"),
        size=np.asarray(size, dtype=float),
        measured=np.asarray(measured, dtype=float),
        predicted=np.asarray(predicted, dtype=float),
        plain=np.asarray(measured, dtype=float) / 2,
        in_sample=np.zeros(count, dtype=bool),
        **numbers,
    )


def test_additive_and_table_are_judged_between_the_widths_they_are_made_of():
    """A line is the additive model's own form, and interpolation of a line is exact."""
    size = np.arange(1.0, 18.0)
    measured = 100.0 + 5.0 * size
    found = verify_models([layer(measured, measured * 1.1, size)])
    assert found["region"] == ["n 2-16"]
    assert found["rows"] == [8]  # widths 2, 4, ..., 16
    assert found["additive"] == pytest.approx([0.0], abs=1e-9)
    assert found["table"] == pytest.approx([0.0], abs=1e-9)
    assert found["roofline"] == pytest.approx([0.1])
    assert found["plain roofline"] == pytest.approx([0.5])


def test_a_step_between_two_widths_is_missed_by_the_table_and_the_line():
    size = np.array([1, 2, 4, 8, 16, 32, 64, 65, 128], dtype=float)
    measured = np.where(size <= 64, 100.0, 200.0)
    found = verify_models([layer(measured, measured, size)])
    assert found["roofline"] == pytest.approx([0.0] * len(found["rows"]))
    assert max(found["table"]) > 0.1 or max(found["additive"]) > 0.1


def test_few_widths_have_no_models():
    assert verify_models([layer([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])])["rows"] == []


def test_medians_are_taken_constant_by_constant():
    given = [
        Constants(
            bandwidth_efficiency=b,
            compute_efficiency=f,
            overhead_s=t,
            sharpness=2.0,
            tile_half_intensity=10.0,
        )
        for b, f, t in ((0.7, 0.9, 1e-6), (0.8, 0.5, 3e-6), (0.9, 0.6, 2e-6))
    ]
    found = median_constants(given)
    assert (found.bandwidth_efficiency, found.compute_efficiency, found.overhead_s) == (0.8, 0.6, 2e-6)


def test_every_class_of_the_excerpts_is_judged_out_of_sample(study):
    assert {one.group.operator for one in study.kernels} == {
        "linear",
        "decode_attention",
        "prefill_attention",
        "moe",
        "collective",
    }
    assert not any(one.in_sample.any() for one in study.kernels)
    assert not any(one.group.engine == "vidur" for one in study.kernels)
    assert {one.quantity for one in study.layers} == {"time", "verify premium"}
    assert study.transferred == ()  # one device has no others


def test_targets_without_rows_are_left_open(study):
    found = {one.what: one for one in targets(study)}
    lone = found["16-bit products of a device without a measurement"]
    assert lone.reached is None
    assert lone.met is None
    assert found["decode attention"].met is not None


@pytest.mark.parametrize(
    ("what", "asked", "reached", "met"),
    [
        ("decode attention", 0.045, 0.045, True),
        ("experts", 0.1, 0.11, False),
        ("groups with coverage", 1.0, 0.9, False),
    ],
)
def test_an_error_is_met_from_below_and_coverage_from_above(what, asked, reached, met):
    assert Target(what, asked, reached, None, None, 3, "mean", "out of sample").met is met


def test_the_report_is_written_without_the_reference_tables(root, tmp_path):
    written = write_accuracy(tmp_path / "accuracy", root / "tests" / "reference" / "kernels")
    names = {path.name for path in written}
    assert {
        "accuracy.md",
        "targets.csv",
        "kernels.csv",
        "layers.csv",
        "verify_models.csv",
        "left_out.csv",
    } <= names
    assert {
        f"{name}.svg" for name in ("predicted", "errors", "residuals", "coverage", "verify_models")
    } <= names
    text = (tmp_path / "accuracy" / "accuracy.md").read_text(encoding="utf-8")
    for model in MODELS[1:]:
        assert (
            model in (tmp_path / "accuracy" / "verify_models.csv").read_text(encoding="utf-8").splitlines()[0]
        )
    assert "held out by shape" in text
    assert "What was tried" in text


def test_a_folder_without_tables_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(CannotTellError, match="no table of measured kernels"):
        study_accuracy(tmp_path)
