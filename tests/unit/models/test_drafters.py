from __future__ import annotations

import json

import pytest

from rooflines.errors import ConfigError, FileFormatError, InputError, UnsupportedArchitectureError
from rooflines.models.drafter_readers import is_drafter, read_drafter
from rooflines.models.drafters import mtp_drafter
from rooflines.models.readers import read_model

EAGLE3 = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 1,
    "vocab_size": 128_256,
    "draft_vocab_size": 32_000,
    "torch_dtype": "bfloat16",
}
EAGLE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 1,
    "vocab_size": 32_000,
    "torch_dtype": "float16",
}
DFLASH = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 5,
    "vocab_size": 151_936,
    "block_size": 16,
    "num_target_layers": 36,
    "dtype": "bfloat16",
    "dflash_config": {"target_layer_ids": [1, 9, 17, 25, 33], "mask_token_id": 151_669},
}
MEDUSA = {"medusa_num_heads": 5, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}


def dspark(**changes) -> dict:
    inner = {
        "projector_type": "dspark",
        "markov_rank": 256,
        "enable_confidence_head": True,
        "target_layer_ids": [1, 9, 17, 25, 33],
    } | changes
    return {**DFLASH, "architectures": ["DSparkDraftModel"], "block_size": 7, "dflash_config": inner}


class TestEagle:
    def test_published_sizes(self):
        # https://github.com/SafeAILab/EAGLE README: Vicuna-7B 0.24B.
        assert read_drafter(EAGLE, "eagle").parameters == 235_937_792
        # LLaMA2-Chat-70B 0.99B; Vicuna-33B 0.56B, which fits only with 13 key/value heads.
        seventy = {
            **EAGLE,
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
        }
        assert read_drafter(seventy, "eagle").parameters == 989_872_128
        thirty = {
            **EAGLE,
            "hidden_size": 6656,
            "intermediate_size": 17920,
            "num_attention_heads": 52,
            "num_key_value_heads": 13,
        }
        assert round(read_drafter(thirty, "eagle").parameters / 1e9, 2) == 0.56

    def test_it_shares_embedding_and_head(self):
        spec = read_drafter(EAGLE, "eagle")
        assert spec.shares == ("embedding", "head")
        assert spec.heads == ()
        assert spec.layers[0].norms == 1
        assert spec.kv_bytes(10) == 10 * 2 * 4096 * 2

    def test_nothing_in_the_file_says_so(self, tmp_path):
        folder = tmp_path / "eagle-test"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(EAGLE), encoding="utf-8")
        assert not is_drafter(EAGLE)
        with pytest.raises(ConfigError, match="name its method"):
            read_drafter(folder)
        assert read_drafter(folder, "eagle").name == "eagle-test"


