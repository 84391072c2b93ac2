"""``rooflines calibrate kernels``: constants, errors of held-out shapes, and what was left out, by name."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.cli.calibrate import SUBCOMMANDS
from rooflines.hardware.calibration_files import read_calibration


@pytest.fixture(scope="module")
def folder(root):
    return root / "tests" / "reference" / "kernels"


def run(*arguments, command="calibrate"):
    return CliRunner().invoke(main, [command, *map(str, arguments)])


def answer(*arguments, command="calibrate"):
    result = run(*arguments, command=command)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_group_lists_its_subcommands_without_importing_them():
    listed = " ".join(answer("--help").split())
    for name, (_, line) in SUBCOMMANDS.items():
        assert name in listed
        assert line.split(":")[0].rstrip(".") in " ".join(answer(name, "--help").split())


def test_people_read_constants_errors_and_what_was_left_out(folder):
    text = answer("kernels", folder / "attention_decode.csv", folder / "gemm_bf16.csv")
    assert "Constants" in text
    assert "bandwidth efficiency" in text
    assert "Errors of predictions" in text
    assert "Rows left out" in text
    assert "last-level cache" in text


def test_what_the_rows_cannot_separate_is_said_with_what_to_add(folder, tmp_path):
    """All rows of one shape: bandwidth and floor are one number."""
    lines = (folder / "gemm_fp8.csv").read_text(encoding="utf-8").splitlines()
    first = next(csv.DictReader(lines[:2]))
    column = lines[0].split(",").index("n")
    same = [line for line in lines[1:] if line.split(",")[column] == first["n"]]
    (tmp_path / "one.csv").write_text("\n".join([lines[0], *same]) + "\n", encoding="utf-8")
    result = run("kernels", tmp_path / "one.csv")
    assert result.exit_code == 3
    assert "do not separate" in result.stderr
    assert "add 3 shapes or more" in result.stderr


def test_files_are_written_and_taken_by_name_of_file(folder, tmp_path):
    answer("kernels", folder / "attention_decode.csv", "--folder", tmp_path, "--created", "2026-01-01")
    files = sorted(tmp_path.glob("*.toml"))
    assert files
    found = read_calibration(files[0])
    assert found.created == "2026-01-01"
    assert found.sources == ("attention_decode.csv",)
    planned = answer(
        "--hardware",
        found.device,
        "--model",
        "llama-2-7b",
        "--phase",
        "decode",
        "--context",
        "1024",
        "--calibration",
        files[0],
        command="intensity",
    )
    assert "decode" in planned


def test_json_has_constants_residuals_and_reasons(folder):
    found = json.loads(answer("kernels", folder / "attention_decode.csv", "--format", "json"))
    assert found["schema_version"] == 1
    keys = ("calibration", "operator", "arithmetic", "storage")
    stated = {tuple(one[key] for key in keys) for one in found["constants"]}
    judged = {tuple(one[key] for key in keys) for one in found["residuals"]}
    assert stated == judged
    assert all(one["rows"] > 0 and one["reason"] for one in found["left_out"])


def test_csv_has_one_row_a_region(folder):
    rows = list(
        csv.DictReader(answer("kernels", folder / "attention_decode.csv", "--format", "csv").splitlines())
    )
    assert {row["operator"] for row in rows} == {"decode_attention"}
    assert all(0 <= float(row["median_abs_error"]) <= float(row["p90_abs_error"]) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["attention_decode.csv", "--device", "h100-sxm-81gb"], "unknown hardware", 2),
        (["attention_decode.csv", "--device", "tpu-v5e"], "no rows of tpu-v5e", 3),
        (["attention_decode.csv", "--folder", "/nowhere/at/all"], "no folder", 2),
        (["missing.csv"], "cannot be read", 2),
        (["NOTICE.md"], "is not a CSV file", 2),
        (["attention_decode.csv", "--transferable"], "16-bit products of two devices", 3),
    ],
)
def test_bad_input_is_one_line(folder, arguments, message, code):
    result = run("kernels", folder / arguments[0], *arguments[1:])
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_unknown_subcommand_is_answered_with_near_ones():
    result = run("kernel")
    assert result.exit_code == 2
    assert "'kernels'" in result.stderr


def test_constants_of_a_device_are_shown():
    text = answer("show", "h100-sxm", "--calibration", command="hardware")
    assert "calibrated with vllm 0.24.0" in text
    assert "h100-sxm5-80gb.sglang-0.5.14" in text
    rows = json.loads(
        answer("show", "a100-pcie-80gb", "--calibration", "--format", "json", command="hardware")
    )
    assert rows
    assert "not measured" in answer("show", "mi300x", "--calibration", command="hardware")
    assert "transferable" in answer("show", "tpu-v5e", "--calibration", command="hardware")
