"""What a model is, as far as its cost goes: a tuple of layers, each with its own mixer and feed-forward.

Shapes in docstrings: h hidden size, H query heads, K key/value heads, d head size, f feed-forward width,
V vocabulary rows, E experts, k experts per token. Every weight matrix is listed once, by `matrices`, so
that parameter counts, weight bytes and FLOPs come from one place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from rooflines.facts import Fact


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight of shape [outputs, inputs], `copies` times (experts), with an optional bias.

    Attributes:
        name: role, e.g. ``query``, ``down``, ``router``.
        inputs: columns (elements).
        outputs: rows (elements).
        bias: whether a bias of `outputs` elements is added.
        copies: how many such matrices exist (experts).
    """

    name: str
    inputs: int
    outputs: int
    bias: bool = False
    copies: int = 1

    @property
    def elements(self) -> int:
        """Weights without biases."""
        return self.copies * self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        """Weights with biases."""
        return self.elements + (self.copies * self.outputs if self.bias else 0)


class Attention(Fact):
    """Softmax attention with H query heads and K key/value heads (MHA, GQA and MQA).

    Attributes:
        query_heads: H.
        kv_heads: K; divides H.
        head_size: d of queries and keys; explicit, never assumed to be h / H.
        value_head_size: d of values.
        qkv_bias: biases on q, k and v.
        output_bias: bias on the output projection.
        qk_norm: norms of queries and keys: one of width d a head, or one over all heads.
        window: newest positions that a query sees, itself included; None sees all.
        causal: False where queries of a pass also see later ones of the same pass (encoders, block drafters).
    """

    kind: Literal["attention"] = "attention"
    query_heads: PositiveInt
    kv_heads: PositiveInt
    head_size: PositiveInt
    value_head_size: PositiveInt
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    window: PositiveInt | None = None
    causal: bool = True

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Query, key, value and output projections of a layer of width `hidden`."""
        query, value = self.query_heads * self.head_size, self.kv_heads * self.value_head_size
        return (
            Matrix("query", hidden, query, self.qkv_bias),
            Matrix("key", hidden, self.kv_heads * self.head_size, self.qkv_bias),
            Matrix("value", hidden, value, self.qkv_bias),
            Matrix("output", self.query_heads * self.value_head_size, hidden, self.output_bias),
        )

    @property
    def vector_parameters(self) -> int:
        """Parameters that are no matrix: the query and key norms."""
        widths = {
            "none": 0,
            "head": 2 * self.head_size,
            "full": (self.query_heads + self.kv_heads) * self.head_size,
        }
        return widths[self.qk_norm]

    @property
    def kv_elements_per_position(self) -> int:
        """Key and value elements cached per position."""
        return self.kv_heads * (self.head_size + self.value_head_size)


class FeedForward(Fact):
    """Two matrices around an activation, or three when `gated` (SwiGLU, GeGLU)."""

    kind: Literal["dense"] = "dense"
    width: PositiveInt
    gated: bool
    bias: bool = False

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Gate (when gated), up and down projections."""
        gate = (Matrix("gate", hidden, self.width, self.bias),) if self.gated else ()
        return (
            *gate,
            Matrix("up", hidden, self.width, self.bias),
            Matrix("down", self.width, hidden, self.bias),
        )


class Layer(Fact):
    """One decoder block: what mixes positions, what transforms each, and the norms around them.

    Attributes:
        mixer: attention, or None in a block without one.
        feed_forwards: usually one; none in a block that only mixes; two where dense and MoE run side by side.
        norms: norms of width h.
        norm_bias: LayerNorm with a bias (2 h parameters) rather than RMSNorm (h).
        formats: storage format by matrix name where it differs from the model's `dtype`.
    """

    mixer: Attention | None
    feed_forwards: tuple[FeedForward, ...]
    norms: NonNegativeInt
    norm_bias: bool = False
    formats: tuple[tuple[str, str], ...] = ()

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """All weight matrices of the layer."""
        mixing = self.mixer.matrices(hidden) if self.mixer else ()
        return (*mixing, *(matrix for block in self.feed_forwards for matrix in block.matrices(hidden)))

    def vector_parameters(self, hidden: int) -> int:
        """Parameters that are no matrix: norms."""
        own = self.mixer.vector_parameters if self.mixer else 0
        return own + self.norms * hidden * (2 if self.norm_bias else 1)

    def parameters(self, hidden: int) -> int:
        """Parameters of the layer."""
        return sum(matrix.parameters for matrix in self.matrices(hidden)) + self.vector_parameters(hidden)


class ModelSpec(Fact):
    """A decoder as a tuple of layers between an embedding and a head.

    Attributes:
        name: what people call it.
        family: `model_type` of the config it was read from.
        hidden: h.
        layers: in order; layers may differ.
        vocabulary: V, rows of the embedding table, padding included.
        tied_embeddings: the head is the embedding table (then stored once, but read as the head each pass).
        dtype: storage format of weights that no other rule names.
        max_positions: longest context that the config states, if it does.
        position_rows: rows of a learned position table (0 for RoPE and ALiBi).
        embedding_width: width of the embedding where it is not h (OPT-350m), with projections in and out.
        head_bias: bias on the head.
        embedding_norm: a norm right after the embedding.
        final_norm: a norm before the head.
        norm_bias: whether these two norms have biases.
        ignored_keys: config keys that were not read.
    """

    name: str
    family: str
    hidden: PositiveInt
    layers: tuple[Layer, ...] = Field(min_length=1)
    vocabulary: PositiveInt
    tied_embeddings: bool
    dtype: str
    max_positions: PositiveInt | None = None
    position_rows: NonNegativeInt = 0
    embedding_width: PositiveInt | None = None
    head_bias: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    norm_bias: bool = False
    ignored_keys: tuple[str, ...] = ()

    @cached_property
    def layer_groups(self) -> tuple[tuple[Layer, int], ...]:
        """Distinct layers with how often each occurs, in order of first appearance."""
        return tuple(Counter(self.layers).items())

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input embedding table, learned positions not included."""
        return self.vocabulary * (self.embedding_width or self.hidden)

    @property
    def head_parameters(self) -> int:
        """Parameters of the head as a matrix, whether or not it is stored apart from the embedding."""
        return self.embedding_parameters + (self.vocabulary if self.head_bias else 0)

    @cached_property
    def parameters_total(self) -> int:
        """Distinct parameters stored."""
        norm = self.hidden * (2 if self.norm_bias else 1)
        width = self.embedding_width
        projections = 2 * width * self.hidden if width and width != self.hidden else 0
        return (
            self.embedding_parameters
            + (self.head_parameters - (self.embedding_parameters if self.tied_embeddings else 0))
            + self.position_rows * self.hidden
            + projections
            + norm * (self.embedding_norm + self.final_norm)
            + sum(count * layer.parameters(self.hidden) for layer, count in self.layer_groups)
        )
