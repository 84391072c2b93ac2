"""What an operator does, before any device is named: FLOPs, and bytes by kind.

Numeric fields are floats or NumPy arrays that broadcast: one formula serves one point and ten million.
A FLOP is half a multiply-add. Bytes are those that must cross the device's memory interface (or its
network), whatever is fused.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Number: TypeAlias = float | NDArray[np.float64]

# What sort of kernel runs; calibrations hold constants by it.
OperatorKind = Literal[
    "linear",
    "decode_attention",
    "prefill_attention",
    "moe",
    "recurrent",
    "collective",
    "small",
]
MEMORY_KINDS: Final = ("weight_bytes", "kv_bytes", "state_bytes", "activation_bytes")


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs and bytes; costs add, and scale with a count.

    Attributes:
        matmul_flops: multiply-adds of matrix products x 2: what roofline FLOPs are (FLOP).
        vector_flops: elementwise work outside the matrix units (FLOP).
        weight_bytes: weights read, once a pass whatever the number of positions (bytes).
        kv_bytes: cached keys and values read, and new ones written (bytes).
        state_bytes: recurrent state read and written (bytes).
        activation_bytes: activations, logits and gathered rows read and written (bytes).
        network_bytes: bytes that each device sends over its interconnect (bytes).
        kernels: launches.
    """

    matmul_flops: Number = 0.0
    vector_flops: Number = 0.0
    weight_bytes: Number = 0.0
    kv_bytes: Number = 0.0
    state_bytes: Number = 0.0
    activation_bytes: Number = 0.0
    network_bytes: Number = 0.0
    kernels: Number = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def __mul__(self, count: Number) -> Cost:
        return Cost(*(getattr(self, field.name) * count for field in fields(self)))

    __rmul__ = __mul__

    @property
    def bytes_moved(self) -> Number:
        """Bytes over the memory interface (bytes); network bytes are apart."""
        return self.weight_bytes + self.kv_bytes + self.state_bytes + self.activation_bytes

    @property
    def intensity_flop_per_byte(self) -> Number:
        """Arithmetic intensity of the matrix products (FLOP/byte); 0 where no byte moves."""
        moved = np.asarray(self.bytes_moved, dtype=float)
        quotient = np.divide(self.matmul_flops, moved, out=np.zeros(_shape(self)), where=moved > 0)
        return float(quotient) if quotient.ndim == 0 else quotient


def _shape(cost: Cost) -> tuple[int, ...]:
    return np.broadcast_shapes(np.shape(cost.matmul_flops), np.shape(cost.bytes_moved))


@dataclass(frozen=True, slots=True)
class Operator:
    """One kernel of a pass, `count` times over (once a layer, say), on one device.

    Attributes:
        name: what people call it, e.g. ``qkv projection``.
        kind: operator class; calibrations hold constants by it.
        cost: of one instance on one device, after sharding.
        count: instances in the pass.
        arithmetic: dtype whose peak the matrix product runs at.
        storage: format of the weights, or of the cached keys and values, that it reads.
        rows: positions m that a linear kernel multiplies at once (0 where it has no meaning).
        outputs: outputs of the matrices of a linear kernel, on one device (0 where it has no meaning).
        query_rows: new positions per sequence n times query heads per kv head, for attention.
        query_tokens: new positions per sequence n, for attention.
        ranks: devices that take part, for collectives.
        reduces: whether a collective sums what the devices have, so that each needs all of it.
        tokens_per_expert: positions on the device over the experts that it holds, for experts.
        distinct_log_sd: standard deviation of ln(distinct experts) where it rests on a measured range.
    """

    name: str
    kind: OperatorKind
    cost: Cost
    count: float = 1
    arithmetic: str = "bf16"
    storage: str = "bf16"
    rows: Number = 0.0
    outputs: Number = 0.0
    query_rows: Number = 0.0
    query_tokens: Number = 0.0
    ranks: int = 1
    reduces: bool = False
    tokens_per_expert: Number = 0.0
    distinct_log_sd: Number = 0.0


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass through a model, on each device of a group.

    Attributes:
        phase: ``prefill``, ``decode``, ``verify`` or ``draft``.
        operators: in order of execution, layers folded into `count`.
    """

    phase: str
    operators: tuple[Operator, ...]

    @property
    def cost(self) -> Cost:
        """Cost of the whole pass on one device."""
        total = Cost()
        for operator in self.operators:
            total = total + operator.cost * operator.count
        return total
