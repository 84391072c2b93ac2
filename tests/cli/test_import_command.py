from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter

from rooflines.cli import main
from rooflines.measurement.files import read_measured
from rooflines.measurement.readers.catalogue import READERS
from rooflines.measurement.readers.results import Imported
from rooflines.measurement.schema import StepsFile

SAMPLES = Path(__file__).parent.parent / "unit" / "measurement" / "samples"


def run(*arguments):
    return CliRunner().invoke(main, ["import", *map(str, arguments)])


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("rooflines: ")
    return line


def test_text_tells_the_source_the_acceptance_to_paste_and_the_notes():
    text = run("sglang-bench", SAMPLES / "sglang-bench.jsonl").stdout
    assert text.startswith("sglang.bench_serving, sglang-bench.jsonl")
    assert "accepted-length:2.62@3" in text
    assert "Under load" in text
    assert text.rstrip().endswith("since it was started, not of the run alone.")


def test_one_table_as_csv_and_several_only_as_json():
    rows = list(
        csv.DictReader(
            io.StringIO(run("llama-bench", SAMPLES / "llama-bench.json", "--format", "csv").stdout)
        )
    )
    assert [row["new positions"] for row in rows] == ["4", "1"]
    assert float(rows[0]["mean_time_s"]) == pytest.approx(0.03)
    assert "write json or text" in refused("vllm-serve", SAMPLES / "vllm-serve.json", "--format", "csv")


def test_a_table_of_times_is_a_file_of_measurements(tmp_path):
    path = tmp_path / "steps.json"
    result = run("llama-bench", SAMPLES / "llama-bench.json", "--format", "json", "--output", path)
    assert result.exit_code == 0, result.stderr
    file = read_measured(path)
    assert isinstance(file, StepsFile)
    assert len(file.steps) == 2
    assert file.versions == {"llama.cpp": "7310 (b9a1c5f)"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("llama-bench", "llama-bench.json"),
        ("vllm-serve", "vllm-serve.json"),
        ("llama-log", "llama-server.log"),
    ],
)
def test_json_follows_its_published_schema(validator_of, kind, name):
    validator = validator_of("import")
    document = json.loads(run(kind, SAMPLES / name, "--format", "json").stdout)
    validator.validate(document)
    assert not validator.is_valid({**document, "more": 1})
    assert not validator.is_valid({**document, "schema_version": 2})


def test_the_published_schema_is_that_of_the_records(validator_of):
    published = validator_of("import").schema
    made = TypeAdapter(Imported | StepsFile).json_schema(mode="serialization")
    assert {key: value for key, value in published.items() if key != "$schema"} == made


def test_help_names_every_kind():
    text = "".join(run("--help").stdout.split())  # hyphens are broken at the ends of lines
    assert all(reader.kind in text for reader in READERS)


def test_counters_are_differenced():
    text = run("prometheus", SAMPLES / "vllm-after.prom", "--before", SAMPLES / "vllm-before.prom").stdout
    assert "survival:0.75,0.45" in text


def test_mistakes_are_one_line_that_says_what_to_do():
    assert "did you mean 'llama-bench'" in refused("lama-bench", SAMPLES / "llama-bench.json")
    assert "cannot be read" in refused("csv", "missing.csv")
    assert "it lacks" in refused("vllm-serve", SAMPLES / "llama-simple.log") or "is not JSON" in refused(
        "vllm-serve", SAMPLES / "llama-simple.log"
    )
    assert "state the draft length" in refused("llama-log", SAMPLES / "llama-server-old.log")
    assert run("llama-log", SAMPLES / "llama-server-old.log", "--draft-length", 4).exit_code == 0


@pytest.mark.parametrize(
    ("kind", "name"), [("vllm-log", "vllm.log"), ("prometheus", "vllm-after.prom"), ("csv", "survival.csv")]
)
def test_a_file_alone_is_recognised_by_what_stands_in_it(kind, name):
    assert run(SAMPLES / name).stdout == run(kind, SAMPLES / name).stdout != ""


@pytest.mark.parametrize("words", [(), ("vllm-log", "one.log", "two.log")])
def test_one_file_is_read_and_the_message_says_how_it_is_given(words):
    assert "Give one file, or KIND and one file: rooflines import vllm-log server.log" in refused(*words)
