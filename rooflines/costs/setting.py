"""The setting of a pass: how many positions, in which number formats, over how many devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.costs.routing import UNIFORM, Routing
from rooflines.dtypes import NumberFormat, number_format
from rooflines.errors import InputError, ParallelismError
from rooflines.models.spec import ModelSpec

Phase = Literal["prefill", "decode", "verify", "draft"]
Mask = Literal["exact", "dense"]

# Matrices that a format chosen by hand leaves alone, as recipes of GPTQ, AWQ, fp8 and compressed-tensors do.
KEPT: Final = frozenset({"router", "shared_expert_gate"})
_LEAST: Final = (("batch", 1), ("new_tokens", 1), ("context", 0), ("encoder_positions", 1))
_NUMBERS: Final = ("batch", "new_tokens", "context", "head_positions", "ancestors", "encoder_positions")


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
        mask: ``exact`` counts the query-key pairs that the mathematics needs; ``dense`` counts every new
            position against every cached and new one, as torch's FlopCounterMode does on transformers.
        encoder_positions: S_e, encoder positions per sequence, for models with an encoder.
    """

    batch: Number
    new_tokens: Number
    context: Number
    head_positions: Number = 1.0
    ancestors: Number | None = None
    mask: Mask = "exact"
    encoder_positions: Number | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            given = getattr(self, name)
            # Products of narrow integers would wrap around, and those of narrow floats overflow.
            if isinstance(given, np.ndarray | np.generic) and given.dtype != np.float64:
                object.__setattr__(self, name, np.asarray(given, dtype=np.float64)[()])
        for name, least in _LEAST:
            given = getattr(self, name)
            if given is None:
                continue
            value = np.asarray(given, dtype=float)
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


def _shortest(value: NDArray[np.float64]) -> str:
    return f"{value.min():g}" if value.size and np.all(np.isfinite(value)) else "not a number"


@dataclass(frozen=True, slots=True)
class Precision:
    """Number formats chosen for a model; None keeps what its checkpoint has.

    Attributes:
        weights: format of the linear layers of mixers and feed-forwards (embedding, head, norms and routers
            keep the checkpoint's).
        kv: format of cached keys and values (default: what the checkpoint asks for, else that of the
            activations).
        activations: format of activations and logits (default: the checkpoint's 16 or 32-bit dtype).
    """

    weights: str | None = None
    kv: str | None = None
    activations: str | None = None

    def activation_format(self, model: ModelSpec) -> NumberFormat:
        """Format of activations: what was chosen, else the model's dtype."""
        return number_format(self.activations or model.dtype)

    def kv_format(self, model: ModelSpec) -> NumberFormat:
        """Format of cached keys and values: what was chosen, else the checkpoint's, else the activations'."""
        chosen = self.kv or model.kv_dtype
        return number_format(chosen) if chosen else self.activation_format(model)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How a pass is divided over devices.

    Attributes:
        tensor: t; heads, feed-forward widths, KV and vocabulary are divided; adds two all-reduces a layer.
        expert: e; routed experts are not cut but spread over e devices, a multiple of t. The e / t groups
            that this makes run the rest of the model side by side (data-parallel attention), each on
            sequences of its own: the batch of a pass is that of one group, and experts see all tokens.
    """

    tensor: int = 1
    expert: int = 1

    def __post_init__(self) -> None:
        for name, degree in (("tensor", self.tensor), ("expert", self.expert)):
            if degree != int(degree) or degree < 1:
                raise ParallelismError(
                    f"{name} parallelism is {degree!r}: it must be a whole number, 1 or more"
                )
        if self.expert > 1 and self.expert % self.tensor:
            raise ParallelismError(
                f"expert parallelism {self.expert} is no multiple of tensor parallelism {self.tensor}: use "
                f"{self.tensor}, {2 * self.tensor}, {4 * self.tensor}, ..."
            )

    @property
    def devices(self) -> int:
        """Devices in the group."""
        return max(self.tensor, self.expert)

    @property
    def replicas(self) -> int:
        """Groups of t devices that share the experts."""
        return self.devices // self.tensor

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
        routing: how many distinct experts the tokens of a pass hit.
    """

    model: ModelSpec
    shape: Shape
    precision: Precision
    parallelism: Parallelism
    phase: Phase
    routing: Routing = UNIFORM

    @property
    def arithmetic(self) -> str:
        """Dtype that products of activations with each other run in."""
        return self.precision.activation_format(self.model).arithmetic

    @property
    def activation_bytes(self) -> float:
        """Bytes per activation element."""
        return self.precision.activation_format(self.model).bytes_per_element

    @property
    def kv_bytes(self) -> float:
        """Bytes per cached element."""
        return self.precision.kv_format(self.model).bytes_per_element