class TestEagle3:
    def test_published_size(self):
        spec = read_drafter(EAGLE3)
        assert spec.method == "eagle3"
        # Own weights of yuhuili/EAGLE3-LLaMA3.1-Instruct-8B; 1,268,789,248 is what an AutoModel would count.
        assert spec.parameters == 424_689_664
        assert spec.weight_bytes == 2 * 424_689_664

    def test_wide_projections_and_a_small_head(self):
        spec = read_drafter(EAGLE3)
        shapes = {m.name: (m.outputs, m.inputs) for m in spec.layers[0].mixer.matrices(4096)}
        assert shapes["query"] == (4096, 8192)
        assert shapes["output"] == (4096, 4096)
        assert [(m.name, m.outputs, m.inputs) for m in (*spec.entry, *spec.heads)] == [
            ("fuse", 4096, 3 * 4096),
            ("head", 32_000, 4096),
        ]
        assert spec.shares == ("embedding",)
        assert (spec.vocabulary, spec.draft_vocabulary) == (128_256, 32_000)

    def test_features_of_a_wider_target(self):
        wide = read_drafter({**EAGLE3, "target_hidden_size": 8192})
        assert wide.entry[0].inputs == 3 * 8192
        two = read_drafter({**EAGLE3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}})
        assert two.entry[0].inputs == 2 * 4096
        with pytest.raises(ConfigError, match="eagle_aux_hidden_state_layer_ids"):
            read_drafter({**EAGLE3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": []}})

    def test_without_a_draft_vocabulary_the_head_is_full(self):
        config = {key: value for key, value in EAGLE3.items() if key != "draft_vocab_size"}
        assert read_drafter(config).draft_vocabulary == 128_256

    def test_p_eagle_adds_ordinary_layers_and_a_learned_feature(self):
        parallel = read_drafter({**EAGLE3, "architectures": ["PEagleDraftModel"], "num_hidden_layers": 4})
        layer = {**EAGLE3, "model_type": "llama", "num_hidden_layers": 2}
        ordinary = read_model({k: v for k, v in layer.items() if k != "draft_vocab_size"}).layers[1]
        assert parallel.parameters == 424_689_664 + 3 * ordinary.parameters(4096) + 3 * 4096


class TestMedusa:
    def test_five_heads_of_vicuna(self):
        spec = read_drafter(MEDUSA)
        assert spec.parameters == 5 * (4096 * 4096 + 4096 + 4096 * 32_000) == 739_266_560
        assert (spec.draft_length, spec.verify_width) == (5, 6)
        assert spec.kv_elements(100) == 0

    def test_blocks_of_a_head_are_one_module(self):
        assert read_drafter({**MEDUSA, "medusa_num_layers": 3}).parameters == 739_266_560

    def test_the_target_may_be_given(self):
        other = read_drafter({**MEDUSA, "base_model_name_or_path": "my/own"}, target=read_model("vicuna-13b"))
        assert other.hidden == 5120
        with pytest.raises(ConfigError, match="'my/own' is no preset: give the target"):
            read_drafter({**MEDUSA, "base_model_name_or_path": "my/own"})

    def test_the_stated_number_of_heads_is_doubtful(self):
        assert any("medusa_num_heads" in note for note in read_drafter(MEDUSA).assumed)


class TestBlocks:
    def test_dflash(self):
        spec = read_drafter(DFLASH)
        assert spec.parameters == 1_048_626_432
        assert not spec.layers[0].mixer.causal
        # A block of 16 drafts 15 and verifies 16 (z-lab/dflash, model.py).
        assert (spec.block_size, spec.draft_length, spec.verify_width) == (16, 15, 16)

    def test_dspark_drafts_the_whole_block(self):
        spec = read_drafter(dspark())
        assert spec.parameters == 1_048_626_432 + 2 * 151_936 * 256 + 4096 + 256 + 1
        assert (spec.block_size, spec.draft_length, spec.verify_width) == (7, 7, 8)
        # A token uses one row of the table of the previous token.
        assert spec.parameters - spec.parameters_active == 151_936 * 256

    def test_heads_of_dspark(self):
        plain = read_drafter(dspark(markov_rank=0, enable_confidence_head=False))
        assert plain.parameters == 1_048_626_432
        bare = read_drafter(dspark(confidence_head_with_markov=False))
        assert read_drafter(dspark()).parameters - bare.parameters == 256
        gated, recurrent = (read_drafter(dspark(markov_head_type=kind)) for kind in ("gated", "rnn"))
        assert gated.parameters - read_drafter(dspark()).parameters == (4096 + 256) * 256 + 256
        assert recurrent.parameters - read_drafter(dspark()).parameters == (4096 + 512) * 768 + 768
        for changed in ({"markov_head_type": "lstm"}, {"attention_mode": "mla"}):
            with pytest.raises(UnsupportedArchitectureError, match=next(iter(changed))):
                read_drafter(dspark(**changed))

    def test_domino_corrects_with_a_gru(self):
        inner = {
            **DFLASH["dflash_config"],
            "projector_type": "domino",
            "emb_dim": 256,
            "gru_hidden_dim": 1024,
        }
        spec = read_drafter({**DFLASH, "architectures": ["DominoDraftModel"], "dflash_config": inner})
        correction = 3 * 1024 * (4096 + 1024) + (4096 + 1024) * 256 + 256 * 151_936
        assert spec.parameters == 1_048_626_432 + correction
        assert spec.draft_length == 15
        shifted = {**inner, "shift_label": True}
        assert read_drafter({**DFLASH, "dflash_config": shifted}).draft_length == 16

    def test_the_kind_of_head_tells_where_the_class_does_not(self):
        config = {key: value for key, value in dspark().items() if key != "architectures"}
        assert read_drafter(config).method == "dspark"
        config["dflash_config"] = {**config["dflash_config"], "projector_type": "new"}
        with pytest.raises(UnsupportedArchitectureError, match="projector_type 'new'"):
            read_drafter(config)

    def test_a_block_of_one_position_drafts_nothing(self):
        with pytest.raises(ConfigError, match="block_size is 1"):
            read_drafter({**DFLASH, "block_size": 1})


class TestMultiTokenPrediction:
    def test_deepseek_v3(self):
        spec = mtp_drafter(read_model("deepseek-v3"))
        # 11.5B of its own (https://github.com/deepseek-ai/DeepSeek-V3, README_WEIGHTS.md).
        assert spec.parameters == 11_610_067_968
        assert spec.shares == ("embedding", "head")
        assert spec.kv_elements(10) == 5760

    def test_a_model_without(self):
        with pytest.raises(ConfigError, match="no multi-token-prediction module"):
            mtp_drafter(read_model("llama-2-7b"))


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="unknown drafting method 'eagle9'"):
        read_drafter(EAGLE, "eagle9")
    with pytest.raises(FileFormatError, match="no such file"):
        read_drafter(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="hidden_size is missing"):
        read_drafter({key: value for key, value in EAGLE3.items() if key != "hidden_size"})
