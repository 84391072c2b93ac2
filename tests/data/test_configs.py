"""Every collected config is read exactly or refused for a stated reason."""

from __future__ import annotations

import pytest

from rooflines.errors import RooflinesError, UnsupportedArchitectureError
from rooflines.models.drafter_readers import read_drafter
from rooflines.models.readers import read_model

# Files that are no model config, and models with something that is not modelled: what the message must say.
NO_MODEL = {
    "Qwen--Qwen3-32B-FP8-Static-PerTensor.hf_quant_config": "neither model_type nor architectures",
    "nvidia--Llama-3.1-70B-Instruct-FP8.hf_quant_config": "neither model_type nor architectures",
    "quant-block--QuantTrio--Qwen3.6-35B-A3B-AWQ": "neither model_type nor architectures",
    "quant-block--TheBloke--Llama-2-7B-Chat-GPTQ": "neither model_type nor architectures",
    "deepmind--gopher-280b": "neither model_type nor architectures",
    "google--lamda-137b": "neither model_type nor architectures",
    "google--palm-540b": "neither model_type nor architectures",
}
NOT_MODELLED = {
    "RWKV--rwkv-5-world-3b": "model_type 'rwkv5'",
    "deepseek-ai--DeepSeek-V4-Flash": "compress_ratios",
    "deepseek-ai--DeepSeek-V4-Pro": "compress_ratios",
    "microsoft--Phi-3-small-8k-instruct": "blocksparse_block_size",
    "moonshotai--Kimi-K3": "attn_res_block_size",
    "stepfun-ai--Step-3.7-Flash": "attention_other_setting",
}
# EAGLE-1 and -2 configs look like a Llama or Mixtral of one layer: the method must be named.
EAGLE = {
    "yuhuili--EAGLE-Vicuna-13B-v1.3",
    "yuhuili--EAGLE-Vicuna-7B-v1.3",
    "yuhuili--EAGLE-llama2-chat-70B",
    "yuhuili--EAGLE-llama2-chat-7B",
    "yuhuili--EAGLE-mixtral-instruct-8x7B",
}
# The table's formula leaves out the q, k and v biases that the config states (attention_bias) and the class
# has (MiMoForCausalLM is a Qwen2ForCausalLM): 36 layers of 4096 + 2 x 1024.
BIASES_LEFT_OUT = {"XiaomiMiMo--MiMo-7B-Base": 36 * (4096 + 2 * 1024)}
# What transformers' totals hold of the vision tower is in the column beside them.


@pytest.fixture(scope="module")
def derived(configs, read_rows):
    """What the maker of the table worked out of each config."""
    return {row["name"]: row for row in read_rows(configs / "derived.csv")}


def test_every_config_is_read_or_refused_for_a_stated_reason(configs):
    read, refused = 0, {}
    for path in sorted(configs.glob("*.json")):
        try:
            read_drafter(path, "eagle") if path.stem in EAGLE else read_model(path)
        except UnsupportedArchitectureError as problem:
            if "use read_drafter" not in str(problem):
                refused[path.stem] = str(problem)
                continue
            read_drafter(path)
        except RooflinesError as problem:
            if path.stem == "FasterDecoding--medusa-vicuna-7b-v1.3":
                read_drafter(path)
            else:
                refused[path.stem] = str(problem)
                continue
        read += 1
    assert set(refused) == {*NO_MODEL, *NOT_MODELLED}
    for name, reason in {**NO_MODEL, **NOT_MODELLED}.items():
        assert reason in refused[name], refused[name]
    assert read >= 125


def expected_total(row):
    if row["formula_total_text"]:
        return int(row["formula_total_text"])
    if row["transformers_meta_total"]:
        return int(row["transformers_meta_total"]) - int(row["meta_vision"] or 0)
    return None


def test_parameters_equal_the_table(configs, params):
    wrong, checked = [], 0
    for name, row in params.items():
        path = configs / f"{name}.json"
        expected = expected_total(row)
        if expected is None or name in NOT_MODELLED:
            continue
        if row["model_type"] == "drafter head":
            counted = read_drafter(path, "eagle").parameters
        else:
            counted = read_model(path).parameters_total - BIASES_LEFT_OUT.get(name, 0)
        checked += 1
        if counted != expected:
            wrong.append((name, counted, expected))
    assert not wrong
    assert checked >= 115


