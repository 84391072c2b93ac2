from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs torch (extra [measure])")
pytest.importorskip("transformers", reason="needs transformers (extra [measure])")

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rooflines.errors import FileFormatError, InputError, UnknownNameError
from rooflines.measurement import models
from rooflines.measurement.memory import fitting_memory
from rooflines.measurement.models import load_model, load_tokenizer, require_torch
from rooflines.measurement.threads import computing_threads
from rooflines.models.readers import read_config, read_model

pytestmark = pytest.mark.torch

FACTS = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "float16",
}


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**{k: v for k, v in FACTS.items() if k != "torch_dtype"})).save_pretrained(
        tmp_path
    )
    return tmp_path


def test_real_weights_of_a_folder_are_named_by_their_content(folder):
    first, again = load_model(str(folder), "fp32"), load_model(str(folder), "bf16")
    assert first.weights == again.weights
    assert first.weights.startswith("sha256:")
    assert first.runner.name == "static-llama"
    assert first.folder == str(folder)
    assert first.name == folder.name
    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(**FACTS)).save_pretrained(folder)
    assert load_model(str(folder), "fp32").weights != first.weights


def test_random_weights_of_a_config_follow_the_seed(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(FACTS))
    loads = [load_model(str(tmp_path / "config.json"), "fp32", seed=seed) for seed in (1, 1, 2)]
    tables = [one.runner.embedding for one in loads]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])
    assert loads[2].weights == "random, seed 2"
    assert loads[0].folder is None
    assert load_model(str(tmp_path), "fp32", seed=1).weights == "random, seed 1"


@pytest.mark.parametrize(("dtype", "torch_dtype"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_the_config_kept_reads_as_the_model_that_ran(dtype, torch_dtype, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(FACTS))
    loaded = load_model(str(tmp_path), dtype)
    assert loaded.runner.embedding.dtype == torch_dtype
    spec = read_config(json.loads(loaded.config), "measured")
    assert len(spec.layers) == 2
    assert spec.dtype == dtype


def test_a_preset_gets_random_weights_of_its_own_size():
    loaded = load_model("smollm2-135m", "bf16")
    runner = loaded.runner
    # https://huggingface.co/HuggingFaceTB/SmolLM2-135M/blob/main/config.json
    assert (runner.depth, runner.vocabulary) == (30, 49152)
    assert read_config(json.loads(loaded.config), "measured").hidden == read_model("smollm2-135m").hidden


def test_any_other_architecture_runs_as_transformers_runs_it(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "vocab_size": 64,
                "n_embd": 32,
                "n_layer": 2,
                "n_head": 2,
                "n_positions": 64,
            }
        )
    )
    loaded = load_model(str(tmp_path), "fp32")
    assert loaded.runner.name == "transformers"
    cache = loaded.runner.new_cache(1, 10)
    assert loaded.runner.forward(torch.zeros(1, 3, dtype=torch.long), cache).shape == (1, 3, 64)
    assert cache.length == 3


def test_our_forward_pass_can_be_declined(folder):
    assert load_model(str(folder), "fp32", lean=False).runner.name == "transformers"


@pytest.mark.parametrize(
    ("source", "dtype", "error", "words"),
    [
        ("smollm2-135n", "bf16", UnknownNameError, "did you mean 'smollm2-135m'"),
        ("smollm2-135m", "fp8", UnknownNameError, "known: fp32, bf16, fp16"),
        ("{folder}/config.json", "bf16", FileFormatError, "no model_type"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(source, dtype, error, words, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(error, match=words):
        load_model(source.format(folder=tmp_path), dtype)


def test_broken_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no such thing"}))
    with pytest.raises(FileFormatError, match="transformers cannot build"):
        load_model(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match="transformers cannot load"):
        load_model(str(tmp_path))
    with pytest.raises(FileFormatError, match="no tokenizer in"):
        load_tokenizer(str(tmp_path))


def test_a_device_that_is_not_there_is_refused():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(InputError, match="device 'cuda'"):
        load_model("smollm2-135m", device="cuda")


def test_missing_torch_is_answered_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(
        InputError, match=r"needs torch: install them with pip install 'rooflines\[measure\]'"
    ):
        require_torch()


def test_threads_are_as_many_as_before_afterwards():
    before = torch.get_num_threads()
    with computing_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(InputError, match="0 threads cannot compute"), computing_threads(0):
        pass


@pytest.mark.parametrize("message", ["DefaultCPUAllocator: can't allocate memory: you tried", None])
def test_memory_that_ends_is_answered_with_what_to_make_smaller(message):
    error = torch.OutOfMemoryError("CUDA out of memory") if message is None else RuntimeError(message)
    with pytest.raises(InputError, match="smaller --batch, --context"), fitting_memory():
        raise error


def test_other_failures_are_not_blamed_on_memory():
    with pytest.raises(RuntimeError, match="shape"), fitting_memory():
        raise RuntimeError("shape mismatch")


@pytest.mark.slow
def test_the_converted_folder_answers_as_the_gguf_file_it_was_made_of(smollm2, smollm2_gguf):
    direct, converted = load_model(str(smollm2_gguf), "fp32"), load_model(str(smollm2), "fp32")
    tokens = torch.arange(50, 60)[None]
    answers = [one.runner.forward(tokens, one.runner.new_cache(1, 10)) for one in (direct, converted)]
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-5, atol=1e-5)
    assert "quantization_config" not in json.loads(direct.config)
    assert load_tokenizer(str(smollm2))("Hello")["input_ids"]
