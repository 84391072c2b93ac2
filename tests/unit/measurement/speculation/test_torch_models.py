from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch and transformers (extra [oracle])")
pytest.importorskip("transformers", reason="needs torch and transformers (extra [oracle])")

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rooflines.errors import InputError
from rooflines.measurement.clock import time_on_cpu
from rooflines.measurement.llama import llama_runner
from rooflines.measurement.speculation.choices import parse_drafter
from rooflines.measurement.speculation.loop import Wanted, run
from rooflines.measurement.speculation.sampling import Sampling
from rooflines.measurement.speculation.torch_models import TorchModel, TorchModels
from rooflines.measurement.threads import computing_threads
from rooflines.measurement.transformers_runner import TransformersRunner

pytestmark = pytest.mark.torch

PROMPT = np.arange(12) % 7 + 3


def _transformers_model(seed=0, vocabulary=96):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        # Wide logits, so that the model has opinions and the int4 copy mostly shares them.
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Threads that wait for each other take seconds where others keep the cores busy."""
    with computing_threads(1):
        yield


@pytest.fixture(scope="module")
def models():
    def load(name):
        if name == "odd":
            return llama_runner(_transformers_model(vocabulary=80))
        return llama_runner(_transformers_model(seed=int(name)))

    return TorchModels(llama_runner(_transformers_model()), 32, load)


@pytest.fixture(scope="module")
def truth():
    """What transformers itself says, greedily, without any cache."""
    model = _transformers_model()
    tokens = torch.as_tensor(PROMPT)[None]
    with torch.inference_mode():
        for _ in range(40):
            tokens = torch.cat([tokens, model(tokens, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    return tuple(tokens[0, len(PROMPT) :].tolist())


def _run(models, drafter, length, *, sampling=None, tokens=32):
    choice = parse_drafter(drafter)
    wanted = Wanted(tokens, length, sampling or Sampling(), choice.forced_acceptance)
    opener = choice.opener(models, wanted.sampling, wanted.seed)
    return run(TorchModel(models.target), opener, PROMPT, wanted, time_on_cpu)


@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize(
    "drafter", ["prompt-lookup", "int4", "int4:cache=own", "early-exit:2", "independent:0", "independent:1"]
)
def test_greedy_output_in_fp32_equals_transformers_token_by_token(models, truth, drafter, length):
    seen = _run(models, drafter, length)
    assert seen.tokens == truth[: len(seen.tokens)]
    assert seen.divergences == ()


def test_the_same_model_drafting_is_always_kept(models):
    seen = _run(models, "independent:0", 3)
    assert {cycle.accepted for cycle in seen.cycles} == {3}


@pytest.mark.parametrize("cache", ["shared", "own"])
def test_the_int4_copy_mostly_agrees_and_sometimes_not(models, cache):
    seen = _run(models, f"int4:cache={cache}", 2, tokens=100)
    accepted, drafted = (sum(getattr(c, what) for c in seen.cycles) for what in ("accepted", "drafted"))
    assert 0.1 < accepted / drafted < 1  # by chance it would be 0.01


def test_forced_acceptance_keeps_what_the_dial_says(models):
    assert {cycle.accepted for cycle in _run(models, "forced:1:early-exit:1", 3).cycles} == {3}
    assert {cycle.accepted for cycle in _run(models, "forced:0", 3).cycles} == {0}


def test_sampling_runs_through_real_models(models):
    seen = _run(models, "int4", 3, sampling=Sampling(0.7))
    assert 0 < sum(cycle.accepted for cycle in seen.cycles) < sum(cycle.drafted for cycle in seen.cycles)
    assert seen.divergences == ()


def test_each_model_is_made_once(models):
    assert models.int4_copy() is models.int4_copy()
    assert models.independent("1") is models.independent("1")
    assert models.layers == models.int4_copy().depth == 4
    assert models.early_exit(2).depth == 2


def test_an_independent_model_must_share_the_vocabulary(models):
    with pytest.raises(InputError, match="vocabulary of 80, the target one of 96"):
        models.independent("odd")


def test_transformers_own_forward_speculates_as_well(truth):
    models = TorchModels(
        TransformersRunner(_transformers_model()), 32, lambda _: TransformersRunner(_transformers_model(1))
    )
    for drafter in ("prompt-lookup", "independent:1"):
        seen = _run(models, drafter, 3)
        assert seen.tokens == truth[: len(seen.tokens)]
    with pytest.raises(InputError, match="Llama-like"):
        models.int4_copy()
