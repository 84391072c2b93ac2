"""The calibrations that ship are what `rooflines calibrate kernels` makes of the reference tables."""

from __future__ import annotations

from dataclasses import fields

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.hardware.calibration_files import read_calibration
from rooflines.hardware.constants import Constants

TABLES = (
    "allreduce.csv",
    "attention_decode.csv",
    "attention_prefill.csv",
    "gemm_4bit_int8.csv",
    "gemm_bf16.csv",
    "gemm_fp8.csv",
    "moe_layer.csv",
    "vidur_allreduce.csv",
    "vidur_layer_ops.csv",
)
# Not fitted here: shares that others published, or a class that no table has.
NOT_FITTED = (".judged", ".class")


@pytest.fixture(scope="module")
def remade(reference_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrations")
    files = [str(reference_data / "silicon" / name) for name in TABLES]
    result = CliRunner().invoke(
        main, ["calibrate", "kernels", *files, "--transferable", "--folder", str(folder)]
    )
    assert result.exit_code == 0, result.stderr
    return {file.stem: read_calibration(file) for file in folder.glob("*.toml")}


@pytest.fixture(scope="module")
def shipped(root):
    files = (root / "hardware_profiles" / "calibrations").glob("*.toml")
    return {file.stem: read_calibration(file) for file in files}


@pytest.mark.slow
def test_every_file_is_made_by_the_command(remade, shipped):
    fitted = {name for name in shipped if not name.endswith(NOT_FITTED)}
    assert fitted == set(remade)


@pytest.mark.slow
def test_constants_and_errors_are_those_of_the_rows(remade, shipped):
    """Numbers are written to four digits; those that the rows hardly tell may end elsewhere."""
    for name, made in remade.items():
        held = shipped[name]
        assert (held.device, held.stack, held.stands_for) == (made.device, made.stack, made.stands_for)
        assert len(held.operators) == len(made.operators)
        for one, other in zip(held.operators, made.operators, strict=True):
            where = f"{name} {one.operator} {one.arithmetic} {one.storage}"
            assert one.form == other.form, where
            assert one.provenance == other.provenance, where
            for field in fields(Constants):
                mine, yours = getattr(one.constants, field.name), getattr(other.constants, field.name)
                assert mine == pytest.approx(yours, rel=0.02, abs=1e-8), f"{where} {field.name}"
            for mine, yours in zip(one.residuals, other.residuals, strict=True):
                assert (mine.region, mine.rows, mine.in_sample) == (yours.region, yours.rows, yours.in_sample)
                assert mine.median_abs_error == pytest.approx(yours.median_abs_error, abs=2e-3), where


@pytest.mark.slow
def test_what_is_not_fitted_says_so(shipped):
    others = [one for name, one in shipped.items() if name.endswith(NOT_FITTED)]
    assert others
    for one in others:
        assert {entry.provenance.basis for entry in one.operators} <= {"judged", "class"}
        assert all(entry.provenance.note and not entry.residuals for entry in one.operators)
