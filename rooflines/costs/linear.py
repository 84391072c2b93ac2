"""Linear layers: every weight moves once a pass, whatever the number of positions.

FLOPs 2 N in out, weight bytes in out b_w, activations N (in + out) b_a (operator counts equal torch's
FlopCounterMode; see tests/oracles).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.costs.setting import Setting
from rooflines.dtypes import NumberFormat
from rooflines.models.spec import Layer, Matrix

# How each matrix is cut over tensor-parallel devices (Megatron-LM, arXiv 1909.08053, section 3):
# by columns (outputs), by rows (inputs), or not at all.
Cut = Literal["columns", "rows", "whole"]
CUTS: Final[dict[str, Cut]] = {
    "query": "columns",
    "key": "columns",
    "value": "columns",
    "output": "rows",
    "gate": "columns",
    "up": "columns",
    "down": "rows",
}


def linear(
    name: str, matrices: Sequence[Matrix], formats: Sequence[NumberFormat], tokens: Number, setting: Setting
) -> Operator:
    """One kernel that multiplies `tokens` positions by matrices which share their input.

    Args:
        name: what people call it.
        matrices: as one device holds them; fused when several (they read the input once).
        formats: storage format of each.
        tokens: N positions.
        setting: gives the activation format.

    Returns:
        An operator of kind ``linear``; the arithmetic dtype is that of the widest format among them.
    """
    outputs = sum(matrix.outputs for matrix in matrices)
    b_a = setting.activation_bytes
    weight_bytes = sum(
        matrix.elements * fmt.bytes_per_element + (matrix.outputs * b_a if matrix.bias else 0)
        for matrix, fmt in zip(matrices, formats, strict=True)
    )
    main = max(formats, key=lambda fmt: fmt.bits)
    return Operator(
        name=name,
        kind="linear",
        cost=Cost(
            matmul_flops=2.0 * sum(matrix.elements for matrix in matrices) * tokens,
            weight_bytes=weight_bytes,
            activation_bytes=tokens * (matrices[0].inputs + outputs) * b_a,
            kernels=1.0,
        ),
        arithmetic=arithmetic_of(main, setting),
        storage=main.name,
        rows=tokens,
    )


def arithmetic_of(weights: NumberFormat, setting: Setting) -> str:
    """Dtype whose peak a product runs at: weight-only formats compute in that of the activations."""
    activations = setting.precision.activation_format(setting.model)
    return activations.arithmetic if weights.arithmetic in ("bf16", "fp16", "fp32") else weights.arithmetic


def cut(matrix: Matrix, setting: Setting, kv_heads: int | None = None) -> Matrix:
    """The part of a matrix that one tensor-parallel device holds.

    Args:
        matrix: the whole.
        setting: gives the degree.
        kv_heads: K, for key and value matrices, which are replicated where t exceeds K.

    Raises:
        ParallelismError: the degree does not divide the matrix.
    """
    parallel = setting.parallelism
    way = CUTS.get(matrix.name, "whole")
    if matrix.name in ("key", "value") and kv_heads:
        outputs = matrix.outputs // kv_heads * parallel.kv_share(kv_heads)
        return Matrix(matrix.name, matrix.inputs, outputs, matrix.bias, matrix.copies)
    if way == "columns":
        outputs = parallel.share(matrix.outputs, f"outputs of the {matrix.name} projection")
        return Matrix(matrix.name, matrix.inputs, outputs, matrix.bias, matrix.copies)
    if way == "rows":
        inputs = parallel.share(matrix.inputs, f"inputs of the {matrix.name} projection")
        return Matrix(matrix.name, inputs, matrix.outputs, matrix.bias, matrix.copies)
    return matrix


def formats_of(setting: Setting, layer: Layer, matrices: Sequence[Matrix]) -> list[NumberFormat]:
    """Storage format of each matrix of a layer."""
    return [setting.precision.weight_format(setting.model, layer, matrix.name) for matrix in matrices]


def all_reduce(name: str, elements: Number, setting: Setting) -> Operator | None:
    """Sum `elements` activations over the tensor-parallel devices; None on one device.

    Each device sends 2 (t - 1) / t of the message in a ring (Thakur et al. 2005, section 4.4).
    """
    ranks = setting.parallelism.tensor
    if ranks == 1:
        return None
    sent = 2 * (ranks - 1) / ranks * elements * setting.activation_bytes
    return Operator(name, "collective", Cost(network_bytes=sent, kernels=1.0), ranks=ranks)


def small(name: str, elements: Number, setting: Setting, flops: Number = 0.0, kernels: int = 1) -> Operator:
    """An elementwise kernel that moves `elements` activations in all (read and written)."""
    cost = Cost(
        vector_flops=flops,
        activation_bytes=elements * setting.activation_bytes,
        kernels=float(kernels),
    )
    arithmetic = setting.precision.activation_format(setting.model).arithmetic
    return Operator(name, "small", cost, arithmetic=arithmetic)
