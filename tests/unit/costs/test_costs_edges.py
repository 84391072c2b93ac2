"""Edges and refusals of costs."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.costs import passes
from rooflines.costs.passes import decode_pass, prefill_pass, verify_pass
from rooflines.costs.routing import UNIFORM, IndependentRouting, parse_routing
from rooflines.costs.setting import Parallelism, Precision
from rooflines.costs.storage import kv_cache_bytes, weight_bytes
from rooflines.errors import InputError, ParallelismError, UnsupportedArchitectureError
from rooflines.models.readers import read_model


def named(found, name):
    (operator,) = [operator for operator in found.operators if operator.name == name]
    return operator


def test_routing_is_read_from_text():
    assert parse_routing("uniform") == UNIFORM
    assert parse_routing("powerlaw:1.01") == IndependentRouting(skew=1.01)
    assert parse_routing(" Correlated:0.3") == IndependentRouting(correlation=0.3)


@pytest.mark.parametrize("text", ["", "zipf:1", "powerlaw", "powerlaw:x", "correlated:1.2", "powerlaw:nan"])
def test_other_routing_is_refused(text):
    with pytest.raises(InputError, match="routing"):
        parse_routing(text)


@pytest.mark.parametrize("wrong", [1.0, 9.0])
def test_a_routing_of_ones_own_must_be_possible(wrong):
    model = read_model("mixtral-8x7b-v0.1")
    own = named(decode_pass(model, 8.0, 0.0, routing=lambda *_: 5.0), "routed experts")
    assert own.cost.weight_bytes == 5 * 3 * 4096 * 14336 * 2
    with pytest.raises(InputError, match="between 2"):
        decode_pass(model, 8.0, 0.0, routing=lambda *_: wrong)


def test_an_encoder_needs_the_length_of_its_input():
    model = read_model("t5-v1_1-base")
    for ask in (decode_pass, prefill_pass, kv_cache_bytes):
        with pytest.raises(InputError, match="encoder_positions"):
            ask(model, 1.0, 8.0)
    decode = decode_pass(model, 1.0, 8.0, encoder_positions=64.0)
    assert not [operator.name for operator in decode.operators if operator.name.startswith("encoder")]
    assert "cross kv projection" not in {operator.name for operator in decode.operators}


def test_a_block_without_a_price_is_refused_by_name(monkeypatch):
    monkeypatch.delitem(passes.BLOCKS, "moe")
    with pytest.raises(UnsupportedArchitectureError, match=r"mixtral.*'moe'"):
        decode_pass(read_model("mixtral-8x7b-v0.1"), 1.0, 0.0)


@pytest.mark.parametrize(("tensor", "expert"), [(2, 3), (0, 1), (1, 0), (1, -2)])
def test_impossible_degrees_are_refused(tensor, expert):
    with pytest.raises(ParallelismError, match="parallelism"):
        Parallelism(tensor, expert)


def test_degrees_must_divide():
    model = read_model("mixtral-8x7b-v0.1")
    with pytest.raises(ParallelismError, match="does not divide 8 experts: use 2, 4, 8"):
        decode_pass(model, 1.0, 0.0, parallelism=Parallelism(expert=3))
    with pytest.raises(ParallelismError, match="does not divide 32 query heads"):
        decode_pass(model, 1.0, 0.0, parallelism=Parallelism(tensor=3))


def test_a_chosen_format_leaves_head_and_routers_alone():
    model, chosen = read_model("mixtral-8x7b-v0.1"), Precision(weights="int4-g128")
    plain, small = (decode_pass(model, 1.0, 0.0, precision=p) for p in (None, chosen))
    for name in ("head", "router"):
        assert named(small, name).cost.weight_bytes == named(plain, name).cost.weight_bytes
    for name in ("qkv projection", "routed experts"):
        share = named(small, name).cost.weight_bytes / named(plain, name).cost.weight_bytes
        assert share == pytest.approx((4 + 20 / 128) / 16)
    assert weight_bytes(model, chosen) < 0.27 * weight_bytes(model)


def test_prefill_sends_a_token_once_to_each_device_and_decode_once_to_each_expert():
    model, wide = read_model("deepseek-v3"), Parallelism(expert=8)
    decode = named(decode_pass(model, 64.0, 0.0, parallelism=wide), "expert dispatch").cost.network_bytes
    prefill = named(prefill_pass(model, 1.0, 64.0, parallelism=wide), "expert dispatch").cost.network_bytes
    assert decode == 64 * 8 * 7168 * 2 * 7 / 8
    assert 0.6 < prefill / decode < 0.7  # 8 (1 - C(224, 8) / C(256, 8)) = 5.3 of 8


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float16, np.float32])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b-v0.1", "deepseek-v3", "jamba-v0.1"])
def test_narrow_numbers_neither_wrap_around_nor_overflow(name, dtype):
    """A prompt of 250 tokens by 250 sequences has more elements than 16 bits, and more FLOPs than 32, count."""
    model, many, same = read_model(name), np.array([250], dtype=dtype), np.array([250.0])
    for narrow, wide in (
        (prefill_pass(model, many, many), prefill_pass(model, same, same)),
        (verify_pass(model, many, many, many), verify_pass(model, same, same, same)),
        (decode_pass(model, many[0], many), decode_pass(model, same[0], same)),
    ):
        for one, other in zip(narrow.operators, wide.operators, strict=True):
            assert one.cost.matmul_flops == pytest.approx(other.cost.matmul_flops, rel=1e-12)
            assert one.cost.bytes_moved == pytest.approx(other.cost.bytes_moved, rel=1e-12)
