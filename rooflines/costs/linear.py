"""Linear layers, elementwise kernels and all-reduces.

Every weight moves once a pass, whatever the number of positions: FLOPs 2 N in out, activations
N (in + out) b_a (operator counts equal torch's FlopCounterMode; see tests/oracles).
"""

from __future__ import annotations

from collections.abc import Sequence

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.costs.setting import Setting
from rooflines.dtypes import NumberFormat, number_format
from rooflines.models.layer import VECTORS
from rooflines.models.spec import Layer, Matrix


def linear(
    name: str,
    matrices: Sequence[Matrix],
    formats: Sequence[NumberFormat],
    tokens: Number,
    setting: Setting,
    *,
    vectors: NumberFormat | None = None,
) -> Operator:
    """One kernel that multiplies `tokens` positions by matrices which share their input.

    Args:
        name: what people call it.
        matrices: as one device holds them; fused when several (they read the input once).
        formats: storage format of each.
        tokens: N positions.
        setting: gives the activation format.
        vectors: storage format of biases; None for the model's dtype.

    Returns:
        An operator of kind ``linear``; the arithmetic dtype is that of the widest format among them.
    """
    outputs = sum(matrix.outputs for matrix in matrices)
    main = max(formats, key=lambda fmt: fmt.bits)
    return Operator(
        name=name,
        kind="linear",
        cost=Cost(
            matmul_flops=2.0 * sum(matrix.elements for matrix in matrices) * tokens,
            weight_bytes=stored_bytes(matrices, formats, vectors or number_format(setting.model.dtype)),
            activation_bytes=tokens * (matrices[0].inputs + outputs) * setting.activation_bytes,
            kernels=1.0,
        ),
        arithmetic=arithmetic_of(main, setting),
        storage=main.name,
        rows=tokens,
        outputs=float(outputs),
    )


def layer_linear(
    name: str, layer: Layer, matrices: Sequence[Matrix], tokens: Number, setting: Setting
) -> Operator:
    """`linear` for matrices of a layer, in the formats that the layer states."""
    own = dict(layer.formats)
    dtype = setting.model.dtype
    formats = [number_format(own.get(matrix.name, dtype)) for matrix in matrices]
    return linear(name, matrices, formats, tokens, setting, vectors=number_format(own.get(VECTORS, dtype)))


def stored_bytes(matrices: Sequence[Matrix], formats: Sequence[NumberFormat], vectors: NumberFormat) -> float:
    """Bytes of all copies of each matrix with their scales and biases."""
    return float(
        sum(
            matrix.copies
            * (
                fmt.matrix_bytes(matrix.outputs, matrix.inputs)
                + (matrix.outputs * vectors.element_bits / 8 if matrix.bias else 0)
            )
            for matrix, fmt in zip(matrices, formats, strict=True)
        )
    )


def arithmetic_of(weights: NumberFormat, setting: Setting) -> str:
    """Dtype whose peak a product runs at: weight-only formats compute in that of the activations."""
    return setting.arithmetic if weights.arithmetic in ("bf16", "fp16", "fp32") else weights.arithmetic


def all_reduce(name: str, elements: Number, setting: Setting) -> Operator | None:
    """Sum `elements` activations over the tensor-parallel devices; None on one device.

    Each device sends 2 (t - 1) / t of the message in a ring (Thakur et al. 2005, section 4.4).
    """
    ranks = setting.parallelism.tensor
    if ranks == 1:
        return None
    sent = 2 * (ranks - 1) / ranks * elements * setting.activation_bytes
    return Operator(name, "collective", Cost(network_bytes=sent, kernels=1.0), ranks=ranks, reduces=True)


def small(
    name: str, elements: Number, setting: Setting, flops: Number = 0.0, weights: float = 0.0
) -> Operator:
    """An elementwise kernel that moves `elements` activations in all, and `weights` bytes of vectors."""
    cost = Cost(
        vector_flops=flops,
        weight_bytes=weights,
        activation_bytes=elements * setting.activation_bytes,
        kernels=1.0,
    )
    return Operator(name, "small", cost, arithmetic=setting.arithmetic)
