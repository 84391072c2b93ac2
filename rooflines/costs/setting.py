"""The setting of a pass: how many positions, in which number formats, over how many devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from rooflines.costs.cost import Number
from rooflines.dtypes import NumberFormat, number_format
from rooflines.errors import InputError, ParallelismError
from rooflines.models.spec import Layer, ModelSpec

Phase = Literal["prefill", "decode", "verify", "draft"]
Mask = Literal["exact", "dense"]

# Matrices that quantisation leaves alone unless a checkpoint says otherwise (operator-cost conventions of
# GPTQ, AWQ, fp8 and compressed-tensors recipes: only the linear layers of attention and feed-forward).
_KEPT: Final = frozenset({"router"})


@dataclass(frozen=True, slots=True)
class Shape:
    """How many positions a pass processes.

    Attributes:
        batch: B, sequences.
        new_tokens: n, new positions per sequence: 1 in decode, draft length + 1 in verify.
        context: S, cached positions per sequence before the pass.
        head_positions: positions per sequence whose logits are needed (1 in prefill, n in verify).
        ancestors: pairs among the new positions per sequence where it is not n (n + 1) / 2: the sum of node
            depths of a draft tree (root at depth 1).
        mask: ``exact`` counts the query-key pairs that the mathematics needs; ``dense`` counts
            n (S + n), as torch's FlopCounterMode does.
    """

    batch: Number
    new_tokens: Number
    context: Number
    head_positions: Number = 1.0
    ancestors: Number | None = None
    mask: Mask = "exact"

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("new_tokens", 1), ("context", 0)):
            value = np.asarray(getattr(self, name), dtype=float)
            if not np.all(np.isfinite(value)) or np.any(value < least):
                raise InputError(
                    f"{name.replace('_', ' ')} is {_shortest(value)}: it must be {least} or more and finite"
                )

    @property
    def tokens(self) -> Number:
        """N = B n, positions in the pass."""
        return self.batch * self.new_tokens

    @property
    def head_tokens(self) -> Number:
        """Positions that go through the head."""
        return self.batch * self.head_positions


def _shortest(value: np.ndarray) -> str:
    return f"{value.min():g}" if value.size and np.all(np.isfinite(value)) else "not a number"


@dataclass(frozen=True, slots=True)
class Precision:
    """Number formats chosen for a model; None keeps what its checkpoint has.

    Attributes:
        weights: format of the linear layers (embedding, head, norms and routers keep the checkpoint's).
        kv: format of cached keys and values (default: that of the activations).
        activations: format of activations and logits (default: the checkpoint's 16 or 32-bit dtype).
    """

    weights: str | None = None
    kv: str | None = None
    activations: str | None = None

    def activation_format(self, model: ModelSpec) -> NumberFormat:
        """Format of activations: what was chosen, else the model's dtype."""
        return number_format(self.activations or model.dtype)

    def kv_format(self, model: ModelSpec) -> NumberFormat:
        """Format of cached keys and values: what was chosen, else that of the activations."""
        return number_format(self.kv) if self.kv else self.activation_format(model)

    def weight_format(self, model: ModelSpec, layer: Layer, matrix: str) -> NumberFormat:
        """Format of one matrix of a layer.

        A format chosen by hand applies to every linear layer but routers; otherwise the checkpoint's own
        per-matrix formats apply.
        """
        if self.weights and matrix not in _KEPT:
            return number_format(self.weights)
        return number_format(dict(layer.formats).get(matrix, model.dtype))


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How a pass is divided over devices.

    Attributes:
        tensor: t; weights, heads, KV and vocabulary are divided, two all-reduces a layer are added.
    """

    tensor: int = 1

    def __post_init__(self) -> None:
        if self.tensor != int(self.tensor) or self.tensor < 1:
            raise ParallelismError(
                f"tensor parallelism is {self.tensor!r}: it must be a whole number, 1 or more"
            )

    @property
    def devices(self) -> int:
        """Devices in the group."""
        return self.tensor

    def share(self, whole: int, what: str) -> int:
        """One device's part of `whole` things that must divide evenly.

        Raises:
            ParallelismError: the degree does not divide them; the message says which degrees do.
        """
        if whole % self.tensor:
            allowed = [str(t) for t in (1, 2, 4, 8, 16, 32) if whole % t == 0]
            raise ParallelismError(
                f"tensor parallelism {self.tensor} does not divide {whole} {what}: use {', '.join(allowed)}"
            )
        return whole // self.tensor

    def kv_share(self, kv_heads: int) -> int:
        """KV heads on one device: divided while there are enough, replicated beyond.

        Raises:
            ParallelismError: neither divides the other.
        """
        if self.tensor <= kv_heads:
            return self.share(kv_heads, "kv heads")
        if self.tensor % kv_heads:
            raise ParallelismError(
                f"tensor parallelism {self.tensor} is no multiple of {kv_heads} kv heads: they cannot be "
                "replicated evenly"
            )
        return 1


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that a pass of one model needs to be priced.

    Attributes:
        model: what is run.
        shape: how many positions.
        precision: in which formats.
        parallelism: over how many devices.
        phase: which pass it is; prefill attention is another kernel class than decode and verify.
    """

    model: ModelSpec
    shape: Shape
    precision: Precision
    parallelism: Parallelism
    phase: Phase

    @property
    def activation_bytes(self) -> float:
        """Bytes per activation element."""
        return self.precision.activation_format(self.model).bytes_per_element

    @property
    def kv_bytes(self) -> float:
        """Bytes per cached element."""
        return self.precision.kv_format(self.model).bytes_per_element
