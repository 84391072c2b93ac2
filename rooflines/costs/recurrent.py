"""Blocks with a constant state: Gated DeltaNet, Kimi delta attention, Mamba and Mamba-2.

Rejected tokens cannot be cut from a state as from a KV cache. A verify pass therefore reads the state once
and writes one snapshot per position, of which the engine keeps the one after the last accepted token; a
decode writes one, and so does a prefill. Replaying accepted tokens instead would cost a pass of its own.
"""

from __future__ import annotations

from typing import TypeAlias

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.costs.linear import all_reduce, layer_linear
from rooflines.costs.setting import Setting
from rooflines.dtypes import number_format
from rooflines.models.spec import GatedDeltaNet, KimiDeltaAttention, Layer, Mamba, Mamba2, Matrix

Recurrent: TypeAlias = GatedDeltaNet | KimiDeltaAttention | Mamba | Mamba2

# Elementwise work per state element and token. Delta rules: decay, k^T S, rank-1 update, q^T S; state spaces:
# decay, input, sum and output (counted from the recurrences of arXiv 2412.06464 and 2405.21060).
_DELTA_FLOPS = 8.0
_SPACE_FLOPS = 5.0


def recurrent_operators(layer: Layer, block: Recurrent, setting: Setting) -> list[Operator | None]:
    """Projections in, the recurrence with its convolution, projections out, and all-reduces."""
    tokens, hidden = setting.shape.tokens, setting.model.hidden
    matrices = block.matrices(hidden)
    *_, output = matrices
    first = [matrix for matrix in matrices[:-1] if matrix.inputs == hidden and not _inner(block, matrix)]
    between = [matrix for matrix in matrices[:-1] if matrix not in first]
    reduced = None
    if isinstance(block, Mamba):  # step, B and C are sums over channels that devices share
        reduced = all_reduce("state-space all-reduce", tokens * between[0].outputs, setting)
    return [
        layer_linear("recurrent projections", layer, first, tokens, setting),
        *(
            layer_linear(f"{_title(matrix)} projection", layer, [matrix], tokens, setting)
            for matrix in between
        ),
        reduced,
        recurrence(block, setting, sum(matrix.outputs for matrix in first)),
        layer_linear("output projection", layer, [output], tokens, setting),
        all_reduce("recurrent all-reduce", tokens * hidden, setting),
    ]


def _inner(block: Recurrent, matrix: Matrix) -> bool:
    # Whether a matrix reads what another made, even where its width is h by chance.
    return (isinstance(block, Mamba) and matrix.name != "mamba_in") or matrix.name.endswith("_up")


def _title(matrix: Matrix) -> str:
    return matrix.name.replace("_", " ")


def state_bytes(block: Recurrent, setting: Setting) -> float:
    """Constant state of one sequence in one block (bytes)."""
    own = setting.precision.activation_format(setting.model)
    return sum(
        state.elements * (number_format(state.dtype) if state.dtype else own).bytes_per_element
        for state in block.states
    )


def recurrence(block: Recurrent, setting: Setting, inputs: int) -> Operator:
    """Convolution and recurrence in one kernel: the state is read once, and written once a snapshot."""
    shape = setting.shape
    written: Number = 1.0 if setting.phase == "prefill" else shape.new_tokens
    each = _DELTA_FLOPS if isinstance(block, GatedDeltaNet | KimiDeltaAttention) else _SPACE_FLOPS
    recurrent = sum(state.elements for state in block.states if state.name == "recurrent")
    return Operator(
        name="recurrence",
        kind="recurrent",
        cost=Cost(
            vector_flops=each * recurrent * shape.tokens,
            state_bytes=shape.batch * (1.0 + written) * state_bytes(block, setting),
            activation_bytes=2.0 * shape.tokens * inputs * setting.activation_bytes,
            kernels=2.0,
        ),
        arithmetic=setting.arithmetic,
    )
