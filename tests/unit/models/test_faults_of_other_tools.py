"""Faults that other tools shipped when reading configs; the address in each test is where it was reported."""

from __future__ import annotations

import pytest

from rooflines.errors import ConfigError
from rooflines.models.catalogue import load_preset
from rooflines.models.readers import read_model

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}
QWEN3_5 = {
    "hidden_size": 5120,
    "num_hidden_layers": 64,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 17408,
    "vocab_size": 248320,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "dtype": "bfloat16",
}


class TestNestedTextConfig:
    """https://github.com/jranaraki/vllm-fit/issues/31: hidden 4096, 32 layers, vocabulary 32000 instead."""

    @pytest.mark.parametrize("level", ["text_config", "llm_config", "language_config"])
    def test_one_level(self, level):
        config = {"architectures": ["Qwen3_5ForConditionalGeneration"], level: QWEN3_5}
        # 26,895,998,464 is the text model of Qwen3.5-27B on the meta device.
        assert read_model(config).parameters_total == 26_895_998_464

    def test_two_levels(self):
        config = {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "thinker_config": {"text_config": QWEN3_5},
        }
        assert read_model(config).parameters_total == 26_895_998_464

    @pytest.mark.parametrize("key", sorted(set(QWEN3_5) - {"dtype", "full_attention_interval"}))
    def test_a_missing_key_is_named_and_never_a_default(self, key):
        inner = {name: value for name, value in QWEN3_5.items() if name != key}
        with pytest.raises(ConfigError, match=rf"text_config\.{key}"):
            read_model({"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": inner})


class TestOmittedDefaults:
    """https://github.com/alvarobartt/hf-mem/pull/26: files that omit what equals the class default."""

    def test_llava(self):
        with pytest.raises(ConfigError, match=r"text_config\.hidden_size is missing"):
            read_model({"model_type": "llava", "text_config": {"model_type": "llama"}})

    def test_gemma_3_27b_says_no_vocabulary(self):
        config = load_preset("gemma-3-12b")
        config.pop("vocab_size")
        with pytest.raises(ConfigError, match=r"text_config\.vocab_size"):
            read_model({"model_type": "gemma3", "text_config": config})


