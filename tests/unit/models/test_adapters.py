"""What each family's adapter makes of its own spellings; counts are held by the golden and oracle tests."""

from __future__ import annotations

import pytest

from rooflines.errors import ConfigError, UnsupportedArchitectureError
from rooflines.models.adapters import FAMILIES
from rooflines.models.catalogue import load_preset
from rooflines.models.readers import read_model
from rooflines.models.spec import (
    Attention,
    FeedForward,
    GatedDeltaNet,
    LatentAttention,
    Mamba2,
    MixtureOfExperts,
)

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


def kinds(spec) -> list[str]:
    return ["+".join(block.kind for block in layer.feed_forwards) for layer in spec.layers]


def windows(spec) -> list[int | None]:
    return [layer.mixer.window for layer in spec.layers]


def test_there_are_many_families():
    assert len(FAMILIES) >= 80


class TestGpt:
    def test_spellings_of_gpt2(self):
        config = {
            "model_type": "gpt2",
            "n_embd": 64,
            "n_head": 4,
            "n_layer": 2,
            "n_positions": 32,
            "vocab_size": 100,
        }
        spec = read_model(config)
        assert spec.layers[0].feed_forwards[0] == FeedForward(width=256, gated=False, bias=True)
        assert read_model({**config, "n_inner": None}).layers == spec.layers
        assert read_model({**config, "n_inner": 96}).layers[0].feed_forwards[0].width == 96
        assert spec.position_rows == 32
        with pytest.raises(UnsupportedArchitectureError, match="add_cross_attention"):
            read_model({**config, "add_cross_attention": True})

    @pytest.mark.parametrize(
        ("flags", "kv_heads"),
        [
            ({"multi_query": True, "new_decoder_architecture": False}, 1),
            ({"multi_query": False, "new_decoder_architecture": False}, 4),
            ({"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 2}, 2),
            ({"multi_query": True, "new_decoder_architecture": True, "n_head_kv": 2}, 2),
            ({"multi_query": False}, 4),
            ({}, 1),
        ],
    )
    def test_key_value_heads_of_falcon(self, flags, kv_heads):
        # Falcon files carry n_head and num_attention_heads alike.
        config = {
            "model_type": "falcon",
            "hidden_size": 64,
            "n_head": 4,
            "num_attention_heads": 4,
            "n_layer": 2,
            "vocab_size": 100,
        }
        assert read_model({**config, **flags}).layers[0].mixer.kv_heads == kv_heads

    def test_opt_350m_is_post_norm_with_a_narrower_embedding(self):
        config = load_preset("opt-1.3b")
        spec = read_model({**config, "word_embed_proj_dim": 512, "do_layer_norm_before": False})
        assert [(m.name, m.outputs, m.inputs) for m in spec.embedding_projections] == [
            ("embedding_in", 2048, 512),
            ("embedding_out", 512, 2048),
        ]
        assert not spec.final_norm
        assert spec.position_rows == 2050

    def test_qwen_1_counts_gate_and_up_together(self):
        config = {
            "model_type": "qwen",
            "hidden_size": 4096,
            "intermediate_size": 22016,
            "kv_channels": 128,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "vocab_size": 151_936,
            "no_bias": True,
            "tie_word_embeddings": False,
        }
        # https://huggingface.co/Qwen/Qwen-7B: safetensors total.
        assert read_model(config).parameters_total == 7_721_324_544
        with pytest.raises(ConfigError, match="intermediate_size is 22017"):
            read_model({**config, "intermediate_size": 22017})

    def test_chatglm_takes_the_padded_vocabulary(self):
        config = load_preset("glm-4-9b")
        assert read_model({**config, "vocab_size": 1}).vocabulary == 151_552
        config.pop("padded_vocab_size")
        with pytest.raises(ConfigError, match="padded_vocab_size"):
            read_model(config)

    def test_options_of_mpt_that_are_not_modelled(self):
        config = load_preset("mpt-7b")
        for changed in (
            {"no_bias": False},
            {"attn_config": {"qk_ln": True}},
            {"attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 2}},
            {"attn_config": {"alibi": False}},
        ):
            with pytest.raises(UnsupportedArchitectureError):
                read_model({**config, **changed})


class TestWindows:
    def test_gemma_2_alternates_though_its_config_does_not_say_so(self):
        assert windows(read_model("gemma-2-9b"))[:4] == [4096, None, 4096, None]

    def test_gemma_3_has_every_sixth_layer_full(self):
        spec = read_model("gemma-3-1b")
        assert windows(spec)[:7] == [512] * 5 + [None, 512]
        config = load_preset("gemma-3-1b")
        types = ["full_attention"] * 2 + ["sliding_attention"] * 24
        assert windows(read_model({**config, "layer_types": types})) == [None] * 2 + [512] * 24
        config.pop("sliding_window_pattern")
        assert windows(read_model(config)) == windows(spec)

    def test_cohere_2_has_every_fourth_layer_full(self):
        config = {**SMALL, "model_type": "cohere2", "sliding_window": 8, "num_hidden_layers": 8}
        assert windows(read_model(config)) == [8, 8, 8, None] * 2

    def test_gpt_oss_alternates(self):
        config = load_preset("gpt-oss-20b")
        config.pop("layer_types")
        assert windows(read_model(config)) == [128, None] * 12

    def test_llama_4_chunks_three_of_four_layers(self):
        chunks = [layer.mixer.chunk for layer in read_model("llama-4-scout-17b-16e").layers]
        assert chunks == [8192, 8192, 8192, None] * 12
        config = load_preset("llama-4-scout-17b-16e")
        assert {
            layer.mixer.chunk for layer in read_model({**config, "attention_chunk_size": None}).layers
        } == {None}

    def test_exaone_4_with_a_window_needs_to_say_where(self):
        config = {**SMALL, "model_type": "exaone4"}
        assert windows(read_model(config)) == [None] * 4
        with pytest.raises(ConfigError, match="layer_types"):
            read_model({**config, "sliding_window": 8})

    def test_a_layer_type_that_is_not_modelled(self):
        with pytest.raises(UnsupportedArchitectureError, match="'conv'"):
            read_model({**SMALL, "model_type": "qwen3", "layer_types": ["conv"] * 4})


class TestExperts:
    def test_first_dense_then_experts(self):
        assert kinds(read_model("deepseek-v3")) == ["dense"] * 3 + ["moe"] * 58

    def test_lists_of_zero_and_one_or_of_words(self):
        config = load_preset("deepseek-v3")
        listed = [0] * 2 + [1] * 59
        assert kinds(read_model({**config, "moe_layer_freq": listed})) == ["dense"] * 2 + ["moe"] * 59
        words = ["dense"] * 2 + ["sparse"] * 59
        assert kinds(read_model({**config, "mlp_layer_types": words})) == ["dense"] * 2 + ["moe"] * 59
        with pytest.raises(ConfigError, match="entry 2 must be 0"):
            read_model({**config, "moe_layer_freq": [2] * 61})

    def test_steps_of_qwen(self):
        config = load_preset("qwen1.5-moe-a2.7b")
        spec = read_model({**config, "decoder_sparse_step": 2, "mlp_only_layers": [1, 3]})
        assert kinds(spec)[:6] == ["dense"] * 5 + ["moe"]
        for value in ("x", [0.5], {"a": 1}):
            with pytest.raises(ConfigError, match="mlp_only_layers"):
                read_model({**config, "mlp_only_layers": value})

    def test_shared_experts(self):
        shared = {
            name: next(b for b in read_model(name).layers[-1].feed_forwards if b.kind == "moe")
            for name in ("deepseek-v3", "qwen1.5-moe-a2.7b", "llama-4-scout-17b-16e", "mixtral-8x7b-v0.1")
        }
        assert [block.shared_width for block in shared.values()] == [2048, 5632, 8192, 0]
        assert [block.shared_gate for block in shared.values()] == [False, True, False, False]

    def test_null_shared_experts_are_none(self):
        config = {**load_preset("deepseek-v3"), "n_shared_experts": None}
        assert read_model(config).layers[-1].feed_forwards[0].shared_width == 0

    def test_widths_of_llama_4_maverick(self):
        blocks = {
            block for layer in read_model("llama-4-maverick-17b-128e").layers for block in layer.feed_forwards
        }
        assert {block.width for block in blocks if isinstance(block, FeedForward)} == {16384}
        assert {block.width for block in blocks if isinstance(block, MixtureOfExperts)} == {8192}

    def test_the_width_of_dense_layers_is_unused_where_there_are_none(self):
        config = load_preset("qwen3-coder-480b-a35b")
        config.pop("intermediate_size", None)
        assert read_model(config).parameters_total == 480_154_875_392

    def test_ling_2_has_one_dense_layer_and_counts_as_its_card_says(self):
        config = load_preset("ling-flash-2.0")
        spec = read_model(config)
        assert kinds(spec) == ["dense"] + ["moe"] * 31
        # https://huggingface.co/inclusionAI/Ling-flash-2.0: 6.1B activated, 4.8B without embeddings.
        tables = 2 * 157_184 * 4096
        assert int(spec.parameters_active / 1e8) == 61
        assert int((spec.parameters_active - tables) / 1e8) == 48
        assert read_model({**config, "model_type": "bailing_moe_v2"}).layers == spec.layers

    def test_flags_and_modules_of_ling(self):
        config = load_preset("ling-flash-2.0")
        plain = read_model(config)
        biased = read_model({**config, "use_bias": True, "use_qkv_bias": True})
        # 32 layers of 4096 outputs, and of 32 query and 2 x 4 key/value heads of 128.
        assert biased.parameters_total - plain.parameters_total == 32 * (4096 + 40 * 128)
        bare = read_model({**config, "use_qk_norm": False})
        assert plain.parameters_total - bare.parameters_total == 32 * 2 * 128
        (module,) = read_model({**config, "num_nextn_predict_layers": 1}).mtp
        # modeling_bailing_moe_v2.py: a projection 2 h to h, three norms, and a layer of experts.
        experts = module.layers[0].parameters(4096)
        assert module.parameters(4096) == 2 * 4096 * 4096 + 3 * 4096 + experts

    def test_ling_1_says_nothing_of_norms_and_is_refused(self):
        config = load_preset("ling-flash-2.0")
        del config["use_qk_norm"]
        with pytest.raises(ConfigError, match="use_qk_norm is missing"):
            read_model(config)

    def test_dense_and_experts_in_one_layer(self):
        assert set(kinds(read_model("gemma-4-26b-a4b"))) == {"dense+moe"}

    def test_dbrx_nests_its_numbers(self):
        config = {
            "model_type": "dbrx",
            "d_model": 6144,
            "n_heads": 48,
            "n_layers": 40,
            "vocab_size": 100_352,
            "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
            "tie_word_embeddings": False,
        }
        spec = read_model(config)
        # https://www.databricks.com/blog/introducing-dbrx-new-state-art-open-llm: 132B, 36B active.
        assert round(spec.parameters_total / 1e9) == 132
        assert round(spec.parameters_active / 1e9) == 36
        with pytest.raises(ConfigError, match=r"ffn_config\.moe_top_k"):
            read_model({**config, "ffn_config": {"ffn_hidden_size": 8, "moe_num_experts": 4}})


class TestLatent:
    def test_a_missing_rank_is_no_class_default(self):
        config = load_preset("deepseek-v2-lite")
        spec = read_model(config)
        assert spec.layers[0].mixer.query_rank is None
        assert spec.assumed == ()
        config.pop("q_lora_rank", None)
        missing = read_model(config)
        assert missing.parameters_total == spec.parameters_total
        assert any("q_lora_rank" in note for note in missing.assumed)

    def test_shared_choices_of_the_indexer(self):
        config = load_preset("glm-5")
        length = config["num_hidden_layers"]
        types = ["full"] + ["shared"] * (length - 1)
        spec = read_model({**config, "indexer_types": types})
        assert [layer.mixer.indexer.own for layer in spec.layers] == [True] + [False] * (length - 1)
        assert spec.kv_elements_per_token == length * 576 + 128

    def test_multi_token_prediction_copies(self):
        copied, shared = read_model("deepseek-v3"), read_model("glm-5")
        assert (copied.mtp[0].own_head, shared.mtp[0].own_head) == (True, False)
        # DeepSeek-V3: 11.5B of its own (README_WEIGHTS.md), GLM-5: 9,952,920,320.
        assert copied.mtp[0].parameters(7168) == 11_610_067_968
        assert shared.parameters_mtp == 9_952_920_320

    def test_two_geometries_of_mimo_v2(self):
        layers = 6
        config = {
            "model_type": "mimo_v2_flash",
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": layers,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 24,
            "v_head_dim": 16,
            "swa_num_attention_heads": 8,
            "swa_num_key_value_heads": 4,
            "swa_head_dim": 24,
            "swa_v_head_dim": 16,
            "sliding_window": 16,
            "sliding_window_size": 16,
            "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
            "add_swa_attention_sink_bias": True,
            "moe_layer_freq": [0] + [1] * 5,
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "n_shared_experts": None,
            "vocab_size": 100,
        }
        spec = read_model(config)
        # The SGLang reference sees 16 earlier positions beside its own.
        assert windows(spec) == [None, 17, 17, 17, 17, None]
        assert [layer.mixer.kv_heads for layer in spec.layers] == [2, 4, 4, 4, 4, 2]
        assert [layer.mixer.sinks for layer in spec.layers] == [False, True, True, True, True, False]
        assert spec.layers[0].kv_elements_per_position == 2 * (24 + 16)


class TestHybrid:
    def test_three_of_four_layers_are_linear(self):
        mixers = [type(layer.mixer) for layer in read_model("qwen3-next-80b-a3b").layers]
        assert mixers == [GatedDeltaNet, GatedDeltaNet, GatedDeltaNet, Attention] * 12

    def test_only_attention_grows(self):
        spec = read_model("qwen3-next-80b-a3b")
        assert spec.kv_elements_per_token == 12 * 2 * 2 * 256
        assert spec.state_elements == 36 * (524_288 + 24_576)

    def test_nemotron_patterns(self):
        config = load_preset("nvidia-nemotron-3-nano-30b-a3b")
        spec = read_model(config)
        pattern = config["hybrid_override_pattern"]
        assert len(spec.layers) == len(pattern)
        assert sum(isinstance(layer.mixer, Mamba2) for layer in spec.layers) == pattern.count("M")
        assert all(layer.norms == 1 for layer in spec.layers)
        config.pop("num_hidden_layers", None)
        assert read_model(config).layers == spec.layers
        with pytest.raises(ConfigError, match="num_hidden_layers is 3"):
            read_model({**config, "num_hidden_layers": 3})
        with pytest.raises(UnsupportedArchitectureError, match="letter 'X'"):
            read_model({**config, "hybrid_override_pattern": "MX"})
        words = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
        listed = {key: value for key, value in config.items() if key != "hybrid_override_pattern"}
        listed["layers_block_type"] = [words[letter] for letter in pattern]
        assert read_model(listed).layers == spec.layers

    def test_jamba_by_period_and_offset(self):
        spec = read_model("jamba-v0.1")
        assert [index for index, layer in enumerate(spec.layers) if isinstance(layer.mixer, Attention)] == [
            4,
            12,
            20,
            28,
        ]
        assert kinds(spec)[:4] == ["dense", "moe", "dense", "moe"]
        with pytest.raises(ConfigError, match="less than attn_layer_period"):
            read_model({**load_preset("jamba-v0.1"), "attn_layer_offset": 8})

    def test_kimi_linear_names_every_layer_once(self):
        config = {
            **SMALL,
            "model_type": "kimi_linear",
            "q_lora_rank": None,
            "kv_lora_rank": 24,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 20,
            "num_experts": 8,
            "num_experts_per_token": 2,
            "moe_intermediate_size": 64,
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
            "linear_attn_config": {
                "full_attn_layers": [4],
                "kda_layers": [1, 2, 3],
                "num_heads": 4,
                "head_dim": 16,
                "short_conv_kernel_size": 3,
            },
        }
        assert isinstance(read_model(config).layers[3].mixer, LatentAttention)
        config["linear_attn_config"] = {**config["linear_attn_config"], "kda_layers": [1, 2]}
        with pytest.raises(ConfigError, match="every layer from 1 to 4"):
            read_model(config)

    @pytest.mark.parametrize("key", ["mamba_ssm_dtype", "mamba_ssm_cache_dtype"])
    def test_state_dtype(self, key):
        config = load_preset("qwen3-next-80b-a3b")
        for value, dtype in (("float32", "fp32"), ("bfloat16", "bf16")):
            spec = read_model({**config, key: value})
            assert spec.layers[0].states[0].dtype == dtype
        with pytest.raises(ConfigError, match=key):
            read_model({**config, key: "float61"})

    def test_mamba_2_heads_must_fill_the_width(self):
        config = {
            "model_type": "mamba2",
            "hidden_size": 64,
            "expand": 2,
            "num_heads": 8,
            "head_dim": 16,
            "n_groups": 1,
            "state_size": 16,
            "conv_kernel": 4,
            "num_hidden_layers": 2,
            "vocab_size": 100,
        }
        assert read_model(config).kv_elements(1000) == 0
        with pytest.raises(ConfigError, match="num_heads is 4"):
            read_model({**config, "num_heads": 4})


class TestSearched:
    def test_layers_without_attention_or_feed_forward(self):
        spec = read_model("llama-3_3-nemotron-super-49b-v1")
        assert sum(layer.mixer is not None for layer in spec.layers) == 49
        # 49 of 80 layers keep keys and values of 8 heads.
        assert spec.kv_elements_per_token == 49 * 2 * 8 * 128

    def test_what_the_search_may_also_choose_is_refused(self):
        config = load_preset("llama-3_3-nemotron-super-49b-v1")
        block = {"attention": {"no_op": False, "n_heads_in_group": 8}, "ffn": {"ffn_mult": 1.0}}
        for part, key, value in (("ffn", "replace_with_linear", True), ("attention", "num_sink_tokens", 4)):
            changed = {**block, part: {**block[part], key: value}}
            with pytest.raises(UnsupportedArchitectureError, match=rf"block_configs\[0\]\.{part}\.{key}"):
                read_model({**config, "num_hidden_layers": 1, "block_configs": [changed]})
        empty = {"attention": {"no_op": True}, "ffn": {"no_op": True}}
        both = read_model({**config, "num_hidden_layers": 2, "block_configs": [block, empty]})
        assert both.layers[1].parameters(8192) == 0
        with pytest.raises(ConfigError, match="every layer empty"):
            read_model({**config, "num_hidden_layers": 1, "block_configs": [empty]})


class TestT5:
    def test_only_the_first_layer_of_a_stack_has_positions(self):
        spec = read_model("t5-small")
        assert [layer.mixer.position_bias for layer in spec.layers] == [256] + [0] * 5
        assert not spec.encoder[0].mixer.causal
        assert spec.layers[0].cross is not None

    def test_told_by_its_keys(self):
        config = load_preset("t5-small")
        config.pop("model_type")
        spec = read_model(config)
        assert spec.family == "t5"
        assert any("t5" in note for note in spec.assumed)
        config.pop("feed_forward_proj")
        with pytest.raises(ConfigError, match="neither model_type nor architectures"):
            read_model(config)

    @pytest.mark.parametrize(
        ("activation", "gated"), [("relu", False), ("gated-gelu", True), ("gated-silu", True)]
    )
    def test_gates(self, activation, gated):
        spec = read_model({**load_preset("t5-small"), "feed_forward_proj": activation})
        assert spec.layers[0].feed_forwards[0].gated is gated

    @pytest.mark.parametrize("activation", ["gelu-gated", "a-b-c"])
    def test_a_strange_activation(self, activation):
        with pytest.raises(ConfigError, match="feed_forward_proj"):
            read_model({**load_preset("t5-small"), "feed_forward_proj": activation})

    def test_more_decoder_layers(self):
        spec = read_model({**load_preset("t5-small"), "num_decoder_layers": 9})
        assert (len(spec.encoder), len(spec.layers)) == (6, 9)


class TestStep:
    def test_more_heads_in_layers_with_a_window(self):
        config = {
            **SMALL,
            "model_type": "step3p5",
            "sliding_window": 8,
            "num_nextn_predict_layers": 1,
            "layer_types": ["full_attention", "sliding_attention"] * 2 + ["sliding_attention"],
            "moe_layers_enum": "2, 3",
            "attention_other_setting": {"num_attention_heads": 6},
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "share_expert_dim": 48,
        }
        spec = read_model(config)
        assert [layer.mixer.query_heads for layer in spec.layers] == [4, 6, 4, 6]
        assert kinds(spec) == ["dense", "dense", "moe", "moe"]
        config.pop("attention_other_setting")
        with pytest.raises(ConfigError, match="attention_other_setting"):
            read_model(config)
        with pytest.raises(ConfigError, match="moe_layers_enum"):
            read_model({**config, "num_sliding_attention_heads": 6, "moe_layers_enum": "2;3"})


@pytest.mark.parametrize(
    ("family", "field"),
    [("deepseek_v4", "compress_ratios"), ("phi3small", "blocksparse_block_size")],
)
def test_known_families_that_are_not_modelled(family, field):
    with pytest.raises(UnsupportedArchitectureError, match=field):
        read_model({**SMALL, "model_type": family})
