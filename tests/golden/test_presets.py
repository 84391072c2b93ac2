"""Every preset's parameter count against a published total, term by term."""

from __future__ import annotations

import json
import re

import pytest

from rooflines.errors import AmbiguousNameError, UnknownNameError
from rooflines.models.catalogue import list_presets, load_preset, resolve_preset
from rooflines.models.readers import read_model

_PRINTED = re.compile(r"(\d+)(?:\.(\d+))?([MBT])")
_SCALE = {"M": 10**6, "B": 10**9, "T": 10**12}


def last_digit(printed: str) -> tuple[float, float]:
    """A printed total such as 65.2B, and one unit of its last digit."""
    whole, decimals, scale = _PRINTED.fullmatch(printed).groups()
    step = _SCALE[scale] / 10 ** len(decimals or "")
    return float(f"{whole}.{decimals or 0}") * _SCALE[scale], step


@pytest.mark.parametrize("name", list_presets())
def test_parameters_equal_the_published_total(name):
    published = load_preset(name)["_published"]
    assert published["source"].startswith("https://")
    # Checkpoints also hold what is no parameter of the main model: each such term is named.
    counted = read_model(name).parameters_total + sum(published.get("besides", {}).values())
    if isinstance(published["total"], int):
        assert counted == published["total"]
    else:
        # Papers round or cut: the count must lie within one unit of the last printed digit.
        value, step = last_digit(published["total"])
        assert abs(counted - value) < step


@pytest.mark.parametrize("name", list_presets())
def test_presets_are_complete_and_hold_nothing_unread(name):
    spec = read_model(name)
    assert spec.ignored_keys == ()
    assert spec.name == name
    assert not [note for note in spec.assumed if "dtype" in note]
    assert load_preset(name)["_source"].startswith("https://huggingface.co/")


def test_qwen_3_5_4b_has_the_size_that_llama_cpp_counts():
    """4.21 B, and 4.33 B with the multi-token-prediction module: its card says no more than 4B."""
    spec = read_model("qwen3.5-4b")
    assert round(spec.parameters_total / 1e9, 2) == 4.21
    assert round((spec.parameters_total + spec.parameters_mtp) / 1e9, 2) == 4.33


def test_there_are_many():
    assert len(list_presets()) >= 60
    assert {"llama-2-7b", "llama-3.1-70b", "llama-3.2-1b", "qwen3-8b", "vicuna-33b-v1.3", "gpt2"} <= set(
        list_presets()
    )


@pytest.mark.parametrize(
    ("typed", "preset"),
    [
        ("llama-2-7b", "llama-2-7b"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("Llama-3.1-70B", "llama-3.1-70b"),
        ("google/gemma-3-1b-it", "gemma-3-1b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("vicuna-7b", "vicuna-7b-v1.3"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b-v1.0"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia-nemotron-3-nano-30b-a3b"),
    ],
)
def test_hugging_face_names_find_their_preset(typed, preset):
    assert resolve_preset(typed) == preset


def test_a_typo_gets_near_matches_and_a_family_gets_its_members():
    with pytest.raises(UnknownNameError, match="'llama-2-7b'"):
        read_model("lama-2-7b")
    with pytest.raises(AmbiguousNameError, match=r"'mistral-7b-v0.1' or 'mistral-7b-v0.3'"):
        read_model("mistral-7b")


def test_loading_a_preset_opens_one_file(monkeypatch):
    opened = []
    original = json.loads
    monkeypatch.setattr(json, "loads", lambda *given, **named: opened.append(1) or original(*given, **named))
    read_model("qwen3-8b")
    assert len(opened) == 1


def test_the_llama_family_has_the_sizes_of_its_paper():
    # LLaMA (arXiv 2302.13971), Table 2: dimension, heads, layers.
    table = {"llama-7b": (4096, 32, 32), "llama-13b": (5120, 40, 40), "llama-65b": (8192, 64, 80)}
    for name, (hidden, heads, layers) in table.items():
        spec = read_model(name)
        assert (spec.hidden, spec.layers[0].mixer.query_heads, len(spec.layers)) == (hidden, heads, layers)


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        # Cache tensors of transformers 5.23.0 on the meta device, elements a position over all layers.
        ("llama-2-7b", 262_144),
        ("llama-3.1-70b", 163_840),
        ("llama-3.2-3b", 57_344),
        ("vicuna-33b-v1.3", 798_720),
        ("qwen2.5-7b", 28_672),
        ("qwen3-8b", 73_728),
        ("gemma-2-9b", 172_032),
        ("gpt-oss-120b", 36_864),
        ("deepseek-v2-lite", 15_552),
        ("deepseek-v3", 35_136),
        ("deepseek-v3.2", 42_944),
        ("glm-4.5", 188_416),
        ("ling-flash-2.0", 32_768),
        ("falcon-7b", 4_096),
        ("gpt2", 18_432),
    ],
)
def test_cache_elements_per_position(name, elements):
    assert read_model(name).kv_elements_per_token == elements
