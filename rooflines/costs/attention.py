"""Softmax attention over a KV cache, with H query heads on K key/value heads.

One pass over the cached keys and values serves all n new positions and all H / K query heads of a group:
verifying does not multiply KV bytes by n, only attention FLOPs.
"""

from __future__ import annotations

import numpy as np

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.costs.linear import all_reduce, cut, formats_of, linear, small
from rooflines.costs.setting import Setting, Shape
from rooflines.models.spec import Attention, Layer


def attention_pairs(shape: Shape, window: int | None = None, *, causal: bool = True) -> Number:
    """Query-key pairs per sequence and head.

    Args:
        shape: B, n, S; `ancestors` replaces the causal triangle of a tree; ``mask="dense"`` counts n (S + n).
        window: positions that a query sees, itself included.
        causal: False where every new position sees every other.

    Returns:
        Chain: n S + n (n + 1) / 2; tree: n S + sum of node depths; window W: sum over i of min(S + i, W);
        dense or bidirectional: n (S + n).
    """
    n, context = shape.new_tokens, shape.context
    if shape.mask == "dense" or not causal:
        return n * (context + n)
    if window is None:
        among = n * (n + 1) / 2 if shape.ancestors is None else shape.ancestors
        return n * context + among
    growing = np.clip(window - np.asarray(context, dtype=float), 0.0, n)
    pairs = growing * context + growing * (growing + 1) / 2 + (n - growing) * window
    return float(pairs) if np.ndim(pairs) == 0 else pairs


def cached_positions(context: Number, window: int | None) -> Number:
    """Cached positions that a pass reads: S, or the newest W - 1 in a sliding window."""
    if window is None:
        return context
    return np.minimum(context, window - 1.0) if np.ndim(context) else min(float(context), window - 1.0)


def attention_operators(layer: Layer, attention: Attention, setting: Setting) -> list[Operator | None]:
    """The kernels of one attention block on one device: projections, scores and values, all-reduce."""
    shape, hidden = setting.shape, setting.model.hidden
    matrices = [cut(matrix, setting, attention.kv_heads) for matrix in attention.matrices(hidden)]
    inputs = [matrix for matrix in matrices if matrix.name != "output"]
    outputs = [matrix for matrix in matrices if matrix.name == "output"]
    rotated = attention.query_heads + attention.kv_heads
    return [
        linear("qkv projection", inputs, formats_of(setting, layer, inputs), shape.tokens, setting),
        small(
            "rope and kv append",
            2 * shape.tokens * rotated * attention.head_size / setting.parallelism.tensor,
            setting,
            flops=3 * shape.tokens * rotated * attention.head_size / setting.parallelism.tensor,
        ),
        attention_core(attention, setting),
        linear("output projection", outputs, formats_of(setting, layer, outputs), shape.tokens, setting),
        all_reduce("attention all-reduce", shape.tokens * hidden, setting),
    ]


def attention_core(attention: Attention, setting: Setting) -> Operator:
    """Scores, softmax and weighted values in one fused kernel, over the cache and the new positions.

    FLOPs 2 B H (d + d_v) P; bytes: the cached positions once, the new ones written once,
    queries in, values out.
    """
    shape = setting.shape
    query_heads = setting.parallelism.share(attention.query_heads, "query heads")
    kv_heads = setting.parallelism.kv_share(attention.kv_heads)
    pairs = attention_pairs(shape, attention.window, causal=attention.causal)
    width = attention.head_size + attention.value_head_size
    positions = cached_positions(shape.context, attention.window) + shape.new_tokens
    prefill = setting.phase == "prefill"
    return Operator(
        name="attention",
        kind="prefill_attention" if prefill else "decode_attention",
        cost=Cost(
            matmul_flops=2.0 * shape.batch * query_heads * width * pairs,
            vector_flops=5.0 * shape.batch * query_heads * pairs,
            kv_bytes=shape.batch * positions * kv_heads * width * setting.kv_bytes,
            activation_bytes=shape.tokens * query_heads * width * setting.activation_bytes,
            kernels=1.0,
        ),
        arithmetic=setting.precision.activation_format(setting.model).arithmetic,
        storage=setting.precision.kv_format(setting.model).name,
        query_rows=shape.new_tokens * (query_heads / kv_heads),
        query_tokens=shape.new_tokens,
    )
