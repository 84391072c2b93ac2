"""Softmax attention of every kind: with H query and K key/value heads, over a latent, across to an encoder.

Shapes: h hidden size, H query heads, K key/value heads, d head size, S context. `kv_elements` counts what a
cache must hold for one sequence in one layer; a window of W positions needs W - 1 cached ones beside the new
one (equal to the cache tensors of transformers 5.23).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from rooflines.facts import Fact
from rooflines.models.matrix import Matrix, State

Norms = Literal["none", "head", "full"]


class Attention(Fact):
    """Softmax attention with H query heads and K key/value heads (MHA, GQA and MQA).

    Attributes:
        query_heads: H.
        kv_heads: K; divides H.
        head_size: d of queries and keys; explicit, never assumed to be h / H.
        value_head_size: d of values.
        qkv_bias: biases on q, k and v.
        output_bias: bias on the output projection.
        qk_norm: norms of queries and keys: one of width d a head kind, or one over all heads.
        qk_norm_bias: these norms have biases.
        window: newest positions that a query sees, itself included; None sees all.
        chunk: positions are cut into chunks of this many, and a query sees its own chunk up to itself.
        causal: False where queries of a pass also see later ones of the same pass (encoders, block drafters).
        gate: output gate: ``full`` doubles the query projection (Qwen3-Next), ``head`` is one number a head.
        sinks: one learned logit a query head (gpt-oss).
        shared_kv: reads the keys and values of an earlier layer: no such matrices, no cache of its own.
        value_is_key: values are the keys before their norm: no value matrix, but both are cached.
        input_width: width of what q, k and v read, where it is not h (EAGLE-3: 2 h).
        position_bias: elements of a learned relative position table (T5, first layer of a stack).
    """

    kind: Literal["attention"] = "attention"
    query_heads: PositiveInt
    kv_heads: PositiveInt
    head_size: PositiveInt
    value_head_size: PositiveInt
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Norms = "none"
    qk_norm_bias: bool = False
    window: PositiveInt | None = None
    chunk: PositiveInt | None = None
    causal: bool = True
    gate: Literal["none", "full", "head"] = "none"
    sinks: bool = False
    shared_kv: bool = False
    value_is_key: bool = False
    input_width: PositiveInt | None = None
    position_bias: NonNegativeInt = 0

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.query_heads % self.kv_heads:
            raise ValueError(f"{self.kv_heads} key/value heads do not divide {self.query_heads} query heads")
        if self.window and self.chunk:
            raise ValueError("a layer has either a sliding window or chunks, not both")
        return self

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Query, key, value and output projections of a layer of width `hidden`, and a gate a head."""
        inputs = self.input_width or hidden
        query = self.query_heads * self.head_size * (2 if self.gate == "full" else 1)
        found = [Matrix("query", inputs, query, self.qkv_bias)]
        if not self.shared_kv:
            found.append(Matrix("key", inputs, self.kv_heads * self.head_size, self.qkv_bias))
            if not self.value_is_key:
                found.append(Matrix("value", inputs, self.kv_heads * self.value_head_size, self.qkv_bias))
        if self.gate == "head":
            found.append(Matrix("attention_gate", inputs, self.query_heads))
        found.append(Matrix("output", self.query_heads * self.value_head_size, hidden, self.output_bias))
        return tuple(found)

    @property
    def vector_parameters(self) -> int:
        """Parameters that are no matrix: query and key norms, sinks, position table."""
        keys = 0 if self.shared_kv else 1
        widths = {
            "none": 0,
            "head": (1 + keys) * self.head_size,
            "full": (self.query_heads + keys * self.kv_heads) * self.head_size,
        }
        norms = widths[self.qk_norm] * (2 if self.qk_norm_bias else 1)
        return norms + (self.query_heads if self.sinks else 0) + self.position_bias

    @property
    def kv_elements_per_position(self) -> int:
        """Key and value elements cached per position."""
        return 0 if self.shared_kv else self.kv_heads * (self.head_size + self.value_head_size)

    def cached_positions(self, context: int) -> int:
        """Positions whose keys and values are kept after `context` positions."""
        reach = self.window or self.chunk
        return context if reach is None else min(context, reach - 1)

    def kv_elements(self, context: int) -> int:
        """Elements cached per sequence after `context` positions."""
        return self.cached_positions(context) * self.kv_elements_per_position

    @property
    def states(self) -> tuple[State, ...]:
        """Constant state: none."""
        return ()


