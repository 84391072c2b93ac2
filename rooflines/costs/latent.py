"""Multi-head latent attention (arXiv 2405.04434) and its sparse form with an indexer (DeepSeek-V3.2).

The cache holds one latent of r + d_r numbers a position for all heads. *Absorbed*, queries go into the
latent space and attention runs over the latents themselves, which is cheaper while n is small (below about
170 with DeepSeek-V3's sizes): decode and verify. *Expanded*, keys and values of every head are made out of
the latents: prefill. Sparse attention runs absorbed in every phase (DeepSeek-V3.2-Exp report, section 2.1:
DSA is built on the MQA mode of MLA). With ``mask="dense"`` a prefill is expanded, as transformers does it.
"""

from __future__ import annotations

from rooflines.costs.cost import Cost, Operator
from rooflines.costs.linear import all_reduce, layer_linear, small
from rooflines.costs.pairs import Reach, attention_pairs, read_positions
from rooflines.costs.setting import Setting
from rooflines.models.spec import Indexer, LatentAttention, Layer, Matrix


def latent_operators(layer: Layer, block: LatentAttention, setting: Setting) -> list[Operator | None]:
    """The kernels of one block on one device: the latent and its cache are whole on each."""
    shape, hidden = setting.shape, setting.model.hidden
    named = {matrix.name: matrix for matrix in block.matrices(hidden)}
    first = [named[name] for name in ("query", "query_down", "latent_down") if name in named]
    later = [named[name] for name in ("query_up",) if name in named]
    turned = block.query_heads * block.rope_head_size + block.kv_rank + block.rope_head_size
    gate: list[Operator | None] = []
    if block.output_gate:
        values = block.query_heads * block.value_head_size
        gate = [
            layer_linear("attention gate", layer, [named["attention_gate"]], shape.tokens, setting),
            small("attention gating", 3 * shape.tokens * values, setting, flops=5 * shape.tokens * values),
        ]
    return [
        layer_linear("latent projections", layer, first, shape.tokens, setting),
        layer_linear("query up projection", layer, later, shape.tokens, setting) if later else None,
        small("rope and kv append", 2 * shape.tokens * turned, setting, flops=5 * shape.tokens * turned),
        *(_indexer(layer, block.indexer, setting) if block.indexer and block.indexer.own else ()),
        *(_absorbed if absorbed(block, setting) else _expanded)(layer, block, setting),
        *gate,
        layer_linear("output projection", layer, [named["output"]], shape.tokens, setting),
        all_reduce("attention all-reduce", shape.tokens * hidden, setting),
    ]


def absorbed(block: LatentAttention, setting: Setting) -> bool:
    """Whether attention runs over the latents themselves."""
    if setting.phase != "prefill":
        return True
    return block.indexer is not None and setting.shape.mask == "exact"


def reach_of(block: LatentAttention) -> Reach:
    """What a query of the block sees."""
    top_k = block.indexer.top_k if block.indexer else None
    return Reach(block.window, None, block.causal, top_k)


def _absorbed(layer: Layer, block: LatentAttention, setting: Setting) -> list[Operator]:
    """Queries to the latent, attention over it, and its result to values; FLOPs 2 B H (2 r + d_r) P."""
    shape, heads = setting.shape, block.query_heads
    # The same matrix serves both directions, so FLOPs and weight bytes are those of `latent_up`.
    up = layer_linear("latent absorption", layer, [_up(block, setting)], shape.tokens, setting)
    moved = heads * (block.nope_head_size + 2 * block.kv_rank + block.value_head_size)
    cost = Cost(
        matmul_flops=up.cost.matmul_flops,
        weight_bytes=up.cost.weight_bytes,
        activation_bytes=shape.tokens * moved * setting.activation_bytes,
        kernels=2.0,
    )
    both = Operator(up.name, up.kind, cost, arithmetic=up.arithmetic, storage=up.storage, rows=up.rows)
    return [both, _core(block, setting, 2 * block.kv_rank + block.rope_head_size, kv_heads=1)]


def _expanded(layer: Layer, block: LatentAttention, setting: Setting) -> list[Operator]:
    """Keys and values of all heads for new and cached positions; FLOPs 2 B H (d_n + d_r + d_v) P."""
    shape = setting.shape
    positions = shape.batch * (read_positions(shape, Reach(block.window)) + shape.new_tokens)
    return [
        layer_linear("latent expansion", layer, [_up(block, setting)], positions, setting),
        _core(block, setting, block.head_size + block.value_head_size, kv_heads=block.query_heads),
    ]


def _up(block: LatentAttention, setting: Setting) -> Matrix:
    return next(matrix for matrix in block.matrices(setting.model.hidden) if matrix.name == "latent_up")


def _core(block: LatentAttention, setting: Setting, width: int, kv_heads: int) -> Operator:
    shape, reach, heads = setting.shape, reach_of(block), block.query_heads
    pairs = attention_pairs(shape, reach)
    positions = read_positions(shape, reach) + shape.new_tokens
    return Operator(
        name="sparse latent attention" if block.indexer else "latent attention",
        kind="prefill_attention" if setting.phase == "prefill" else "decode_attention",
        cost=Cost(
            matmul_flops=2.0 * shape.batch * heads * width * pairs,
            vector_flops=5.0 * shape.batch * heads * pairs,
            kv_bytes=shape.batch * positions * (block.kv_rank + block.rope_head_size) * setting.kv_bytes,
            activation_bytes=shape.tokens * heads * width * setting.activation_bytes,
            kernels=1.0,
        ),
        arithmetic=setting.arithmetic,
        storage=setting.precision.kv_format(setting.model).name,
        query_rows=shape.new_tokens * (heads / kv_heads),
        query_tokens=shape.new_tokens,
    )


def _indexer(layer: Layer, indexer: Indexer, setting: Setting) -> list[Operator]:
    """Scores of all cached positions with small heads: projections, then 2 B H_i d_i P over every position.

    Replicated on every tensor-parallel device, since all heads read the same choice.
    """
    shape = setting.shape
    query, key, weight = indexer.matrices(setting.model.hidden)
    pairs = attention_pairs(shape)
    return [
        layer_linear("index query projection", layer, [query], shape.tokens, setting),
        layer_linear("index key projection", layer, [key, weight], shape.tokens, setting),
        Operator(
            name="index scores",
            kind="prefill_attention" if setting.phase == "prefill" else "decode_attention",
            cost=Cost(
                matmul_flops=2.0 * shape.batch * indexer.heads * indexer.head_size * pairs,
                vector_flops=3.0 * shape.batch * indexer.heads * pairs,
                kv_bytes=shape.batch
                * (shape.context + shape.new_tokens)
                * indexer.head_size
                * setting.kv_bytes,
                activation_bytes=shape.tokens * indexer.heads * indexer.head_size * setting.activation_bytes,
                kernels=1.0,
            ),
            arithmetic=setting.arithmetic,
            storage=setting.precision.kv_format(setting.model).name,
            query_rows=shape.new_tokens * float(indexer.heads),
            query_tokens=shape.new_tokens,
        ),
    ]