@pytest.mark.parametrize(
    ("column", "attribute"),
    [
        ("formula_active_incl_embedding", "parameters_active"),
        ("formula_active_excl_input_embedding", "parameters_active_without_embedding"),
        ("embedding", "embedding_parameters"),
    ],
)
def test_active_parameters_equal_the_table(configs, params, column, attribute):
    wrong, checked = [], 0
    for name, row in params.items():
        # The table leaves the count without embedding at 0 for encoder-decoders.
        if row[column] in ("", "0") or name in NOT_MODELLED:
            continue
        counted = getattr(read_model(configs / f"{name}.json"), attribute)
        if attribute != "embedding_parameters":
            counted -= BIASES_LEFT_OUT.get(name, 0)
        checked += 1
        if counted != int(row[column]):
            wrong.append((name, counted, row[column]))
    assert not wrong
    assert checked >= 90


def test_published_checkpoint_totals_are_explained_term_by_term(configs, params, count_scales):
    """Hugging Face counts every tensor: the terms beside the main model's parameters, one by one."""
    vision = {
        "Qwen--Qwen3.5-122B-A10B": 451_290_864,
        "Qwen--Qwen3.5-27B": 460_730_096,
        "Qwen--Qwen3.5-9B": 456_010_480,
    }
    for name in (
        "deepseek-ai--DeepSeek-V3",
        "deepseek-ai--DeepSeek-R1",
        "deepseek-ai--DeepSeek-V3.2",
        "zai-org--GLM-4.5",
        "zai-org--GLM-5",
        "zai-org--GLM-5-FP8",
        "MiniMaxAI--MiniMax-M2.5",
        "Qwen--Qwen3-8B-FP8",
        "openai--gpt-oss-20b",
        "openai--gpt-oss-120b",
        *vision,
    ):
        spec = read_model(configs / f"{name}.json")
        extra = [layer for module in spec.mtp for layer in module.layers]
        terms = {
            "model": spec.parameters_total,
            "multi-token prediction": spec.parameters_mtp,
            "correction biases": spec.buffers + sum(layer.buffers for layer in extra),
            "scales": count_scales(spec.layers, spec.hidden) + count_scales(extra, spec.hidden),
            "vision tower": vision.get(name, 0),
        }
        assert sum(terms.values()) == int(params[name]["hf_safetensors_total"]), (name, terms)


def test_cache_sizes_equal_the_table(configs, derived):
    for name, row in derived.items():
        spec = read_model(configs / f"{name}.json")
        assert spec.kv_elements_per_token == int(row["kv_elems_per_token_all_layers"]), name
        assert spec.kv_bytes_per_token(dtype="bf16") == int(row["kv_bytes_per_token_bf16"]), name
        # Beyond every window, one more position adds only what full-attention layers keep.
        far = 1_000_000
        growing = spec.kv_bytes(far + 1, "bf16") - spec.kv_bytes(far, "bf16")
        if "chunk" not in row["attention"] and "Llama-4" not in name:
            assert growing == int(row["growing_kv_bytes_per_token_bf16"]), name
    assert len(derived) >= 35


def test_experts_equal_the_table(configs, derived):
    for name, row in derived.items():
        spec = read_model(configs / f"{name}.json")
        blocks = {block for layer in spec.layers for block in layer.feed_forwards if block.kind == "moe"}
        assert {(block.experts, block.experts_per_token) for block in blocks} == (
            {(int(row["experts"]), int(row["top_k"]))} if row["experts"] != "0" else set()
        )
        held = sum(
            matrix.parameters
            for layer in spec.layers
            for matrix in layer.matrices(spec.hidden)
            if matrix.name.startswith("expert_")
        )
        assert held == int(row["expert_params_total"]), name


def test_published_sizes_of_drafters(configs):
    """EAGLE README (0.24B, 0.37B, 0.99B), and counts by hand of the layouts in SpecForge."""
    published = {
        "yuhuili--EAGLE3-LLaMA3.1-Instruct-8B": 424_689_664,
        "specforge--llama3-8B-eagle3": 424_689_664,
        "specforge--qwen3-8b-dflash": 1_048_626_432,
        "FasterDecoding--medusa-vicuna-7b-v1.3": 5 * 147_853_312,
    }
    for name, expected in published.items():
        assert read_drafter(configs / f"{name}.json").parameters == expected
    dspark = read_drafter(configs / "specforge--qwen3-8b-dspark.json")
    # The low-rank head is 2 V 256, the confidence head reads hidden state and embedding.
    assert dspark.parameters == 1_048_626_432 + 2 * 151_936 * 256 + (4096 + 256 + 1)
    assert (dspark.block_size, dspark.draft_length, dspark.verify_width) == (7, 7, 8)
    dflash = read_drafter(configs / "specforge--qwen3-8b-dflash.json")
    assert (dflash.block_size, dflash.draft_length, dflash.verify_width) == (16, 15, 16)
