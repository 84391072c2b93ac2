"""What a model is, as far as its cost goes: a tuple of layers, each with its own mixer and feed-forward.

Shapes in docstrings: h hidden size, H query heads, K key/value heads, d head size, f feed-forward width,
V vocabulary rows, E experts, k experts per token. Every weight matrix is listed once, by `matrices`, so
that parameter counts, weight bytes and FLOPs come from one place.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from rooflines.dtypes import number_format
from rooflines.errors import InputError
from rooflines.facts import Fact
from rooflines.models.attention import Attention, CrossAttention, Indexer, LatentAttention
from rooflines.models.feed_forward import FeedForward, MixtureOfExperts
from rooflines.models.layer import VECTORS, Block, Layer, Mixer, group_layers, matrix_bytes, plain_bytes
from rooflines.models.matrix import Matrix, State
from rooflines.models.recurrent import GatedDeltaNet, KimiDeltaAttention, Mamba, Mamba2

__all__ = [
    "Attention",
    "Block",
    "CrossAttention",
    "FeedForward",
    "GatedDeltaNet",
    "Indexer",
    "KimiDeltaAttention",
    "LatentAttention",
    "Layer",
    "Mamba",
    "Mamba2",
    "Matrix",
    "Mixer",
    "MixtureOfExperts",
    "ModelSpec",
    "MultiTokenPrediction",
    "State",
]


class MultiTokenPrediction(Fact):
    """A module that drafts one more token from the model's last hidden state (DeepSeek-V3, section 2.2).

    Attributes:
        layers: its own blocks.
        projection: it starts with a projection of the hidden state beside an embedding, 2 h to h.
        norms: norms of width h besides those in the layers.
        own_embedding: it stores its own copy of the embedding table.
        own_head: it stores its own copy of the head.
    """

    layers: tuple[Layer, ...] = Field(min_length=1)
    projection: bool = True
    norms: NonNegativeInt = 3
    own_embedding: bool = False
    own_head: bool = False

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """The projection; those of the layers are theirs."""
        return (Matrix("mtp_projection", 2 * hidden, hidden),) if self.projection else ()

    def parameters(self, hidden: int) -> int:
        """Parameters of the module, copies of embedding and head not included."""
        own = sum(matrix.parameters for matrix in self.matrices(hidden)) + self.norms * hidden
        return own + sum(layer.parameters(hidden) for layer in self.layers)


class ModelSpec(Fact):
    """A decoder as a tuple of layers between an embedding and a head, with an encoder where it has one.

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
        encoder: layers of the encoder, in order (T5); their `final_norm` is counted with them.
        mtp: multi-token-prediction modules; apart from `parameters_total`, as in published totals.
        gathered: further tables of which a pass reads one row a position (Gemma-3n's per-layer embeddings).
        extras: further matrices outside the layers that every position goes through.
        extra_vector_parameters: parameters outside the layers that are neither matrices nor norms of width h.
        formats: storage format of ``embedding``, ``head``, `extras` and `VECTORS` where it is not `dtype`.
        kv_dtype: format of cached keys and values that the checkpoint asks for; None for that of activations.
        not_counted: what the file describes beside this model (vision towers).
        assumed: what the config leaves unsaid and was taken as usual.
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
    encoder: tuple[Layer, ...] = ()
    mtp: tuple[MultiTokenPrediction, ...] = ()
    gathered: tuple[Matrix, ...] = ()
    extras: tuple[Matrix, ...] = ()
    extra_vector_parameters: NonNegativeInt = 0
    formats: tuple[tuple[str, str], ...] = ()
    kv_dtype: str | None = None
    not_counted: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known_formats(self) -> Self:
        number_format(self.dtype)
        if self.kv_dtype is not None:
            number_format(self.kv_dtype)
        return self

    def rebuilt(self, **changes: Any) -> Self:  # noqa: ANN401 - fields are of many types
        """A model with other facts, built anew: a copy would keep what was derived of the old ones."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    @cached_property
    def layer_groups(self) -> tuple[tuple[Layer, int], ...]:
        """Distinct layers with how often each occurs, in order of first appearance."""
        return group_layers(self.layers)

    @cached_property
    def encoder_groups(self) -> tuple[tuple[Layer, int], ...]:
        """Distinct encoder layers with how often each occurs."""
        return group_layers(self.encoder)

    @cached_property
    def has_experts(self) -> bool:
        """Whether a layer routes tokens to experts."""
        blocks = (block for layer, _ in self.layer_groups for block in layer.feed_forwards)
        return any(isinstance(block, MixtureOfExperts) for block in blocks)

    @cached_property
    def has_encoder(self) -> bool:
        """Whether layers attend to positions of an encoder."""
        return bool(self.encoder) or any(layer.cross is not None for layer, _ in self.layer_groups)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input embedding table, learned positions not included."""
        return self.vocabulary * (self.embedding_width or self.hidden)

    @property
    def head_parameters(self) -> int:
        """Parameters of the head as a matrix, whether or not it is stored apart from the embedding."""
        return self.embedding_parameters + (self.vocabulary if self.head_bias else 0)

    @property
    def head(self) -> Matrix:
        """The head as a matrix."""
        return Matrix("head", self.embedding_width or self.hidden, self.vocabulary, self.head_bias)

    @property
    def embedding_projections(self) -> tuple[Matrix, ...]:
        """Projections from the embedding's width to h and back, where they differ."""
        width = self.embedding_width
        if width is None or width == self.hidden:
            return ()
        return (
            Matrix("embedding_in", width, self.hidden),
            Matrix("embedding_out", self.hidden, width),
        )

    @property
    def _outer_vectors(self) -> int:
        norms = self.embedding_norm + self.final_norm + bool(self.encoder)
        return norms * self.hidden * (2 if self.norm_bias else 1) + self.extra_vector_parameters

    @property
    def _outer_matrices(self) -> tuple[Matrix, ...]:
        return (*self.embedding_projections, *self.extras)

    @property
    def _tables(self) -> int:
        # Of these a pass reads a row a position; the embedding counts where it is not read again as the head.
        positions = self.position_rows * self.hidden
        return positions + sum(table.parameters for table in self.gathered)

    @cached_property
    def parameters_total(self) -> int:
        """Distinct parameters stored; multi-token-prediction modules are apart (`parameters_mtp`)."""
        return self._outside + sum(
            count * layer.parameters(self.hidden)
            for layer, count in (*self.layer_groups, *self.encoder_groups)
        )

    @cached_property
    def parameters_active(self) -> int:
        """Parameters that one token uses, embedding tables included in full."""
        return self._outside + sum(
            count * layer.parameters_active(self.hidden)
            for layer, count in (*self.layer_groups, *self.encoder_groups)
        )

    @property
    def parameters_active_without_embedding(self) -> int:
        """Parameters that one token multiplies or adds: no gathered tables, but the head, tied or not."""
        own = 0 if self.tied_embeddings else self.embedding_parameters
        return self.parameters_active - own - self._tables

    @property
    def _outside(self) -> int:
        head = self.head_parameters - (self.embedding_parameters if self.tied_embeddings else 0)
        matrices = sum(matrix.parameters for matrix in self._outer_matrices)
        return self.embedding_parameters + head + self._tables + matrices + self._outer_vectors

    @cached_property
    def parameters_mtp(self) -> int:
        """Parameters of the multi-token-prediction modules, copies of embedding and head included."""
        copies = sum(
            module.own_embedding * self.embedding_parameters + module.own_head * self.head_parameters
            for module in self.mtp
        )
        return copies + sum(module.parameters(self.hidden) for module in self.mtp)

    @property
    def buffers(self) -> int:
        """Numbers in the checkpoint that are no parameters, in the main layers (correction biases)."""
        return sum(count * layer.buffers for layer, count in self.layer_groups)

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of all weights as stored, scales included; multi-token prediction is apart."""
        formats = dict(self.formats)
        vectors = formats.get(VECTORS, self.dtype)
        layers = sum(
            count * layer.weight_bytes(self.hidden, self.dtype)
            for layer, count in (*self.layer_groups, *self.encoder_groups)
        )
        embedding = Matrix("embedding", self.embedding_width or self.hidden, self.vocabulary)
        matrices = [embedding, *self._outer_matrices, *self.gathered]
        if not self.tied_embeddings:
            matrices.append(self.head)
        bias = self.vocabulary if self.head_bias and self.tied_embeddings else 0
        return (
            layers
            + sum(matrix_bytes(m, formats.get(m.name, self.dtype), vectors) for m in matrices)
            + plain_bytes(self.position_rows * self.hidden + self._outer_vectors + bias, vectors)
        )

    @property
    def kv_elements_per_token(self) -> int:
        """Key and value elements that one more position appends, in all layers."""
        return sum(count * layer.kv_elements_per_position for layer, count in self.layer_groups)

    def kv_elements(self, context: int) -> int:
        """Elements cached per sequence after `context` positions: windows keep only their newest.

        Raises:
            InputError: a negative context.
        """
        if context < 0:
            raise InputError(f"context is {context}: it must be 0 or more positions")
        return sum(count * layer.kv_elements(context) for layer, count in self.layer_groups)

    def kv_bytes(self, context: int, dtype: str | None = None) -> float:
        """Bytes cached per sequence after `context` positions.

        Args:
            context: S positions.
            dtype: format of the cache; None for the checkpoint's (`kv_dtype`, else `dtype`).
        """
        return self.kv_elements(context) * self._kv_bytes_per_element(dtype)

    def kv_bytes_per_token(self, context: int | None = None, dtype: str | None = None) -> float:
        """Bytes cached per token of context: what one position appends, or the mean over `context` positions.

        The two differ where windows or chunks forget positions.
        """
        if not context:
            return self.kv_elements_per_token * self._kv_bytes_per_element(dtype)
        return self.kv_bytes(context, dtype) / context

    def _kv_bytes_per_element(self, dtype: str | None) -> float:
        return number_format(dtype or self.kv_dtype or self.dtype).bytes_per_element

    @property
    def state_elements(self) -> int:
        """Constant state per sequence, in elements."""
        return sum(count * state.elements for layer, count in self.layer_groups for state in layer.states)

    @property
    def state_bytes(self) -> float:
        """Constant state per sequence, in bytes."""
        return sum(
            count * state.elements * number_format(state.dtype or self.dtype).bytes_per_element
            for layer, count in self.layer_groups
            for state in layer.states
        )

    @property
    def cross_kv_elements_per_encoder_position(self) -> int:
        """Key and value elements of cross-attention kept per encoder position."""
        return sum(
            count * layer.cross.kv_elements_per_encoder_position
            for layer, count in self.layer_groups
            if layer.cross
        )
