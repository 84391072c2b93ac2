"""``rooflines validate kernels``: every row predicted, every row that is not named."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.cli.validate import SUBCOMMANDS


@pytest.fixture(scope="module")
def folder(root):
    return root / "tests" / "reference" / "kernels"


def run(*arguments):
    return CliRunner().invoke(main, ["validate", *map(str, arguments)])


def answer(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_each_subcommand_says_what_its_group_says():
    listed = answer("--help")
    for name, (_, line) in SUBCOMMANDS.items():
        assert line.split(",")[0] in " ".join(listed.split())
        assert " ".join(answer(name, "--help").split()).count(line.rstrip(".")) >= 1


def test_json_has_every_group_region_and_reason(folder):
    found = json.loads(
        answer("kernels", folder / "gemm_bf16.csv", folder / "attention_decode.csv", "--format", "json")
    )
    assert found["files"] == ["gemm_bf16.csv", "attention_decode.csv"]
    with_all = [one for one in found["groups"] if one["region"] == "all"]
    assert {one["operator"] for one in found["groups"]} == {"linear", "decode_attention"}
    assert sum(one["rows"] for one in found["groups"] if one["region"] != "all") == found["rows_used"]
    assert all(one["median_abs_error"] <= one["p90_abs_error"] for one in found["groups"])
    assert sum(one["rows"] for one in found["left_out"]) == found["rows_left_out"] > 0
    assert with_all


def test_rows_are_written_with_their_line_and_prediction(folder, tmp_path):
    target = tmp_path / "rows.csv"
    answer("kernels", folder / "allreduce.csv", "--rows", target)
    written = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    given = list(csv.DictReader((folder / "allreduce.csv").read_text(encoding="utf-8").splitlines()))
    assert len(written) == len(given)
    for row in written:
        source = given[int(row["line"]) - 2]
        assert float(row["measured"]) == pytest.approx(float(source["time_us"]) * 1e-6)
        assert float(row["size"]) == float(source["message_bytes"])
        assert float(row["plain"]) > 0
        assert float(row["predicted"]) > 0


def test_rows_that_were_left_out_are_written_with_the_reason(folder, tmp_path):
    target = tmp_path / "rows.csv"
    found = json.loads(answer("kernels", folder / "gemm_bf16.csv", "--rows", target, "--format", "json"))
    written = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    lines = len((folder / "gemm_bf16.csv").read_text(encoding="utf-8").splitlines())
    assert sorted(int(row["line"]) for row in written) == list(range(2, lines + 1))
    left = [row for row in written if row["left_out"]]
    assert len(left) == found["rows_left_out"] > 0
    assert {row["left_out"] for row in left} == {one["reason"] for one in found["left_out"]}
    assert all(row["predicted"] == "" and row["device"] for row in left)


def test_the_textbook_is_the_plain_roofline(folder):
    found = json.loads(
        answer("kernels", folder / "gemm_bf16.csv", "--calibration", "textbook", "--format", "json")
    )
    for one in found["groups"]:
        assert one["median_abs_error"] == pytest.approx(one["plain_median_abs_error"])
        assert one["coverage"] is None
        assert one["in_sample_rows"] == 0


def test_constants_beat_the_plain_roofline(folder):
    files = [
        folder / name for name in ("gemm_bf16.csv", "attention_decode.csv", "moe_layer.csv", "allreduce.csv")
    ]
    found = json.loads(answer("kernels", *files, "--format", "json"))
    for one in found["groups"]:
        if one["region"] == "all":
            assert one["median_abs_error"] < one["plain_median_abs_error"], one


@pytest.mark.parametrize("fmt", ["text", "markdown"])
def test_people_read_words_first(folder, fmt):
    text = answer("kernels", folder / "verify_premium.csv", "--format", fmt)
    assert text.splitlines()[0].startswith("22 rows of 1 file(s)")
    assert "verify premium" in text
    assert "n 129-512" in text


def test_csv_is_the_table_of_verdicts(folder):
    text = answer("kernels", folder / "moe_layer.csv", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["variant"] for row in rows} == {"balanced", "power_law_1.2"}
    assert {row["region"] for row in rows} == {"m <= 64", "m 65-512", "m > 512", "all"}


def test_devices_without_a_measurement_are_predicted_and_say_on_what(tmp_path):
    file = tmp_path / "new.csv"
    file.write_text(
        "gpu,engine,engine_version,gemm_dtype,m,n,k,time_us\nb300_sxm,vllm,1,bfloat16,16,16384,8192,46\n"
        "rtx_pro_6000_server,vllm,1,bfloat16,16,16384,8192,190\n",
        encoding="utf-8",
    )
    found = json.loads(answer("kernels", file, "--format", "json"))
    assert {one["device"] for one in found["groups"]} == {"b300-sxm", "rtx-pro-6000-blackwell"}
    for one in found["groups"]:
        assert one["basis"]
        assert one["in_sample_rows"] == 0
        assert one["median_abs_error"] < 0.3


def refused(*arguments, code=2):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rooflines: ")
    return line


def test_bad_input_is_one_line(folder, tmp_path):
    assert "cannot be read" in refused("kernels", tmp_path / "missing.csv")
    assert "calibration" in refused("kernels", folder / "allreduce.csv", "--calibration", "h100")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    assert "columns" in refused("kernels", other)
    assert "FILE" in refused("kernels")
    assert "cannot write" in refused(
        "kernels", folder / "allreduce.csv", "--rows", tmp_path / "no" / "rows.csv"
    )


def test_a_table_of_which_nothing_can_be_judged_says_why(tmp_path):
    file = tmp_path / "b61.csv"
    file.write_text(
        "gpu,engine,engine_version,gemm_dtype,m,n,k,time_us\nb61,vllm,1,bfloat16,16,16384,8192,46\n",
        encoding="utf-8",
    )
    assert "'b61' is in no profile" in refused("kernels", file, code=3)