class TestHeadsByLayer:
    """https://github.com/oobabooga/textgen/issues/7012: head counts that are lists, with null and 0 in them."""

    def test_a_list_means_one_entry_a_layer(self):
        spec = read_model({**LLAMA, "num_key_value_heads": [8, 8, None, 0, 8]})
        assert [layer.kv_elements_per_position for layer in spec.layers] == [2048, 2048, 0, 0, 2048]
        assert [layer.mixer is None for layer in spec.layers] == [False, False, True, True, False]
        full = read_model(LLAMA)
        attention = sum(matrix.parameters for matrix in full.layers[0].mixer.matrices(4096))
        assert full.parameters_total - spec.parameters_total == 2 * (attention + 4096)

    @pytest.mark.parametrize(
        "config",
        [
            {**LLAMA, "num_key_value_heads": None},
            {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"},
        ],
    )
    def test_null_and_missing_mean_as_many_as_query_heads(self, config):
        assert read_model(config).layers[0].mixer.kv_heads == 32

    def test_query_heads_by_layer(self):
        spec = read_model({**LLAMA, "num_attention_heads": [32, 16, 32, 16, 32], "head_dim": 128})
        assert [layer.mixer.query_heads for layer in spec.layers] == [32, 16, 32, 16, 32]

    def test_a_list_of_another_length(self):
        with pytest.raises(ConfigError, match="4 entries for 5 layers"):
            read_model({**LLAMA, "num_key_value_heads": [8, 8, 8, 8]})

    def test_a_missing_count_is_refused_where_the_class_has_a_default_of_its_own(self):
        # MistralConfig says 8, Qwen2Config 32, whatever the model is.
        for family in ("mistral", "qwen2", "qwen3", "gemma2", "mixtral"):
            config = {**LLAMA, "model_type": family, "head_dim": 128, "num_local_experts": 8}
            config["sliding_window"] = 4096 if family == "gemma2" else None
            config.pop("num_key_value_heads")
            if family != "mixtral":
                config.pop("num_local_experts")
            with pytest.raises(ConfigError, match="num_key_value_heads is missing"):
                read_model(config)


class TestExplicitHeadSize:
    """https://github.com/vllm-project/speculators/pull/517 and https://github.com/allenai/open-instruct/pull/1096."""

    def test_heads_times_head_size_may_exceed_the_hidden_size(self):
        shapes = {
            m.name: (m.outputs, m.inputs)
            for m in read_model({"model_type": "qwen3_5_text", **QWEN3_5}).layers[3].mixer.matrices(5120)
        }
        assert shapes["query"] == (2 * 24 * 256, 5120)  # with the output gate
        assert shapes["key"] == shapes["value"] == (4 * 256, 5120)
        assert shapes["output"] == (5120, 24 * 256)

    def test_qwen3_4b(self):
        spec = read_model("qwen3-4b")
        assert spec.hidden // spec.layers[0].mixer.query_heads == 80
        assert spec.layers[0].mixer.head_size == 128
        assert [m.name for m in spec.layers[0].feed_forwards[0].matrices(2560)] == ["gate", "up", "down"]

    def test_a_fraction_is_refused(self):
        with pytest.raises(
            ConfigError, match=r"30 heads .* do not divide a hidden size of 4096: state head_dim"
        ):
            read_model({**LLAMA, "num_attention_heads": 30, "num_key_value_heads": 30})

    def test_key_value_heads_must_divide(self):
        with pytest.raises(ConfigError, match="5 key/value heads do not divide 32 query heads"):
            read_model({**LLAMA, "num_key_value_heads": 5})

    def test_a_head_size_that_latent_attention_ignores(self):
        # GLM-5 says 64 and GLM-5.2 192 for the same geometry.
        config = load_preset("glm-5")
        assert read_model({**config, "head_dim": 192}).layers == read_model(config).layers


class TestExpertsAndHeads:
    """https://github.com/jranaraki/vllm-fit/issues/27: Mixtral read as 13B, and an untied head forgotten."""

    def test_mixtral_is_not_dense(self):
        spec = read_model("mixtral-8x7b-v0.1")
        assert spec.parameters_total == 46_702_792_704
        assert spec.parameters_active == 12_879_925_248

    def test_untied_heads_are_counted(self):
        tied, untied = (read_model({**LLAMA, "tie_word_embeddings": tie}) for tie in (True, False))
        assert untied.parameters_total - tied.parameters_total == 32000 * 4096
        assert untied.weight_bytes - tied.weight_bytes == 2 * 32000 * 4096

    # Class defaults of transformers 5.23.0.
    @pytest.mark.parametrize(
        ("preset", "tied"),
        [
            ("llama-2-7b", False),
            ("mistral-7b-v0.1", False),
            ("qwen3-8b", False),
            ("phi-4", False),
            ("deepseek-v3", False),
            ("gpt-oss-20b", False),
            ("pythia-6.9b", False),
            ("olmo-2-1124-7b", False),
            ("minimax-m2.5", False),
            ("jamba-v0.1", False),
            ("opt-6.7b", True),
            ("gpt2", True),
            ("starcoder2-7b", True),
            ("falcon-7b", True),
            ("mpt-7b", True),
            ("gemma-2-9b", True),
            ("t5-small", True),
            ("minicpm3-4b", True),
        ],
    )
    def test_a_missing_flag_follows_the_class(self, preset, tied):
        config = load_preset(preset)
        config.pop("tie_word_embeddings")
        assert read_model(config).tied_embeddings is tied


class TestCache:
    def test_kv_is_not_heads_times_hidden(self):
        """https://github.com/jranaraki/vllm-fit/issues/2: Llama-2-7B in fp16 is 512 KiB a token."""
        assert read_model("llama-2-7b").kv_bytes_per_token() == 512 * 1024

    def test_windows_are_not_charged_the_whole_context(self):
        """https://github.com/ollama/ollama/pull/16958: Gemma-4 26B-A4B, 25 of 30 layers with a window of 1024."""
        spec = read_model("gemma-4-26b-a4b")
        naive = spec.kv_elements_per_token
        # 25 local layers of 8 x 256 keys and values, 5 global ones of 2 x 512.
        assert naive == 25 * 2 * 8 * 256 + 5 * 2 * 2 * 512
        for context, ratio in ((4096, 3.1), (131_072, 10.0)):
            assert naive * context / spec.kv_elements(context) > ratio

    def test_a_window_that_is_switched_off(self):
        base = load_preset("qwen2.5-7b")
        off = {**base, "sliding_window": 131_072, "use_sliding_window": False}
        assert read_model(off).kv_elements(10**6) == 10**6 * read_model(off).kv_elements_per_token
        on = {**base, "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 8}
        windows = [layer.mixer.window for layer in read_model(on).layers]
        assert windows == [None] * 8 + [4096] * 20

    def test_windows_of_mistral(self):
        base = load_preset("mistral-7b-v0.1")
        assert read_model(base).kv_elements(10**6) == 32 * 2 * 8 * 128 * 4095
        none = {**base, "sliding_window": None}
        assert read_model(none).kv_elements(10**6) == 32 * 2 * 8 * 128 * 10**6
        off = {**base, "use_sliding_window": False}
        assert read_model(off).kv_elements(10**6) == read_model(none).kv_elements(10**6)
        missing = {key: value for key, value in base.items() if key != "sliding_window"}
        assert any("sliding window" in note for note in read_model(missing).assumed)

    def test_a_window_by_layer_type_needs_its_size(self):
        config = load_preset("gpt-oss-20b")
        config.pop("sliding_window")
        with pytest.raises(ConfigError, match="sliding_window is missing"):
            read_model(config)

    @pytest.mark.parametrize("shared", [0, 15, 20])
    def test_layers_that_share_keys_and_values(self, shared):
        """https://github.com/unslothai/unsloth/pull/5225: 15 of 35 layers of Gemma-3n counted anyway."""
        config = {
            "model_type": "gemma3n_text",
            "hidden_size": 2048,
            "intermediate_size": 16384,
            "num_hidden_layers": 35,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 256,
            "vocab_size": 262_400,
            "vocab_size_per_layer_input": 262_144,
            "hidden_size_per_layer_input": 256,
            "altup_num_inputs": 4,
            "laurel_rank": 64,
            "num_kv_shared_layers": shared,
            "sliding_window": 512,
            "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
        }
        spec = read_model(config)
        assert spec.kv_elements_per_token == (35 - shared) * 2 * 2 * 256
        if shared == 15:
            # transformers 5.23 on the meta device, and "E4B": 4B without the tables that are only gathered.
            assert spec.parameters_total == 6_835_235_568

    def test_latent_attention_caches_no_heads(self):
        # A naive 2 x 128 heads x 56 x 61 layers is 25 times as much.
        assert read_model("deepseek-v3").kv_elements_per_token == 35_136


class TestActiveExperts:
    """https://github.com/AlexsJones/llmfit/issues/474 and /921: total parameters where the active ones count."""

    @pytest.mark.parametrize(
        ("preset", "active"),
        [
            ("gpt-oss-120b", 5_132_849_472),
            ("gpt-oss-20b", 3_608_307_264),
            ("deepseek-v3", 36_625_603_584),
            ("qwen3-coder-480b-a35b", 34_541_270_528),
        ],
    )
    def test_active_without_the_input_embedding(self, preset, active):
        assert read_model(preset).parameters_active_without_embedding == active

    @pytest.mark.parametrize(
        "key", ["num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "moe_k"]
    )
    def test_every_spelling_of_top_k(self, key):
        config = load_preset("mixtral-8x7b-v0.1")
        config[key] = config.pop("num_experts_per_tok")
        assert read_model(config).parameters_active == 12_879_925_248

    def test_a_missing_top_k_is_no_one(self):
        config = load_preset("mixtral-8x7b-v0.1")
        config.pop("num_experts_per_tok")
        with pytest.raises(ConfigError, match="num_experts_per_tok"):
            read_model(config)
