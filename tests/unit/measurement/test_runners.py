from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch (extra [measure])")
pytest.importorskip("transformers", reason="needs transformers (extra [measure])")

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from rooflines.errors import InputError
from rooflines.measurement.llama import StaticCache, is_llama_like, llama_runner, miniature
from rooflines.measurement.matrices import DenseMatrix, _inner_tiles, group_levels, quantised
from rooflines.measurement.transformers_runner import TransformersRunner

pytestmark = pytest.mark.torch

SMALL = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 1e4,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
# What each family adds to Llama: biases, norms of q and k, a head size of its own, tied embeddings, scaled RoPE.
FAMILIES = {
    "llama": {},
    "llama tied": {"model_type": "llama", "tie_word_embeddings": True},
    "llama biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": False},
    "llama3 rope": {"model_type": "llama", "rope_parameters": LLAMA3_ROPE},
    "llama multi-head": {"model_type": "llama", "num_key_value_heads": 4},
    "mistral": {"sliding_window": None, "head_dim": 32},
    "qwen2": {},
    "qwen3": {"head_dim": 32},
}


def transformers_model(name="llama", **changes):
    facts = {**SMALL, "model_type": name.split(maxsplit=1)[0], **FAMILIES.get(name, {}), **changes}
    config = AutoConfig.for_model(**facts)
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms begin as 0 and 1, which would hide them
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def some_tokens(batch, count, seed=0):
    return torch.randint(SMALL["vocab_size"], (batch, count), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_those_of_transformers_through_prefill_verify_roll_back_and_decode(name):
    theirs = TransformersRunner(transformers_model(name))
    ours = llama_runner(transformers_model(name))
    caches = [runner.new_cache(2, 40) for runner in (ours, theirs)]
    for step, (back, width) in enumerate([(0, 20), (20, 5), (22, 1), (23, 9), (30, 1)]):
        answers = []
        for runner, cache in zip((ours, theirs), caches, strict=True):
            cache.roll_back(back)
            answers.append(runner.forward(some_tokens(2, width, step), cache))
            assert cache.length == back + width
        torch.testing.assert_close(answers[0], answers[1], rtol=1e-4, atol=1e-4)
    assert answers[0].std() > 0.1  # logits that say something


def test_a_real_model_answers_as_transformers_does(smollm2):
    from rooflines.measurement.models import load_model

    ours, theirs = (load_model(str(smollm2), "fp32", lean=lean).runner for lean in (True, False))
    tokens = torch.arange(100, 140)[None]
    answers = [runner.forward(tokens, runner.new_cache(1, 64)) for runner in (ours, theirs)]
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-4, atol=1e-3)


@settings(max_examples=20, deadline=None)
@given(cut=st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_a_sequence_cut_into_passes_of_any_width_says_the_same(cut):
    runner = llama_runner(transformers_model("qwen3"))
    tokens = some_tokens(1, sum(cut))
    whole = runner.forward(tokens, runner.new_cache(1, sum(cut)))
    cache = runner.new_cache(1, sum(cut))
    parts = [runner.forward(part, cache) for part in tokens.split(cut, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-4, atol=1e-4)


def test_what_was_rolled_back_leaves_no_trace():
    runner = llama_runner(transformers_model())
    tokens, other = some_tokens(1, 12), some_tokens(1, 5, seed=9)
    cache = runner.new_cache(1, 20)
    runner.forward(tokens[:, :8], cache)
    runner.forward(other, cache)
    cache.roll_back(8)
    again = runner.forward(tokens[:, 8:], cache)
    straight = runner.forward(tokens, runner.new_cache(1, 12))[:, 8:]
    torch.testing.assert_close(again, straight, rtol=1e-4, atol=1e-4)
    cache.roll_back(50)
    assert cache.length == 12


def test_an_early_exit_is_the_model_with_fewer_layers():
    runner = llama_runner(transformers_model())
    tokens = some_tokens(1, 6)
    short = llama_runner(transformers_model(num_hidden_layers=3))
    early = runner.forward(tokens, runner.new_cache(1, 6), depth=2)
    shorter = type(short)(
        **{field: getattr(short, field) for field in short.__slots__} | {"layers": short.layers[:2]}
    )
    torch.testing.assert_close(early, shorter.forward(tokens, shorter.new_cache(1, 6)))
    full = runner.forward(tokens, runner.new_cache(1, 6))
    assert not torch.allclose(early, full, atol=1e-2)


def test_the_last_logits_alone_are_the_last_of_all():
    for runner in (llama_runner(transformers_model()), TransformersRunner(transformers_model())):
        last = runner.forward(some_tokens(2, 7), runner.new_cache(2, 7), logits="last")
        every = runner.forward(some_tokens(2, 7), runner.new_cache(2, 7))
        torch.testing.assert_close(last, every[:, -1:])


def test_a_filled_cache_has_its_length_and_finite_answers():
    for runner in (llama_runner(transformers_model()), TransformersRunner(transformers_model())):
        cache = runner.new_cache(2, 40)
        runner.fill(cache, 30)
        assert cache.length == 30
        runner.fill(cache, 10)
        assert cache.length == 30
        assert runner.forward(some_tokens(2, 3), cache).isfinite().all()
        assert cache.length == 33


def test_room_and_depth_that_are_not_there_are_refused():
    runner = llama_runner(transformers_model())
    cache = runner.new_cache(1, 8)
    runner.fill(cache, 6)
    with pytest.raises(InputError, match="room for 8 positions, 6 are taken, 3 more do not fit"):
        runner.forward(some_tokens(1, 3), cache)
    with pytest.raises(InputError, match="room for 8"):
        runner.fill(cache, 9)
    assert cache.length == 6
    with pytest.raises(InputError, match="depth 4: the model has 3 layers"):
        runner.forward(some_tokens(1, 1), cache, depth=4)
    other = TransformersRunner(transformers_model())
    with pytest.raises(InputError, match="early exits are for Llama-like"):
        other.forward(some_tokens(1, 1), other.new_cache(1, 8), depth=2)
    with pytest.raises(InputError, match="made of Llama-like models only"):
        other.int4_copy(32)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gpt2", {}),
        ("mistral", {"sliding_window": 16}),
        ("llama", {"hidden_act": "gelu"}),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}),
    ],
)
def test_what_differs_from_llama_is_left_to_transformers(name, changes):
    assert not is_llama_like(AutoConfig.for_model(name, **changes))


