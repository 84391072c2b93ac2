from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs torch and transformers (extra [oracle])")
pytest.importorskip("transformers", reason="needs torch and transformers (extra [oracle])")

from click.testing import CliRunner

from rooflines.cli import main
from rooflines.measurement.files import read_measured

pytestmark = pytest.mark.torch

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "config.json"
    file.write_text(json.dumps(CONFIG))
    return file


def _measure(config, output, *more):
    fixed = ["--model", str(config), "--output", str(output), "--tokens", "6", "--dtype", "fp32"]
    arguments = [*fixed, "--prompts", "random:8", "--draft-length", "2", *more]
    return CliRunner().invoke(main, ["measure", "speculation", *arguments])


def test_it_measures_tells_and_writes(config, tmp_path):
    result = _measure(config, tmp_path / "out.json", "--drafter", "early-exit:1", "--drafter", "forced:1")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        "drafter", "prompt", "draft_length", "tokens", "tokens_per_cycle", "accepted_share",
        "cost_ratio", "verify_cost", "other_cost", "speedup", "divergences",
    ]  # fmt: skip
    assert lines[2].startswith("early-exit layers=1")
    assert lines[3].startswith("int4 cache=shared forced=1")
    assert "Speculative and plain decoding agree in all" in result.stdout
    file = read_measured(tmp_path / "out.json")
    forced = file.runs[1]
    assert [cycle.accepted for cycle in forced.cycles] == [2, 2]
    assert file.inputs.options["tokens"] == 6


def test_a_drafter_named_twice_runs_once(config, tmp_path):
    result = _measure(config, tmp_path / "out.json", "--drafter", "int4", "--drafter", "int4:cache=shared")
    assert result.exit_code == 0
    assert len(read_measured(tmp_path / "out.json").runs) == 1


def test_a_file_is_never_replaced(config, tmp_path):
    (tmp_path / "out.json").write_text("precious")
    result = _measure(config, tmp_path / "out.json")
    assert result.exit_code == 2
    assert "never replaced" in result.stderr
    assert (tmp_path / "out.json").read_text() == "precious"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--drafter", "eagle"], "unknown drafter 'eagle'"),
        (["--drafter", "early-exit:2"], "the target has 2"),
        (["--drafter", "forced:2"], "it must be 0 to 1"),
        (["--draft-length", "0"], "it must be 1 or more"),
        (["--prompts", "chat"], "write --prompts random:64"),
        (["--prompts", "poems"], "unknown prompt 'poems'"),
        (["--sampling", "hot"], "write greedy or temperature:0.8"),
        (["--tokens", "0"], "0 is not in the range"),
        (["--drafter", "int4", "--int4-group", "128"], "groups of 128 do not fit"),
        (["--dtype", "int3"], "unknown dtype 'int3'"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(config, tmp_path, options, said):
    result = _measure(config, tmp_path / "out.json", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out.json").exists()


def test_the_help_names_every_drafter():
    result = CliRunner().invoke(main, ["measure", "speculation", "--help"])
    assert result.exit_code == 0
    for kind in ("prompt-lookup", "int4", "early-exit:LAYERS", "independent:MODEL", "forced:ALPHA"):
        assert kind in result.stdout.replace("\n", "")
