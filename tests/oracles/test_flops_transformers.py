"""Matmul FLOPs of every pass against torch's FlopCounterMode over transformers' models on the meta device.

transformers 5.23.0, eager attention, experts as batched products: the counter then sees every product, and
counts each new position against every kept and new one (``mask="dense"``).
"""

from __future__ import annotations

import json
import warnings

import pytest

from rooflines.costs.passes import forward_pass
from rooflines.costs.setting import Shape
from rooflines.models.readers import read_model

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("pinned_transformers")]
torch = pytest.importorskip("torch", reason="the oracle needs torch (extra [oracle])")
transformers = pytest.importorskip("transformers", reason="the oracle needs transformers (extra [oracle])")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402 - torch may be missing

DENSE = (
    "llama-2-7b",
    "llama-3.1-8b",
    "llama-3.2-1b",
    "qwen3-0.6b",
    "qwen3-8b",
    "qwen2.5-7b",
    "mistral-7b-v0.3",
    "phi-4-mini",
    "gpt2",
    "opt-6.7b",
    "opt-125m",
    "pythia-6.9b",
    "olmo-2-1124-7b",
    "starcoder2-7b",
    "smollm2-135m",
    "gemma-2-9b",
    "vicuna-33b-v1.3",
)
OTHERS = (
    "mixtral-8x7b-v0.1",
    "qwen1.5-moe-a2.7b",
    "qwen3-coder-480b-a35b",
    "gpt-oss-20b",
    "glm-4.5",
    "minimax-m2.5",
    "deepseek-v2-lite",
    "deepseek-v3",
    "kimi-k2",
    "minicpm3-4b",
    "gemma-3-1b",
    "gemma-3-12b",
    "mistral-7b-v0.1",
)
# (batch, new positions, cached positions): a prefill, a decode step, a verify pass, all logits.
POINTS = ((1, 64, 0), (2, 1, 64), (2, 5, 64))
SAME_AS = {"kimi_k2": "deepseek_v3"}
T5_MODELS = ("t5-small", "t5-v1_1-base", "t5-v1_1-xxl")


def preset_config(root, name: str) -> dict:
    config = json.loads(
        (root / "rooflines" / "models" / "presets" / f"{name}.json").read_text(encoding="utf-8")
    )
    return config.get("config", config)


def build(config: dict):
    outer = dict(config)
    config = dict(config.get("text_config", config))
    if "tie_word_embeddings" in outer:
        config.setdefault("tie_word_embeddings", outer["tie_word_embeddings"])
    config["model_type"] = SAME_AS.get(config["model_type"], config["model_type"])
    config["pad_token_id"] = None
    if config["model_type"] == "deepseek_v2":
        config.setdefault("q_lora_rank", None)
    kept = {key: value for key, value in config.items() if key != "quantization_config"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = transformers.AutoConfig.for_model(**kept)
        facts._experts_implementation = "batched_mm"
        t5 = facts.model_type == "t5"
        auto = transformers.AutoModelForSeq2SeqLM if t5 else transformers.AutoModelForCausalLM
        with torch.device("meta"):
            model = auto.from_config(facts, attn_implementation="eager", dtype=torch.bfloat16)
    return model.eval()


def ids(batch: int, length: int):
    return torch.zeros((batch, length), dtype=torch.long, device="meta")


def counted(model, **given) -> int:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with FlopCounterMode(display=False) as counter:
            model(use_cache=True, **given)
    return counter.get_total_flops()


def cached(model, **given):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(use_cache=True, **given)


def measured(model, batch: int, new_tokens: int, context: int) -> int:
    past = cached(model, input_ids=ids(batch, context)).past_key_values if context else None
    return counted(model, input_ids=ids(batch, new_tokens), past_key_values=past)


@pytest.mark.parametrize("name", DENSE + OTHERS)
def test_flops_equal_the_counter(root, name):
    config = preset_config(root, name)
    spec, model = read_model(config), build(config)
    for batch, new_tokens, context in POINTS:
        shape = Shape(float(batch), float(new_tokens), float(context), float(new_tokens), mask="dense")
        # transformers expands latents in every pass, which is what a prefill does here.
        ours = forward_pass(spec, shape, "prefill").cost.matmul_flops
        assert ours == measured(model, batch, new_tokens, context), (batch, new_tokens, context)
        if name in DENSE:
            assert forward_pass(spec, shape, "verify").cost.matmul_flops == ours


def test_llama_4_in_transformers_runs_every_expert_on_every_token(root):
    """Its class repeats all tokens for all experts (modeling_llama4.py); the mathematics needs k of E."""
    config = preset_config(root, "llama-4-scout-17b-16e")
    spec, model = read_model(config), build(config)
    block = spec.layers[0].feed_forwards[0]
    wasted = block.experts - block.experts_per_token
    for batch, new_tokens, context in POINTS:
        shape = Shape(float(batch), float(new_tokens), float(context), float(new_tokens), mask="dense")
        ours = forward_pass(spec, shape, "verify").cost.matmul_flops
        extra = len(spec.layers) * batch * new_tokens * wasted * 6 * spec.hidden * block.width
        assert ours + extra == measured(model, batch, new_tokens, context), (batch, new_tokens, context)


@pytest.mark.parametrize("name", T5_MODELS)
def test_encoder_decoders_equal_the_counter(root, name):
    config = preset_config(root, name)
    spec, model = read_model(config), build(config)
    batch, source = 2, 48
    whole = Shape(2.0, 3.0, 0.0, 3.0, mask="dense", encoder_positions=48.0)
    prompt = {"input_ids": ids(batch, source), "decoder_input_ids": ids(batch, 3)}
    assert forward_pass(spec, whole, "prefill").cost.matmul_flops == counted(model, **prompt)
    for new_tokens in (1, 5):
        past = cached(model, **prompt)
        step = Shape(2.0, float(new_tokens), 3.0, float(new_tokens), mask="dense", encoder_positions=48.0)
        expected = counted(
            model,
            encoder_outputs=(past.encoder_last_hidden_state,),
            decoder_input_ids=ids(batch, new_tokens),
            past_key_values=past.past_key_values,
        )
        assert forward_pass(spec, step, "verify").cost.matmul_flops == expected
