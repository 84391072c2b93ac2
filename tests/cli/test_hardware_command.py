from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from rooflines.cli.hardware import hardware
from rooflines.errors import AmbiguousNameError, FileFormatError, UnknownNameError
from rooflines.hardware import list_hardware, load_hardware
from rooflines.hardware.catalogue import ENVIRONMENT, data_folder

FORMATS = ("text", "markdown", "csv", "json")


@pytest.fixture(autouse=True)
def no_folders_of_the_user(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def run(*arguments):
    return CliRunner().invoke(hardware, arguments)


def records(*arguments):
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def as_file(tmp_path, device, **changes):
    """A shipped profile as a file of the user's, with some text replaced."""
    text = (data_folder() / f"{device}.toml").read_text(encoding="utf-8")
    for old, new in changes.get("replace", []):
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / f"{device}.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.output for command in ("list", "show", "lint"))


@pytest.mark.parametrize("fmt", FORMATS)
def test_list_has_a_row_for_every_device(fmt):
    result = run("list", "--format", fmt)
    assert result.exit_code == 0
    assert all(device in result.output for device in list_hardware())


def test_list_for_machines_is_si_with_the_unit_in_the_name():
    by_id = {record["id"]: record for record in records("list")}
    assert len(by_id) == 80
    h100 = by_id["h100-sxm5-80gb"]
    assert h100["memory_bytes"] == 81559 * 2**20
    assert h100["bandwidth_bytes_per_s"] == pytest.approx(3.35e12)
    assert h100["bf16_flop_per_s"] == pytest.approx(989.5e12)
    assert h100["fp8_flop_per_s"] == pytest.approx(1979e12)
    assert h100["ridge_flop_per_byte"] == pytest.approx(295.37, abs=0.01)
    assert (h100["ridge_dtype"], h100["status"]) == ("bf16", "shipping")
    assert by_id["rubin"]["status"] == "announced"


def test_a_device_without_bf16_shows_no_bf16_peak_and_the_fp16_ridge():
    t4 = next(record for record in records("list") if record["id"] == "t4")
    assert t4["bf16_flop_per_s"] is None
    assert t4["ridge_dtype"] == "fp16"
    assert t4["ridge_flop_per_byte"] == pytest.approx(65e12 / 320e9)
    assert "203 FLOP/B (fp16)" in run("list").output


def test_csv_and_json_list_the_same():
    table = list(csv.DictReader(io.StringIO(run("list", "--format", "csv").stdout)))
    for row, record in zip(table, records("list"), strict=True):
        assert row == {key: "" if value is None else str(value) for key, value in record.items()}


def test_list_shows_devices_of_the_user(tmp_path, monkeypatch):
    (tmp_path / "card.toml").write_text('id = "card"\nname = "A card"\n')
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    (card,) = [record for record in records("list") if record["id"] == "card"]
    assert card["memory_bytes"] is card["ridge_flop_per_byte"] is None


@pytest.mark.parametrize("device", ["h100-sxm5-80gb", "m1", "epyc-9654"])
def test_show_has_every_number_with_basis_and_source(device):
    profile = load_hardware(device)
    shown = [
        (row["field"], row["role"], row["value_si"], row["basis"], row["source"])
        for row in records("show", device)
    ]
    for field, entry in profile.entries():
        assert (field, "adopted", entry.value.si, entry.basis, profile.source_of(entry)) in shown
        for other in entry.alternatives:
            assert (field, "alternative", other.value.si, other.basis, profile.source_of(other)) in shown


def test_show_derives_the_ridge_of_every_peak():
    rows = {row["field"]: row for row in records("show", "h100-sxm5-80gb")}
    assert rows["ridge.bf16"]["value_si"] == pytest.approx(989.5 / 3.35)
    assert rows["ridge.bf16"]["basis"] == "derived"
    assert rows["ridge.fp8"]["value_si"] == pytest.approx(1979 / 3.35)


@pytest.mark.parametrize("fmt", ["text", "markdown"])
def test_show_for_people_resolves_sources_and_tells_notes(fmt):
    result = run("show", "H100-SXM", "--format", fmt)
    profile = load_hardware("h100-sxm5-80gb")
    assert profile.name in result.output
    assert all(f"{key}: {words}" in result.output for key, words in profile.sources.items())
    assert "source gives the sparse figure only; halved" in result.output
    assert result.stderr == ""


def test_show_tells_the_reason_of_an_exception():
    assert "its matrix units are rated at about 1.54 GHz" in run("show", "h100-nvl").output


def test_a_device_that_is_only_announced_prints_a_warning_beside_the_table():
    result = run("show", "rubin", "--format", "json")
    assert result.stderr == "warning: rubin is announced, not shipping: its numbers may change\n"
    assert json.loads(result.stdout)


def test_show_reads_a_file(tmp_path):
    file = tmp_path / "card.toml"
    file.write_text(
        'id = "card"\nname = "A card"\nmemory_bandwidth = "2 TB/s"\n\n[peaks]\nbf16 = "100 TFLOP/s"\n'
    )
    rows = {row["field"]: row for row in records("show", str(file))}
    assert rows["memory_bandwidth"]["basis"] == "assumed"
    assert rows["memory_bandwidth"]["source"] is None
    assert rows["ridge.bf16"]["value_si"] == pytest.approx(50)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("h100", AmbiguousNameError),
        ("h100-sxm5-81gb", UnknownNameError),
        ("nowhere/card.toml", FileFormatError),
    ],
)
def test_show_refuses_what_it_does_not_know_with_exit_code_two(name, error):
    caught = run("show", name).exception
    assert isinstance(caught, error)
    assert caught.exit_code == 2
    assert "\n" not in str(caught)


