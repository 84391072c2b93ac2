from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.cli.measure import SUBCOMMANDS, measure
from rooflines.hardware.catalogue import load_hardware
from rooflines.measurement.files import read_measured

FACTS = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
QUICK = ["--batch", "1", "--positions", "1,2", "--context", "8", "--prefill", "0", "--rounds", "2"]


def run(*words):
    return CliRunner().invoke(main, ["measure", *map(str, words)])


def test_the_help_lists_the_commands_by_their_first_lines():
    result = run("--help")
    assert result.exit_code == 0
    for name, (_, line) in SUBCOMMANDS.items():
        assert f"  {name} " in result.stdout
        assert line in " ".join(result.stdout.split())
        command = measure.get_command(None, name)
        assert command.help.split("\n", 1)[0] == line
        assert run(name, "--help").exit_code == 0


@pytest.mark.torch
def test_the_profile_of_this_machine_is_taken_by_the_commands_that_predict(tmp_path):
    pytest.importorskip("torch", reason="needs torch (extra [measure])")
    profile = tmp_path / "mine.toml"
    result = run("machine", "--output", profile, "--stream", "1 MiB", "--gemm", "64", "--rounds", "3")
    assert result.exit_code == 0, result.output
    assert f"wrote {profile}" in result.stdout
    assert "stable: " in result.stdout.lower()
    raw = read_measured(tmp_path / "mine.json")
    assert raw.kind == "machine"
    assert load_hardware(str(profile)).bandwidth_bytes_per_s > 1e8
    words = [
        "intensity",
        "--hardware",
        str(profile),
        "--model",
        "smollm2-135m",
        "--phase",
        "decode",
        "--context",
        "64",
    ]
    predicted = CliRunner().invoke(main, words)
    assert predicted.exit_code == 0, predicted.output


@pytest.mark.torch
def test_a_profile_that_a_dead_run_did_not_write_is_made_of_its_raw_times(tmp_path):
    pytest.importorskip("torch", reason="needs torch (extra [measure])")
    profile, raw = tmp_path / "mine.toml", tmp_path / "mine.json"
    words = ("machine", "--output", profile, "--stream", "1 MiB", "--gemm", "64", "--rounds", "3")
    assert run(*words).exit_code == 0
    written, times = profile.read_text(), raw.read_text()
    profile.unlink()
    again = run(*words)
    assert again.exit_code == 0, again.output
    assert "was there, measured" in again.stderr
    assert (profile.read_text(), raw.read_text()) == (written, times)
    profile.unlink()
    other = run(*words[:-1], "4")
    assert other.exit_code == 2
    assert "holds other measurements, which are never replaced" in other.stderr
    assert not profile.exists()


@pytest.mark.torch
def test_a_model_is_measured_into_a_file_that_reads_back(tmp_path):
    pytest.importorskip("transformers", reason="needs transformers (extra [measure])")
    (tmp_path / "config.json").write_text(json.dumps(FACTS))
    output = tmp_path / "decode.json"
    result = run("decode", "--model", tmp_path, "--output", output, *QUICK)
    assert result.exit_code == 0, result.output
    file = read_measured(output)
    assert {one.case for one in file.samples} == {"step", "head", "draft", "empty"}
    # Without a depth, one layer, a third and two thirds are timed beside the whole.
    assert {one.depth for one in file.samples if one.case == "step"} == {1, 2, 3}
    again = run("decode", "--model", tmp_path, "--output", output, *QUICK)
    assert again.exit_code == 2
    assert "never replaced" in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["decoed"], "did you mean 'decode'?"),
        (["machine"], "--output"),
        (["machine", "--output", "{folder}/m.json"], "end it with .toml"),
        (["machine", "--output", "{folder}/m.toml", "--stream", "1"], "no unit"),
        (["machine", "--output", "{folder}/none/m.toml"], "no folder: make it first"),
        (["decode", "--model", "smollm2-135n", "--output", "{folder}/m.json"], "did you mean 'smollm2-135m'"),
        (
            ["decode", "--model", "gpt2", "--output", "{folder}/m.json", "--positions", "0"],
            "must be 1 or more",
        ),
        (
            ["decode", "--model", "gpt2", "--output", "{folder}/m.json", "--dtype", "int3"],
            "known: fp32, bf16",
        ),
        (["decode", "--model", "gpt2", "--output", "{folder}/m.json", "--threads", "0"], "--threads"),
    ],
)
def test_bad_input_is_answered_in_one_line_before_anything_is_measured(words, message, tmp_path):
    pytest.importorskip("transformers", reason="needs transformers (extra [measure])")
    result = run(*(word.format(folder=tmp_path) for word in words))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
