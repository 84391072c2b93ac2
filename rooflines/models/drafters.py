"""Drafter heads with weights of their own: EAGLE, EAGLE-3, P-EAGLE, Medusa, DFlash, Domino, DSpark, MTP.

What a head shares with its target (embedding, head) is named, not counted. Two settings that differ by one
are kept apart: `block_size` is what the file says, `draft_length` the tokens that one cycle drafts.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from rooflines.dtypes import number_format
from rooflines.errors import ConfigError
from rooflines.facts import Fact
from rooflines.models.layer import Layer, group_layers, matrix_bytes, plain_bytes
from rooflines.models.matrix import Matrix
from rooflines.models.spec import ModelSpec

Method = Literal["eagle", "eagle3", "p-eagle", "medusa", "dflash", "domino", "dspark", "mtp"]
Shared = Literal["embedding", "head"]


class DrafterSpec(Fact):
    """A head that drafts from its target's hidden states.

    Attributes:
        name: what people call it.
        method: how it drafts.
        hidden: width of its own layers.
        target_hidden: width of the target's hidden states.
        layers: its blocks, in order; none in Medusa.
        entry: matrices that make its input out of the target's hidden states, once a pass.
        heads: matrices that make logits, its own head among them (``head``), and what feeds them.
        gathered: tables of which a pass reads one row a position.
        norms: norms of width `hidden` outside the layers.
        extra_vector_parameters: further parameters that are no matrix.
        shares: what it uses of its target's.
        vocabulary: rows of the target's embedding.
        draft_vocabulary: tokens that it can draft.
        dtype: storage format of its weights.
        block_size: positions of one block as the file states them, in methods that draft a block at once.
        draft_length: tokens drafted per cycle, where the file fixes it; the target verifies one more.
        ignored_keys: config keys that were not read.
        assumed: what the config leaves unsaid and was taken as usual.
    """

    name: str
    method: Method
    hidden: PositiveInt
    target_hidden: PositiveInt
    layers: tuple[Layer, ...]
    entry: tuple[Matrix, ...]
    heads: tuple[Matrix, ...]
    gathered: tuple[Matrix, ...] = ()
    norms: NonNegativeInt = 0
    extra_vector_parameters: NonNegativeInt = 0
    shares: tuple[Shared, ...]
    vocabulary: PositiveInt
    draft_vocabulary: PositiveInt
    dtype: str
    block_size: PositiveInt | None = None
    draft_length: PositiveInt | None = None
    ignored_keys: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @cached_property
    def layer_groups(self) -> tuple[tuple[Layer, int], ...]:
        """Distinct layers with how often each occurs."""
        return group_layers(self.layers)

    @property
    def verify_width(self) -> int | None:
        """Positions that the target verifies: the drafted tokens and one more."""
        return None if self.draft_length is None else self.draft_length + 1

    @property
    def _outside(self) -> tuple[Matrix, ...]:
        return (*self.entry, *self.heads, *self.gathered)

    @property
    def _vectors(self) -> int:
        return self.norms * self.hidden + self.extra_vector_parameters

    @cached_property
    def parameters(self) -> int:
        """Its own parameters: nothing of what it shares."""
        layers = sum(count * layer.parameters(self.hidden) for layer, count in self.layer_groups)
        return layers + sum(matrix.parameters for matrix in self._outside) + self._vectors

    @cached_property
    def parameters_active(self) -> int:
        """Its own parameters that one token uses."""
        layers = sum(count * layer.parameters_active(self.hidden) for layer, count in self.layer_groups)
        return layers + sum(matrix.parameters for matrix in (*self.entry, *self.heads)) + self._vectors

    @property
    def weight_bytes(self) -> int:
        """Bytes of its own weights."""
        layers = sum(
            count * layer.weight_bytes(self.hidden, self.dtype) for layer, count in self.layer_groups
        )
        outside = sum(matrix_bytes(matrix, self.dtype, self.dtype) for matrix in self._outside)
        return layers + outside + plain_bytes(self._vectors, self.dtype)

    def kv_elements(self, context: int) -> int:
        """Elements of its own cache per sequence after `context` positions."""
        return sum(count * layer.kv_elements(context) for layer, count in self.layer_groups)

    def kv_bytes(self, context: int, dtype: str | None = None) -> float:
        """Bytes of its own cache per sequence after `context` positions."""
        return self.kv_elements(context) * number_format(dtype or self.dtype).bytes_per_element

    def kv_bytes_per_token(self, dtype: str | None = None) -> float:
        """Bytes of its own cache per position."""
        elements = sum(count * layer.kv_elements_per_position for layer, count in self.layer_groups)
        return elements * number_format(dtype or self.dtype).bytes_per_element


def medusa_drafter(name: str, hidden: int, vocabulary: int, dtype: str, heads: int) -> DrafterSpec:
    """Medusa heads: each is a residual block and a full head over the vocabulary (arXiv 2401.10774).

    Args:
        name: what people call it.
        hidden: h, the target's width.
        vocabulary: V.
        dtype: of the weights.
        heads: how many, which is also how many tokens a cycle drafts.
    """
    return DrafterSpec(
        name=name,
        method="medusa",
        hidden=hidden,
        target_hidden=hidden,
        layers=(),
        entry=(),
        heads=(
            Matrix("medusa_residual", hidden, hidden, bias=True, copies=heads),
            Matrix("medusa_head", hidden, vocabulary, copies=heads),
        ),
        shares=(),
        vocabulary=vocabulary,
        draft_vocabulary=vocabulary,
        dtype=dtype,
        draft_length=heads,
    )


def mtp_drafter(target: ModelSpec) -> DrafterSpec:
    """A model's first multi-token-prediction module as its drafter; it uses the model's embedding and head.

    Raises:
        ConfigError: the model has none.
    """
    if not target.mtp:
        raise ConfigError(f"{target.name}: its config states no multi-token-prediction module")
    module = target.mtp[0]
    return DrafterSpec(
        name=f"{target.name} MTP",
        method="mtp",
        hidden=target.hidden,
        target_hidden=target.hidden,
        layers=module.layers,
        entry=module.matrices(target.hidden),
        heads=(),
        norms=module.norms,
        shares=("embedding", "head"),
        vocabulary=target.vocabulary,
        draft_vocabulary=target.vocabulary,
        dtype=target.dtype,
    )
