"""Known faults of other tools in costs, injected one by one: each must turn a check red."""

from __future__ import annotations

import pytest

from rooflines.costs import attention, ends, feed_forward, moe, passes
from rooflines.costs.passes import decode_pass, verify_pass
from rooflines.costs.storage import kv_cache_bytes
from rooflines.models.attention import Attention
from rooflines.models.readers import read_model


def check_verify_reads_the_cache_once():
    model = read_model("llama-3.1-8b")
    # 131,072 bytes a token in bf16 (8 kv heads of 128, keys and values, 32 layers).
    assert decode_pass(model, 1.0, 4096.0).cost.kv_bytes == 4097 * 131_072
    assert verify_pass(model, 1.0, 4096.0, 5.0).cost.kv_bytes == 4101 * 131_072
    assert kv_cache_bytes(model, 1.0, 4096.0) == 4096 * 131_072


def check_decode_reads_all_weights_but_the_embedding():
    """Llama-3.1-8B has 8,030,261,248 parameters; Qwen3-4B 4,022,468,096, its head tied (128 a head, not 80)."""
    assert decode_pass(read_model("llama-3.1-8b"), 1.0, 0.0).cost.weight_bytes == 2 * (
        8_030_261_248 - 128_256 * 4096
    )
    assert decode_pass(read_model("qwen3-4b"), 1.0, 0.0).cost.weight_bytes == 2 * 4_022_468_096


def check_experts_follow_the_batch():
    """All 8 experts of Mixtral are hit by 64 tokens, 2 by one: 46.7B against 12.9B parameters read."""
    model = read_model("mixtral-8x7b-v0.1")
    one, many = (decode_pass(model, batch, 0.0).cost.weight_bytes / 2 for batch in (1.0, 64.0))
    embedding = 32_000 * 4096
    assert one + embedding == pytest.approx(12_879_925_248, rel=1e-9)
    assert many + embedding == pytest.approx(46_702_792_704, rel=1e-6)


CACHE, WEIGHTS, EXPERTS = (
    check_verify_reads_the_cache_once,
    check_decode_reads_all_weights_but_the_embedding,
    check_experts_follow_the_batch,
)


def cache_read_per_position(monkeypatch):
    """KV read again for every verified position."""
    real = attention.read_positions
    monkeypatch.setattr(
        attention, "read_positions", lambda shape, reach: shape.new_tokens * real(shape, reach)
    )


def cache_of_query_heads(monkeypatch):
    """KV counted with query heads (LLM-Viewer's FlashAttention)."""
    real = attention._core
    monkeypatch.setattr(
        attention,
        "_core",
        lambda name, setting, heads, **rest: real(name, setting, heads=(heads[0],) * 2, **rest),
    )


def experts_whatever_the_batch(monkeypatch):
    """k experts a pass (GenZ)."""
    monkeypatch.setattr(moe, "distinct_experts", lambda _routing, _e, k, _batch, _n: float(k))


def all_experts_always(monkeypatch):
    """All experts a pass (llm-analysis, InferSim)."""
    monkeypatch.setattr(moe, "distinct_experts", lambda _routing, e, _k, _batch, _n: float(e))


def head_ignored(monkeypatch):
    """No weight bytes of the head (llm-analysis)."""
    monkeypatch.setattr(passes, "head_operators", lambda setting: ends.head_operators(setting)[:1])


def two_matrices_of_a_gated_block(monkeypatch):
    """A gated feed-forward counted as two matrices (open-instruct pull request 1096)."""
    real = feed_forward.up_and_down
    monkeypatch.setattr(
        feed_forward,
        "up_and_down",
        lambda prefix, layer, found, setting: real(prefix, layer, found[-2:], setting),
    )


def heads_that_divide_the_width(monkeypatch):
    """Head size taken for h / H."""
    real = Attention.matrices

    def wrong(self, hidden):
        if self.head_size * self.query_heads == hidden:
            return real(self, hidden)
        size = hidden // self.query_heads
        return real(self.model_copy(update={"head_size": size, "value_head_size": size}), hidden)

    monkeypatch.setattr(Attention, "matrices", wrong)


FAULTS = (
    (cache_read_per_position, CACHE),
    (cache_of_query_heads, CACHE),
    (experts_whatever_the_batch, EXPERTS),
    (all_experts_always, EXPERTS),
    (head_ignored, WEIGHTS),
    (two_matrices_of_a_gated_block, WEIGHTS),
    (heads_that_divide_the_width, WEIGHTS),
)


@pytest.mark.parametrize(("fault", "check"), FAULTS, ids=lambda item: item.__name__)
def test_fault_turns_its_check_red(monkeypatch, fault, check):
    check()
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        check()
