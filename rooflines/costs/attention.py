"""Softmax attention over a KV cache, with H query heads on K key/value heads, and across to an encoder."""

from __future__ import annotations

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.costs.linear import all_reduce, layer_linear, small
from rooflines.costs.pairs import Reach, attention_pairs, read_positions
from rooflines.costs.setting import Setting
from rooflines.errors import InputError
from rooflines.models.spec import Attention, CrossAttention, Layer


def attention_operators(layer: Layer, block: Attention, setting: Setting) -> list[Operator | None]:
    """The kernels of one attention block on one device: projections, scores and values, all-reduce."""
    shape, hidden = setting.shape, setting.model.hidden
    *inputs, output = block.matrices(hidden)
    turned = (block.query_heads + (0 if block.shared_kv else block.kv_heads)) * block.head_size
    # Rotation takes 3 FLOP an element, a norm of queries and keys 4 more, fused with it.
    each = 7 if block.qk_norm != "none" else 3
    values = block.query_heads * block.value_head_size
    gate = None
    if block.gate != "none":
        gate = small("attention gate", 3 * shape.tokens * values, setting, flops=5 * shape.tokens * values)
    return [
        layer_linear(
            "query projection" if block.shared_kv else "qkv projection", layer, inputs, shape.tokens, setting
        ),
        small("rope and kv append", 2 * shape.tokens * turned, setting, flops=each * shape.tokens * turned),
        attention_core(block, setting),
        gate,
        layer_linear("output projection", layer, [output], shape.tokens, setting),
        all_reduce("attention all-reduce", shape.tokens * hidden, setting),
    ]


def reach_of(block: Attention) -> Reach:
    """What a query of the block sees."""
    return Reach(block.window, block.chunk, block.causal)


def attention_core(block: Attention, setting: Setting) -> Operator:
    """Scores, softmax and weighted values in one fused kernel, over the cache and the new positions.

    FLOPs 2 B H (d + d_v) P; bytes: the cached positions once, the new ones written once (or read, where
    an earlier layer wrote them), queries in, values out.
    """
    reach = reach_of(block)
    name = "windowed attention" if block.window else "chunked attention" if block.chunk else "attention"
    return _core(
        name,
        setting,
        heads=(block.query_heads, block.kv_heads),
        width=block.head_size + block.value_head_size,
        pairs=attention_pairs(setting.shape, reach),
        positions=read_positions(setting.shape, reach) + setting.shape.new_tokens,
    )


def _core(
    name: str, setting: Setting, *, heads: tuple[int, int], width: int, pairs: Number, positions: Number
) -> Operator:
    shape, (query_heads, kv_heads) = setting.shape, heads
    return Operator(
        name=name,
        kind="prefill_attention" if setting.phase == "prefill" else "decode_attention",
        cost=Cost(
            matmul_flops=2.0 * shape.batch * query_heads * width * pairs,
            vector_flops=5.0 * shape.batch * query_heads * pairs,
            kv_bytes=shape.batch * positions * kv_heads * width * setting.kv_bytes,
            activation_bytes=shape.tokens * query_heads * width * setting.activation_bytes,
            kernels=1.0,
        ),
        arithmetic=setting.arithmetic,
        storage=setting.precision.kv_format(setting.model).name,
        query_rows=shape.new_tokens * (query_heads / kv_heads),
        query_tokens=shape.new_tokens,
    )


def encoder_positions(setting: Setting) -> Number:
    """Encoder positions per sequence.

    Raises:
        InputError: the model has an encoder, and nothing says how long its input is.
    """
    found = setting.shape.encoder_positions
    if found is None:
        raise InputError(
            f"{setting.model.name} has an encoder: say how many encoder positions each sequence has "
            "(encoder_positions)"
        )
    return found


def cross_operators(layer: Layer, block: CrossAttention, setting: Setting) -> list[Operator | None]:
    """Attention of decoder positions to the encoder's output.

    Keys and values are made in the prefill, once a request, and read in every pass.
    """
    shape, source = setting.shape, encoder_positions(setting)
    query, key, value, output = block.matrices(setting.model.hidden)
    made = None
    if setting.phase == "prefill":
        made = layer_linear("cross kv projection", layer, [key, value], shape.batch * source, setting)
    return [
        made,
        layer_linear("cross query projection", layer, [query], shape.tokens, setting),
        _core(
            "cross attention",
            setting,
            heads=(block.query_heads, block.kv_heads),
            width=2 * block.head_size,
            pairs=shape.new_tokens * source,
            positions=source,
        ),
        layer_linear("cross output projection", layer, [output], shape.tokens, setting),
        all_reduce("cross-attention all-reduce", shape.tokens * setting.model.hidden, setting),
    ]
