from __future__ import annotations

import json

import pytest

from rooflines.errors import (
    ConfigError,
    FileFormatError,
    RooflinesError,
    UnknownNameError,
    UnsupportedArchitectureError,
)
from rooflines.models.catalogue import load_preset
from rooflines.models.readers import read_model

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


def without(config: dict, *keys: str) -> dict:
    return {key: value for key, value in config.items() if key not in keys}


class TestSources:
    def test_dict_file_and_folder_give_the_same_model(self, tmp_path):
        (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
        models = [read_model(source, "m") for source in (LLAMA, tmp_path / "config.json", str(tmp_path))]
        assert models[0] == models[1] == models[2]

    def test_names(self, tmp_path):
        folder = tmp_path / "My-Model"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
        assert read_model(folder).name == "My-Model"
        assert read_model(folder / "config.json").name == "config"
        assert read_model(LLAMA, "given").name == "given"
        assert read_model({**LLAMA, "_name_or_path": "org/own"}).name == "org/own"

    def test_a_folder_named_like_a_drafter_means_nothing(self, tmp_path):
        # vllm issue 47486: the method was taken from a word in the path.
        folder = tmp_path / "eagle-mtp-medusa-test"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
        assert read_model(folder, "m") == read_model(LLAMA, "m")

    def test_a_preset_wins_over_an_empty_folder_of_its_name(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "gpt2").mkdir()
        assert read_model("gpt2").parameters_total == 124_439_808

    def test_a_folder_without_config(self, tmp_path):
        with pytest.raises(FileFormatError, match=r"a folder without a config\.json"):
            read_model(tmp_path)

    @pytest.mark.parametrize("name", ["no such model", "a\0b", "x" * 5000, ""])
    def test_strange_names(self, name):
        with pytest.raises(RooflinesError):
            read_model(name)

    @pytest.mark.parametrize("name", ["", " "])
    def test_no_name_is_not_the_present_folder(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UnknownNameError, match=f"unknown model '{name}' .a preset, or a path"):
            read_model(name)

    def test_unknown_names_get_near_matches(self):
        with pytest.raises(UnknownNameError, match=r"'llama-3\.1-8b'"):
            read_model("llama-3.1-8")

    def test_modelopt_file_beside_the_config(self, tmp_path):
        (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
        block = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
        (tmp_path / "hf_quant_config.json").write_text(json.dumps(block), encoding="utf-8")
        quantised, plain = read_model(tmp_path), read_model(LLAMA)
        assert quantised.kv_dtype == "fp8"
        assert quantised.weight_bytes < plain.weight_bytes
        assert quantised.parameters_total == plain.parameters_total


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "the file is empty"),
            (b"  \n", "the file is empty"),
            (b"\x89PNG\r\n", "no text file"),
            (b"[]", "holds a list"),
            (b"3", "holds a number"),
            (b"null", "holds null"),
            (b"{'a': 1}", "not JSON"),
            (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
            (b'{"a": ' * 100_000, "nested too deeply|not JSON"),
        ],
    )
    def test_what_is_no_config(self, tmp_path, content, words):
        path = tmp_path / "config.json"
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=words):
            read_model(path)

    def test_infinity_is_harmless(self, tmp_path):
        # Nemotron writes "time_step_limit": [0.0, Infinity].
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**LLAMA, "time_step_limit": [0.0, float("inf")]}), encoding="utf-8")
        assert "time_step_limit" in read_model(path).ignored_keys

    def test_a_byte_order_mark_is_harmless(self, tmp_path):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(LLAMA), encoding="utf-8-sig")
        assert read_model(path, "m") == read_model(LLAMA, "m")

    def test_a_key_given_twice_with_different_values(self, tmp_path):
        path = tmp_path / "config.json"
        path.write_text('{"model_type": "llama", "hidden_size": 64, "hidden_size": 128}', encoding="utf-8")
        with pytest.raises(ConfigError, match="hidden_size is given twice"):
            read_model(path)


class TestFamilies:
    def test_near_matches_of_an_unknown_type(self):
        with pytest.raises(
            UnsupportedArchitectureError, match=r"model_type 'qwen33' is not modelled; near: .*qwen3"
        ):
            read_model({**LLAMA, "model_type": "qwen33"})

    def test_phi_2_in_its_first_format_is_not_taken_for_phi(self):
        first = {
            "model_type": "phi-msft",
            "n_embd": 2560,
            "n_head": 32,
            "n_head_kv": None,
            "n_inner": None,
            "n_layer": 32,
            "n_positions": 2048,
            "vocab_size": 51200,
            "tie_word_embeddings": False,
        }
        # https://huggingface.co/microsoft/phi-2: 2,779,683,840; transformers builds a default model of
        # 1,418,270,720 out of this dict under `phi` without an error.
        assert read_model(first).parameters_total == 2_779_683_840
        with pytest.raises(ConfigError, match="hidden_size is missing"):
            read_model({**first, "model_type": "phi"})

    def test_the_class_name_tells_where_the_type_is_missing(self):
        named = {**without(LLAMA, "model_type"), "architectures": ["LlamaForCausalLM"]}
        assert read_model(named).family == "llama"
        with pytest.raises(UnsupportedArchitectureError, match=r"architectures 'FooForCausalLM'"):
            read_model({**named, "architectures": ["FooForCausalLM"]})
        for value in ("LlamaForCausalLM", [3], {"a": 1}):
            with pytest.raises(ConfigError, match="architectures"):
                read_model({**named, "architectures": value})

    def test_nothing_says_what_it_is(self):
        with pytest.raises(ConfigError, match="neither model_type nor architectures"):
            read_model(without(LLAMA, "model_type"))
        with pytest.raises(ConfigError, match="model_type is 3"):
            read_model({**LLAMA, "model_type": 3})


