from __future__ import annotations

import csv
import io
import json
import struct

import pytest
from click.testing import CliRunner

from rooflines.cli.models import models
from rooflines.errors import (
    AmbiguousNameError,
    ConfigError,
    FileFormatError,
    UnknownNameError,
    UnsupportedArchitectureError,
)
from rooflines.models.catalogue import list_presets
from rooflines.models.drafter_catalogue import list_drafter_presets

FORMATS = ("text", "markdown", "csv", "json")
# A small model with everything that a text answer may have to say: windows, experts, encoder and vision beside.
SMALL = {
    "model_type": "llava",
    "tie_word_embeddings": False,
    "vision_config": {"hidden_size": 8},
    "text_config": {
        "model_type": "gpt_oss",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "intermediate_size": 48,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": 8,
        "vocab_size": 100,
        "swiglu_limit": 7.0,
    },
}
DSPARK = {
    "architectures": ["DSparkDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 2,
    "vocab_size": 100,
    "block_size": 7,
    "dtype": "bfloat16",
    "dflash_config": {"markov_rank": 8, "target_layer_ids": [1, 9]},
}
EAGLE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 1,
    "vocab_size": 32000,
    "torch_dtype": "float16",
}


@pytest.fixture
def config_file(tmp_path):
    def write(config, name="config.json"):
        path = tmp_path / name
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="module")
def schema(validator_of):
    return validator_of("models-show")


def run(*arguments):
    return CliRunner().invoke(models, arguments)


