from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main

ASKED = [
    "--hardware",
    "h100-sxm5-80gb",
    "--target",
    "llama-3.1-8b",
    "--drafter",
    "eagle3",
    "--acceptance",
    "0.75",
    "--context",
    "1024",
    "--draft-length",
    "2,4",
    "--batch",
    "1,32",
]


def run(*more):
    return CliRunner().invoke(main, ["compare", *ASKED, *more])


def test_the_answer_comes_first():
    result = run("--smaller", "llama-3.2-3b", "--lossy-acceptance", "0.85")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("At batch 1, speculate (")
    assert "distil to llama-3.2-3b" in result.stdout
    assert "speculate, lossy" in result.stdout


def test_the_same_rows_as_csv_and_json():
    rows = list(csv.DictReader(run("--format", "csv").stdout.splitlines()))
    document = json.loads(run("--format", "json").stdout)
    assert [row["alternative"] for row in rows] == [row["alternative"] for row in document["rows"]]
    assert document["question"]["quantized"] == ["fp8", "int4-g128"]
    assert document["rows"][0]["gain"] == 1.0


def test_formats_to_quantise_to_can_be_chosen():
    names = {
        row["alternative"] for row in json.loads(run("--quantize", "int8", "--format", "json").stdout)["rows"]
    }
    assert names == {"as it is", "quantise to int8", "speculate", "speculate on int8"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--quantize", "int5"), "unknown dtype"),
        (("--draft-length", "0"), "draft length of 1 or more"),
        (("--smaller", "llama-9"), "unknown model"),
        (("--lossy-acceptance", "80%"), "a share is a fraction"),
    ],
)
def test_bad_input_is_one_line(more, message):
    result = run(*more)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert message in result.stderr