class TestShapesThatAFamilyDoesNotHave:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("num_local_experts", 8),
            ("kv_lora_rank", 512),
            ("block_configs", [{}]),
            ("num_kv_shared_layers", 2),
            ("layers_block_type", ["mamba", "attention"]),
            ("sliding_window_pattern", 6),
            ("compress_ratios", [0, 4]),
        ],
    )
    def test_they_are_refused_by_name(self, key, value):
        with pytest.raises(UnsupportedArchitectureError, match=key):
            read_model({**LLAMA, key: value})
        for nothing in (None, 0, [], False):
            assert read_model({**LLAMA, key: nothing}, "m").layers == read_model(LLAMA, "m").layers

    def test_a_window_that_llama_does_not_have(self):
        with pytest.raises(UnsupportedArchitectureError, match="sliding_window"):
            read_model({**LLAMA, "sliding_window": 4096})

    def test_harmless_keys_are_only_reported(self):
        spec = read_model({**LLAMA, "rope_theta": 1e4, "hidden_act": "silu", "_internal": 1})
        assert spec.ignored_keys == ("rope_theta", "hidden_act")


class TestLevels:
    @pytest.mark.parametrize("level", ["text_config", "llm_config", "language_config"])
    def test_nested(self, level):
        nested = read_model({"model_type": "some_vlm", level: LLAMA, "vision_config": {"depth": 3}}, "m")
        assert nested.layers == read_model(LLAMA, "m").layers
        assert nested.not_counted == ("vision_config",)

    def test_two_levels_deep(self):
        deep = {"model_type": "omni", "thinker_config": {"model_type": "t", "text_config": LLAMA}}
        assert read_model(deep, "m").layers == read_model(LLAMA, "m").layers

    def test_type_of_the_outer_level_serves_where_the_inner_has_none(self):
        inner = without(LLAMA, "model_type")
        assert read_model({"model_type": "llama", "text_config": inner}).family == "llama"
        assert read_model({"architectures": ["LlamaForCausalLM"], "text_config": inner}).family == "llama"

    def test_tying_and_dtype_may_stand_on_either_level(self):
        outer = {"model_type": "vlm", "tie_word_embeddings": True, "torch_dtype": "float32"}
        spec = read_model({**outer, "text_config": without(LLAMA, "torch_dtype")})
        assert spec.tied_embeddings
        assert spec.dtype == "fp32"
        inner = read_model({**outer, "text_config": LLAMA})
        assert inner.dtype == "bf16"

    def test_levels_that_contradict_each_other(self):
        with pytest.raises(ConfigError, match=r"tie_word_embeddings .* contradict"):
            read_model(
                {
                    "model_type": "v",
                    "tie_word_embeddings": True,
                    "text_config": {**LLAMA, "tie_word_embeddings": False},
                }
            )
        with pytest.raises(ConfigError, match=r"hidden_size 32 and text_config\.hidden_size 64 contradict"):
            read_model({"model_type": "v", "hidden_size": 32, "text_config": LLAMA})

    def test_two_candidates(self):
        with pytest.raises(ConfigError, match="text_config and llm_config both describe a model"):
            read_model({"model_type": "v", "text_config": LLAMA, "llm_config": LLAMA})

    @pytest.mark.parametrize("value", ["x", 3, [LLAMA]])
    def test_a_level_must_be_an_object(self, value):
        with pytest.raises(ConfigError, match=r"text_config is .* an object"):
            read_model({"model_type": "v", "text_config": value})


class TestDtype:
    def test_spellings(self):
        base = without(LLAMA, "torch_dtype")
        assert read_model({**base, "dtype": "float16"}).dtype == "fp16"
        assert read_model({**base, "torch_dtype": "torch.float32"}).dtype == "fp32"

    def test_a_missing_dtype_is_said(self):
        for config in (without(LLAMA, "torch_dtype"), {**LLAMA, "torch_dtype": "auto"}):
            spec = read_model(config)
            assert spec.dtype == "bf16"
            assert any("dtype" in note for note in spec.assumed)

    @pytest.mark.parametrize("value", ["float61", 16, ["bf16"]])
    def test_unknown(self, value):
        with pytest.raises(ConfigError, match="dtype"):
            read_model({**LLAMA, "torch_dtype": value})


def test_a_drafter_config_is_not_read_as_a_model():
    for key, value in (("draft_vocab_size", 50), ("dflash_config", {"a": 1}), ("eagle_config", {"a": 1})):
        with pytest.raises(UnsupportedArchitectureError, match=f"{key}.*drafter head"):
            read_model({**LLAMA, key: value})


@pytest.mark.parametrize(
    ("preset", "key"),
    [
        ("llama-2-7b", "num_hidden_layers"),
        ("deepseek-v3", "num_nextn_predict_layers"),
        ("qwen3.5-9b", "mtp_num_hidden_layers"),
        ("t5-small", "num_decoder_layers"),
    ],
)
def test_a_count_of_layers_that_cannot_be_is_refused_at_once(preset, key):
    with pytest.raises(ConfigError, match=rf"{key} is 1000000: it must be a whole number"):
        read_model({**load_preset(preset), key: 1_000_000})