def shown(*arguments):
    result = run("show", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("fmt", FORMATS)
def test_list_has_every_preset_in_every_format(fmt):
    result = run("list", "--format", fmt)
    assert result.exit_code == 0
    assert all(name in result.stdout for name in list_presets())


@pytest.mark.parametrize("fmt", FORMATS)
def test_heads_of_drafters_are_listed_in_every_format(fmt):
    text = run("list", "--drafters", "--format", fmt).stdout
    assert all(name in text for name in list_drafter_presets())
    assert "eagle3:eagle3-llama3.1-8b" in text  # as --drafter takes it
    assert "vicuna-33b" not in text


def test_list_as_csv_carries_units():
    rows = list(csv.DictReader(io.StringIO(run("list", "--format", "csv").stdout)))
    llama = next(row for row in rows if row["name"] == "llama-2-7b")
    assert llama["parameters"] == "6738415616"
    assert llama["weights_bytes"] == "13476831232"
    assert float(llama["kv_per_token_bytes"]) == 524_288


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", ["qwen3-8b", "t5-small", "deepseek-v3", "nvidia-nemotron-3-nano-30b-a3b"])
def test_show_in_every_format(name, fmt):
    result = run("show", name, "--format", fmt, "--context", "4096")
    assert result.exit_code == 0, result.output
    assert name in result.stdout


@pytest.mark.parametrize("name", ["qwen3-8b", "t5-small", "deepseek-v3", "gemma-4-26b-a4b", "jamba-v0.1"])
def test_json_follows_the_published_schema(name, schema):
    schema.validate(shown(name, "--context", "1000"))
    schema.validate(shown(name))


def test_json_of_a_known_model():
    # Qwen3-8B: published safetensors total, and 2 x 36 layers x 8 heads x 128 bf16 elements a token.
    answer = shown("qwen3-8b", "--context", "1000")
    assert answer["schema_version"] == 1
    assert answer["parameters_total"] == answer["parameters_active"] == 8_190_735_360
    assert answer["parameters_active_without_embedding"] == 8_190_735_360 - 151_936 * 4096
    assert answer["weight_bytes"] == 2 * 8_190_735_360
    assert answer["kv_bytes_per_token"] == 147_456
    assert answer["kv_bytes"] == 147_456_000
    assert len(answer["layers"]) == 36
    assert sum(layer["parameters"] for layer in answer["layers"]) < answer["parameters_total"]


def test_context_counts_what_windows_keep():
    # gpt-oss-20b: half of 24 layers keep 127 positions of 1,024 elements.
    answer = shown("gpt-oss-20b", "--context", "1000")
    assert answer["kv_bytes"] == (12 * 1000 + 12 * 127) * 1024 * 2
    assert answer["kv_bytes_per_token"] == answer["kv_bytes"] / 1000
    assert shown("gpt-oss-20b")["kv_bytes_per_token"] == 24 * 1024 * 2


def test_kv_dtype_changes_the_cache_alone():
    half, eighth = shown("qwen3-8b"), shown("qwen3-8b", "--kv-dtype", "fp8")
    assert eighth["kv_bytes_per_token"] * 2 == half["kv_bytes_per_token"]
    assert eighth["weight_bytes"] == half["weight_bytes"]


def test_a_config_file_says_what_was_not_read_counted_or_stated(config_file):
    path = config_file(SMALL)
    answer = shown(path)
    assert "text_config.swiglu_limit" in answer["ignored_keys"]
    assert answer["not_counted"] == ["vision_config"]
    assert any("dtype" in note for note in answer["assumed"])
    text = run("show", path).stdout
    assert "window 8" in text
    assert "8 gated experts of 48, 2 a token" in text
    assert "0, 2" in text
    assert "vision_config" in text


def test_encoder_and_decoder_layers_are_apart():
    answer = shown("t5-small")
    assert (len(answer["encoder"]), len(answer["layers"])) == (6, 6)
    assert "Encoder" in run("show", "t5-small").stdout


def test_a_drafter_config_shows_its_own_weights(config_file, schema):
    answer = shown(config_file(DSPARK))
    schema.validate(answer)
    assert answer["drafter"] == "dspark"
    assert answer["shares"] == ["embedding", "head"]
    assert (answer["block_size"], answer["draft_length"], answer["verify_width"]) == (7, 7, 8)


def test_an_eagle_config_is_a_model_until_told_otherwise(config_file):
    # The folder's name decides nothing.
    path = config_file(EAGLE, "eagle.json")
    model = shown(path)
    assert model["family"] == "llama"
    assert any("EAGLE" in note for note in model["assumed"])
    # EAGLE README: 0.24B for Vicuna-7B.
    assert shown(path, "--drafter", "eagle")["parameters_total"] == 235_937_792


def test_stored_bytes_come_from_the_files(tmp_path, config_file):
    config_file(EAGLE)
    header = json.dumps({"w": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]}}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(64)
    (tmp_path / "model.safetensors").write_bytes(content)
    assert shown(str(tmp_path))["stored_bytes"] == 64


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("qwen3-8", UnknownNameError, "'qwen3-8b'"),
        ("mistral-7b", AmbiguousNameError, "'mistral-7b-v0.1' or 'mistral-7b-v0.3'"),
    ],
)
def test_bad_names(given, error, words):
    result = run("show", given)
    assert isinstance(result.exception, error)
    assert words in str(result.exception)


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"", FileFormatError, "empty"),
        (b"\xff\xfe\x00", FileFormatError, "no text file"),
        (b"[1, 2]", FileFormatError, "list"),
        (b"{", FileFormatError, "not JSON"),
        (b"{}", ConfigError, "model_type"),
        (b'{"model_type": "lama"}', UnsupportedArchitectureError, "llama"),
        (b'{"model_type": "llama", "hidden_size": 3}', ConfigError, "num_hidden_layers"),
    ],
)
def test_bad_files(tmp_path, content, error, words):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    for source in (str(path), str(tmp_path)):
        result = run("show", source)
        assert isinstance(result.exception, error)
        assert words in str(result.exception)
        assert "\n" not in str(result.exception)


def test_bad_options():
    assert run("show", "qwen3-8b", "--context", "0").exit_code == 2
    assert run("show", "qwen3-8b", "--format", "yaml").exit_code == 2
    assert isinstance(run("show", "qwen3-8b", "--kv-dtype", "fp9").exception, UnknownNameError)
    assert isinstance(run("show", "qwen3-8b", "--drafter", "eagle").exception, FileFormatError)