def test_an_unknown_format_is_refused():
    assert run("list", "--format", "xml").exit_code == 2


def test_lint_without_files_checks_all_profiles():
    result = run("lint")
    assert result.exit_code == 0
    assert result.output.startswith("80 profiles: ")
    assert result.output.endswith(", 0 fail\n")


def test_verbose_lint_prints_every_exception_with_its_reason():
    lines = run("lint", "--verbose").output.splitlines()
    exceptions = [one for device in list_hardware() for one in load_hardware(device).exceptions]
    assert len(lines) == 1 + sum(len(one.fields) for one in exceptions)
    assert all(any(one.reason in line for line in lines) for one in exceptions)


def test_lint_of_a_right_file_passes(tmp_path):
    result = run("lint", as_file(tmp_path, "h100-sxm5-80gb"))
    assert result.exit_code == 0
    assert result.output.startswith("1 profile: ")


@pytest.mark.parametrize(
    ("replace", "says"),
    [
        ([('"989.5 TFLOP/s"', '"1979 TFLOP/s"'), ('"1979 TFLOP/s"', '"3958 TFLOP/s"')], "dense-rate fails"),
        (
            [('[peaks.fp8]\nvalue = "1979 TFLOP/s"', '[peaks.fp8]\nvalue = "3958 TFLOP/s"')],
            "fp8-twice-bf16 fails",
        ),
        (
            [("https://archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html", "the internet")],
            "sourced fails",
        ),
        ([('id = "h100-sxm5-80gb"', 'id = "h100"')], "file-name fails"),
        ([('value = "80 GB"', 'value = "40 GB"')], "capacity fails"),
    ],
)
def test_lint_of_a_wrong_file_says_what_and_where_and_exits_with_one(tmp_path, replace, says):
    result = run("lint", as_file(tmp_path, "h100-sxm5-80gb", replace=replace))
    assert result.exit_code == 1
    assert says in result.output
    assert " 0 fail" not in result.output


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 99, b"id = ", b'id = "c"\nname = "c"\ntdp = 700\n'])
def test_lint_of_what_is_no_profile_exits_with_two(tmp_path, content):
    file = tmp_path / "card.toml"
    file.write_bytes(content)
    caught = run("lint", str(file)).exception
    assert isinstance(caught, FileFormatError)
    assert caught.exit_code == 2
    assert str(file) in str(caught)


def test_lint_of_a_missing_file_and_of_a_name_exit_with_two(tmp_path):
    assert isinstance(run("lint", str(tmp_path / "none.toml")).exception, FileFormatError)
    assert isinstance(run("lint", str(tmp_path)).exception, FileFormatError)
    result = run("lint", "h100-sxm5-80gb")
    assert result.exit_code == 2
    assert "name the TOML file of a profile" in result.output
