"""``rooflines calibrate decode`` and ``rooflines check``: files in, verdict and exit code out."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.measurement.files import write_measured


@pytest.fixture(scope="module")
def folder(simulator, root, tmp_path_factory):
    """A machine that was probed, its passes, honest runs, and runs whose draft is 60 % slower than its steps."""
    place = tmp_path_factory.mktemp("check")
    (place / "machine.toml").write_text(simulator.PROFILE, encoding="utf-8")
    write_measured(simulator.decode_file(root, 1), place / "decode.json")
    honest = simulator.speculation_file(root, 1)
    write_measured(honest, place / "runs.json")
    slow = simulator.changed(honest, lambda one: {"draft_s": 1.6 * one.draft_s}, "int4")
    write_measured(slow, place / "slow.json")
    noisy = simulator.speculation_file(root, 0, prompts=1, tokens=40, noise=0.7, drift=0.0)
    write_measured(noisy, place / "noisy.json")
    made = run("calibrate", "decode", place / "decode.json", "--hardware", place / "machine.toml", "--output", place / "cal.toml")  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert "meets 36 passes" in made.stdout
    return place


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No pyproject.toml speaks up but one that a test writes."""
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.mark.parametrize(("file", "code", "word"), [("runs", 0, "AGREE"), ("slow", 1, "DISAGREE"), ("noisy", 3, "CANNOT TELL")])  # fmt: skip
def test_the_verdict_is_the_exit_code(folder, file, code, word):
    result = run("check", folder / f"{file}.json", "--calibration", folder / "cal.toml")
    assert result.exit_code == code, result.output
    assert result.stdout.startswith(f"{word}:")


def test_the_profile_of_a_calibration_is_found_beside_it(folder, tmp_path):
    alone = tmp_path / "cal.toml"
    alone.write_bytes((folder / "cal.toml").read_bytes())
    result = run("check", folder / "runs.json", "--calibration", alone)
    assert result.exit_code == 2
    assert "name its file with --hardware" in result.stderr
    named = run("check", folder / "runs.json", "--calibration", alone, "--hardware", folder / "machine.toml")
    assert named.exit_code == 0


def test_the_part_at_fault_is_named_in_words(folder):
    result = run("check", folder / "slow.json")
    assert "At fault: the draft" in result.stdout
    assert "composition +3" in result.stdout


def test_documents_follow_their_published_schema(folder, validator_of):
    validator = validator_of("check")
    for more in ((), ("--calibration", folder / "cal.toml", "--baseline", folder / "runs.json")):
        result = run("check", folder / "slow.json", "--format", "json", *more)
        document = json.loads(result.stdout)
        validator.validate(document)
        assert document["verdict"] == "disagree"
        broken = {**document, "cases": [{**document["cases"][0], "fault": "nobody"}]}
        assert not validator.is_valid(broken)


def test_csv_has_every_number_in_a_column_of_its_own(folder):
    result = run("check", folder / "runs.json", "--calibration", folder / "cal.toml", "--format", "csv")
    first, second = csv.DictReader(io.StringIO(result.stdout))
    assert float(first["measured_low"]) < float(first["measured"]) < float(first["measured_high"])
    assert abs(float(second["roofline_difference"])) < 0.15


def test_junit_and_markdown_are_written_and_annotations_printed(folder, tmp_path):
    result = run(
        "check", folder / "slow.json", "--junit", tmp_path / "j.xml", "--markdown", tmp_path / "c.md", "--annotations"
    )  # fmt: skip
    assert result.exit_code == 1
    suite = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    (failure,) = suite.iter("failure")
    assert "at fault: the draft" in failure.get("message")
    assert (tmp_path / "c.md").read_text(encoding="utf-8").startswith("DISAGREE")
    assert "| int4 cache=shared \\| draft 3 \\| chat |" in (tmp_path / "c.md").read_text(encoding="utf-8")
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("::error")]
    assert "::measured" in line
    assert "%" not in line.replace("%25", "").replace("%3A", "").replace("%2C", "")


def test_noise_is_a_skip_in_junit(folder, tmp_path):
    run("check", folder / "noisy.json", "--junit", tmp_path / "j.xml")
    suite = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 - our own file
    assert int(suite.get("skipped")) >= 1
    assert suite.get("failures") == "0"


def test_settings_may_stand_in_a_pyproject(folder, tmp_path):
    table = (
        f'[tool.rooflines.check]\ntolerance = "60%"\ncalibration = "{folder}/cal.toml"\njunit = "out.xml"\n'
    )
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    result = run("check", folder / "slow.json")
    assert result.exit_code == 0
    assert "within 60 %" in result.stdout
    assert "roofline" in result.stdout
    assert (tmp_path / "out.xml").exists()
    assert run("check", folder / "slow.json", "--tolerance", "15%").exit_code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.rooflines.check]\ntolerence = '5%'", "did you mean 'tolerance'"),
        ("[tool.rooflines.check]\ntolerance = 5", "valid string"),
        ("[tool.rooflines]\ncheck = 5", "is not a table"),
        ("[tool", "cannot be read"),
    ],
)
def test_mistakes_in_a_pyproject_are_one_line(folder, tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    result = run("check", folder / "runs.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "missing.json"), "cannot be read"),
        (("check", "{folder}/decode.json"), "a check judges speculation"),
        (("check", "{folder}/runs.json", "--tolerance", "much"), "is no number"),
        (("check", "{folder}/runs.json", "--tolerance", "0"), "between 0 and 100%"),
        (("check", "{folder}/runs.json", "--hardware", "a10"), "without a calibration"),
        (("check", "{folder}/runs.json", "--calibration", "nothing"), "unknown calibration"),
        (
            ("check", "{folder}/runs.json", "--calibration", "{folder}/cal.toml", "--hardware", "a10"),
            "belongs to",
        ),
        (
            ("calibrate", "decode", "{folder}/runs.json", "--hardware", "a10", "--output", "c.toml"),
            "never fitted",
        ),
        (
            ("calibrate", "decode", "{folder}/decode.json", "--hardware", "a1000", "--output", "c.toml"),
            "unknown",
        ),
        (("calibrate", "decoed", "x"), "did you mean 'decode'"),
    ],
)
def test_bad_input_is_one_line(folder, arguments, message):
    result = run(*(one.format(folder=folder) for one in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_of_the_group_matches_its_commands():
    from rooflines.cli.calibrate import SUBCOMMANDS, calibrate

    for name, (_, line) in SUBCOMMANDS.items():
        command = calibrate.get_command(None, name)
        assert " ".join(command.help.split("\n\n")[0].split()) == line
    assert all(name in run("calibrate", "--help").stdout for name in SUBCOMMANDS)