class Indexer(Fact):
    """Scores all cached positions with small heads and keeps the best `top_k` (DeepSeek-V3.2's DSA).

    Attributes:
        heads: index heads.
        head_size: width of an index head; one key of this width is cached per position.
        top_k: positions that the main attention reads.
        query_width: width of the latent queries are made of (q_lora_rank).
        own: False where the choice of an earlier layer is reused: no weights, no index keys.
    """

    heads: PositiveInt
    head_size: PositiveInt
    top_k: PositiveInt
    query_width: PositiveInt
    own: bool = True

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Index queries (from the query latent), keys and head weights."""
        if not self.own:
            return ()
        return (
            Matrix("index_query", self.query_width, self.heads * self.head_size),
            Matrix("index_key", hidden, self.head_size),
            Matrix("index_weight", hidden, self.heads),
        )

    @property
    def vector_parameters(self) -> int:
        """LayerNorm of the index keys."""
        return 2 * self.head_size if self.own else 0


class LatentAttention(Fact):
    """Multi-head latent attention: one latent cached for all heads (arXiv 2405.04434, section 2.1).

    Attributes:
        query_heads: H.
        query_rank: rank of compressed queries (q_lora_rank); None where queries come straight from h.
        kv_rank: r, width of the cached latent (kv_lora_rank).
        nope_head_size: d_n, part of a query or key without positions.
        rope_head_size: d_r, part with positions; its key is shared by all heads and cached.
        value_head_size: d_v.
        bias: biases on the down projections and the output (and on q where it is not compressed).
        output_gate: a gate of H d_v values on the output (Kimi-K3).
        indexer: sparse attention over the best positions; None attends to all.
        causal: as in `Attention`.
        window: as in `Attention`.
    """

    kind: Literal["latent"] = "latent"
    query_heads: PositiveInt
    query_rank: PositiveInt | None
    kv_rank: PositiveInt
    nope_head_size: PositiveInt
    rope_head_size: PositiveInt
    value_head_size: PositiveInt
    bias: bool = False
    output_gate: bool = False
    indexer: Indexer | None = None
    causal: bool = True
    window: PositiveInt | None = None

    @property
    def head_size(self) -> int:
        """Width of a query or key in the non-absorbed form: d_n + d_r."""
        return self.nope_head_size + self.rope_head_size

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Query path, latent down and up, output, and the indexer's."""
        heads = self.query_heads
        if self.query_rank is None:
            # DeepSeek's q_proj has no bias whatever attention_bias says (modeling_deepseek_v3.py).
            query: tuple[Matrix, ...] = (Matrix("query", hidden, heads * self.head_size),)
        else:
            query = (
                Matrix("query_down", hidden, self.query_rank, self.bias),
                Matrix("query_up", self.query_rank, heads * self.head_size),
            )
        gate = (Matrix("attention_gate", hidden, heads * self.value_head_size),) if self.output_gate else ()
        return (
            *query,
            Matrix("latent_down", hidden, self.kv_rank + self.rope_head_size, self.bias),
            Matrix("latent_up", self.kv_rank, heads * (self.nope_head_size + self.value_head_size)),
            *gate,
            Matrix("output", heads * self.value_head_size, hidden, self.bias),
            *(self.indexer.matrices(hidden) if self.indexer else ()),
        )

    @property
    def vector_parameters(self) -> int:
        """Norms of the two latents, and the indexer's."""
        indexer = self.indexer.vector_parameters if self.indexer else 0
        return (self.query_rank or 0) + self.kv_rank + indexer

    @property
    def kv_elements_per_position(self) -> int:
        """Latent, shared rotary key and index key cached per position; independent of H."""
        index = self.indexer.head_size if self.indexer and self.indexer.own else 0
        return self.kv_rank + self.rope_head_size + index

    def cached_positions(self, context: int) -> int:
        """Positions kept after `context` positions."""
        return context if self.window is None else min(context, self.window - 1)

    def kv_elements(self, context: int) -> int:
        """Elements cached per sequence after `context` positions."""
        return self.cached_positions(context) * self.kv_elements_per_position

    @property
    def states(self) -> tuple[State, ...]:
        """Constant state: none."""
        return ()


class CrossAttention(Fact):
    """Attention from decoder positions to the encoder's output, whose keys and values are made once.

    Attributes:
        query_heads: H.
        kv_heads: K.
        head_size: d.
        bias: biases on all four projections.
        encoder_width: width of the encoder's output; None where it is h.
    """

    kind: Literal["cross"] = "cross"
    query_heads: PositiveInt
    kv_heads: PositiveInt
    head_size: PositiveInt
    bias: bool = False
    encoder_width: PositiveInt | None = None

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections; `cross_key` and `cross_value` run once a request, on encoder positions."""
        source = self.encoder_width or hidden
        query, keys = self.query_heads * self.head_size, self.kv_heads * self.head_size
        return (
            Matrix("cross_query", hidden, query, self.bias),
            Matrix("cross_key", source, keys, self.bias),
            Matrix("cross_value", source, keys, self.bias),
            Matrix("cross_output", query, hidden, self.bias),
        )

    @property
    def vector_parameters(self) -> int:
        """None."""
        return 0

    @property
    def kv_elements_per_encoder_position(self) -> int:
        """Key and value elements kept per encoder position, for the whole request."""
        return 2 * self.kv_heads * self.head_size
