"""One block of a model: what mixes positions, what transforms each, and the norms around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Final, Self

from pydantic import Field, NonNegativeInt, model_validator

from rooflines.dtypes import number_format
from rooflines.facts import Fact
from rooflines.models.attention import Attention, CrossAttention, LatentAttention
from rooflines.models.feed_forward import FeedForward, MixtureOfExperts
from rooflines.models.matrix import Matrix, State
from rooflines.models.recurrent import GatedDeltaNet, KimiDeltaAttention, Mamba, Mamba2

# Under this name `formats` may state how norms and biases are stored, where that is not the model's dtype.
VECTORS: Final = "vectors"

Mixer = Annotated[
    Attention | LatentAttention | GatedDeltaNet | KimiDeltaAttention | Mamba | Mamba2,
    Field(discriminator="kind"),
]
Block = Annotated[FeedForward | MixtureOfExperts, Field(discriminator="kind")]


class Layer(Fact):
    """One block; a block may lack the mixer (Nemotron-H's feed-forward blocks) or the feed-forward.

    Attributes:
        mixer: attention or recurrence, or None in a block without one.
        feed_forwards: usually one; none in a block that only mixes; two where dense and MoE run side by side.
        norms: norms of width h.
        norm_bias: LayerNorm with a bias (2 h parameters) rather than RMSNorm (h).
        cross: attention to an encoder, in a decoder that has one.
        extras: further matrices that every position goes through (Gemma-3n's per-layer inputs).
        extra_vector_parameters: parameters that are neither matrices nor norms of width h.
        formats: storage format by matrix name (or `VECTORS`) where it differs from the model's `dtype`.
    """

    mixer: Mixer | None
    feed_forwards: tuple[Block, ...]
    norms: NonNegativeInt
    norm_bias: bool = False
    cross: CrossAttention | None = None
    extras: tuple[Matrix, ...] = ()
    extra_vector_parameters: NonNegativeInt = 0
    formats: tuple[tuple[str, str], ...] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        twice = [name for name, count in Counter(m.name for m in self.matrices(1)).items() if count > 1]
        if twice:
            raise ValueError(f"two matrices of a layer are called {twice[0]!r}")
        return self

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """All weight matrices of the layer, in order of use."""
        return (
            *(self.mixer.matrices(hidden) if self.mixer else ()),
            *(self.cross.matrices(hidden) if self.cross else ()),
            *(matrix for block in self.feed_forwards for matrix in block.matrices(hidden)),
            *self.extras,
        )

    def vector_parameters(self, hidden: int) -> int:
        """Parameters that are no matrix: norms, sinks, convolutions, scales."""
        own = self.mixer.vector_parameters if self.mixer else 0
        blocks = sum(block.vector_parameters(hidden) for block in self.feed_forwards)
        norms = self.norms * hidden * (2 if self.norm_bias else 1)
        return own + blocks + norms + self.extra_vector_parameters

    def parameters(self, hidden: int) -> int:
        """Parameters of the layer."""
        return sum(matrix.parameters for matrix in self.matrices(hidden)) + self.vector_parameters(hidden)

    def parameters_active(self, hidden: int) -> int:
        """Parameters that one token uses: of the experts only the chosen ones."""
        matrices = sum(matrix.parameters_active for matrix in self.matrices(hidden))
        return matrices + self.vector_parameters(hidden)

    def weight_bytes(self, hidden: int, dtype: str) -> int:
        """Bytes stored, scales included; biases and vectors are in `dtype` unless `formats` says else."""
        formats = dict(self.formats)
        vectors = formats.get(VECTORS, dtype)
        matrices = sum(
            matrix_bytes(matrix, formats.get(matrix.name, dtype), vectors) for matrix in self.matrices(hidden)
        )
        return matrices + plain_bytes(self.vector_parameters(hidden), vectors)

    @property
    def kv_elements_per_position(self) -> int:
        """Key and value elements that each new position appends."""
        return self.mixer.kv_elements_per_position if self.mixer else 0

    def kv_elements(self, context: int) -> int:
        """Elements cached per sequence after `context` positions."""
        return self.mixer.kv_elements(context) if self.mixer else 0

    @property
    def states(self) -> tuple[State, ...]:
        """What is kept per sequence whatever the context."""
        return self.mixer.states if self.mixer else ()

    @property
    def buffers(self) -> int:
        """Numbers in a checkpoint that are no parameters (expert correction biases)."""
        return sum(block.buffers for block in self.feed_forwards)


def matrix_bytes(matrix: Matrix, storage: str, dtype: str) -> int:
    """Bytes of a matrix and all its copies in format `storage`, scales counted; the bias is in `dtype`."""
    stored = matrix.copies * number_format(storage).matrix_bytes(matrix.outputs, matrix.inputs)
    return stored + (plain_bytes(matrix.copies * matrix.outputs, dtype) if matrix.bias else 0)


def plain_bytes(elements: int, dtype: str) -> int:
    """Bytes of `elements` numbers in a plain format such as bf16."""
    return round(elements * number_format(dtype).element_bits / 8)


def group_layers(layers: Iterable[Layer]) -> tuple[tuple[Layer, int], ...]:
    """Distinct layers with how often each occurs, in order of first appearance."""
    counts: dict[Layer, int] = {}
    by_identity = Counter(
        map(id, kept := list(layers))
    )  # hashing a layer is slow, and most are the same object
    for layer in {id(layer): layer for layer in kept}.values():
        counts[layer] = counts.get(layer, 0) + by_identity[id(layer)]
    return tuple(counts.items())