@pytest.mark.parametrize("name", FAMILIES)
def test_families_that_are_computed_are_recognised(name):
    assert is_llama_like(transformers_model(name).config)


@pytest.mark.parametrize("group", [32, 64])
def test_four_bits_multiply_like_the_matrix_they_stand_for(group):
    torch.manual_seed(1)
    weight, x = torch.randn(96, 64), torch.randn(2, 3, 64)
    levels, scales, zeros = group_levels(weight, group)
    assert levels.min() == 0
    assert levels.max() == 15
    spread = (levels.view(96, -1, group) - 8) * scales[..., None] + zeros[..., None]
    rounded = spread.view(96, 64)
    assert (rounded - weight).abs().max() <= scales.max() / 2 + 1e-6
    bias = torch.randn(96)
    product = quantised(DenseMatrix(weight, bias), group)(x)
    # The kernel takes scales in bf16 or in the dtype given, and rounds its sums otherwise than a plain product.
    torch.testing.assert_close(product, x @ rounded.T + bias, rtol=2e-2, atol=5e-2)


def test_a_matrix_of_equal_numbers_survives_four_bits():
    product = quantised(DenseMatrix(torch.full((64, 64), 0.5)), 32)(torch.ones(1, 64))
    torch.testing.assert_close(product, torch.full((1, 64), 32.0), rtol=1e-2, atol=1e-2)


def test_groups_that_do_not_fit_are_refused_with_those_that_do():
    with pytest.raises(InputError, match="groups of 128 do not fit a matrix of 64 inputs: use 32 or 64"):
        quantised(DenseMatrix(torch.zeros(32, 64)), 128)
    with pytest.raises(InputError, match="cannot take it"):
        quantised(DenseMatrix(torch.zeros(32, 40)), 32)


@pytest.mark.parametrize(("inputs", "tiles"), [(4096, 8), (576, 4), (96, 2), (32, 2)])
def test_tiles_of_the_gpu_s_kernel_divide_the_inputs(inputs, tiles):
    assert _inner_tiles(inputs) == tiles


def dequantised(matrix, group):
    levels, scales, zeros = group_levels(matrix.weight, group)
    spread = (levels.view(len(levels), -1, group) - 8) * scales[..., None] + zeros[..., None]
    return DenseMatrix(spread.view(levels.shape), matrix.bias)


def test_the_int4_copy_is_the_model_with_every_linear_layer_rounded():
    runner = llama_runner(transformers_model("llama biases"))
    names = ("qkv", "output", "gate_up", "down")
    rounded = replace(
        runner,
        head=dequantised(runner.head, 32),
        layers=tuple(
            replace(layer, **{name: dequantised(getattr(layer, name), 32) for name in names})
            for layer in runner.layers
        ),
    )
    tokens = some_tokens(1, 30)
    answers = [one.forward(tokens, one.new_cache(1, 30)) for one in (runner.int4_copy(32), rounded, runner)]
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-3, atol=1e-3)
    assert not torch.allclose(answers[0], answers[2], atol=1e-2)


def test_the_int4_copy_reads_and_extends_the_cache_of_the_model():
    runner = llama_runner(transformers_model())
    copy = runner.int4_copy(32)
    cache = runner.new_cache(1, 40)
    runner.forward(some_tokens(1, 30), cache)
    copy.forward(some_tokens(1, 1), cache)
    assert isinstance(cache, StaticCache)
    assert cache.length == 31
    with pytest.raises(InputError, match="not from another copy"):
        copy.int4_copy(32)


def test_the_miniature_launches_as_many_kernels_over_next_to_nothing():
    """Kernels are counted by torch's profiler, on the same pass of both."""
    for name in ("llama", "qwen3"):
        runner = llama_runner(transformers_model(name))
        small = miniature(runner)
        counts = []
        for one in (runner, small):
            cache = one.new_cache(1, 20)
            one.fill(cache, 10)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                one.forward(torch.zeros(1, 4, dtype=torch.long), cache)
            counts.append(sum(1 for event in profile.events() if event.name == "aten::linear"))
        assert counts[0] == counts[1] == 4 * runner.depth + 1
        assert sum(p.numel() for p in (small.embedding, small.layers[0].qkv.weight)) < 5_000
