"""Passes: prefill, decode, verify and draft as lists of operators on one device of a group.

A decode is a verify of one position; a prefill is one long chunk whose last position alone needs logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from rooflines.costs.attention import attention_operators
from rooflines.costs.cost import Cost, Number, Operator, Pass
from rooflines.costs.feed_forward import feed_forward_operators
from rooflines.costs.linear import all_reduce, linear, small
from rooflines.costs.setting import Mask, Parallelism, Phase, Precision, Setting, Shape
from rooflines.dtypes import number_format
from rooflines.errors import UnsupportedArchitectureError
from rooflines.models.spec import Layer, Matrix, ModelSpec

Block = Callable[[Layer, Any, Setting], list[Operator | None]]
# One entry a kind of mixer or feed-forward; a kind without one cannot be priced.
BLOCKS: Final[dict[str, Block]] = {"attention": attention_operators, "dense": feed_forward_operators}

_LOGIT_BYTES: Final = 4  # engines sample from fp32 logits


def decode_pass(
    model: ModelSpec,
    batch: Number,
    context: Number,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
) -> Pass:
    """One token for each of `batch` sequences with `context` cached positions each."""
    return forward_pass(
        model, Shape(batch, 1.0, context, 1.0), "decode", precision=precision, parallelism=parallelism
    )


def verify_pass(
    model: ModelSpec,
    batch: Number,
    context: Number,
    verify_width: Number,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    ancestors: Number | None = None,
) -> Pass:
    """`verify_width` positions (draft length + 1, tree nodes + 1) for each sequence, all with logits."""
    shape = Shape(batch, verify_width, context, verify_width, ancestors)
    return forward_pass(model, shape, "verify", precision=precision, parallelism=parallelism)


def prefill_pass(
    model: ModelSpec,
    batch: Number,
    new_tokens: Number,
    context: Number = 0.0,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    mask: Mask = "exact",
) -> Pass:
    """A prompt (or chunk of one) of `new_tokens` positions; the last one's logits only."""
    shape = Shape(batch, new_tokens, context, 1.0, None, mask)
    return forward_pass(model, shape, "prefill", precision=precision, parallelism=parallelism)


def forward_pass(
    model: ModelSpec,
    shape: Shape,
    phase: Phase,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
) -> Pass:
    """Any pass through `model`, as operators on one device.

    Raises:
        ParallelismError: the degree does not divide the heads or widths.
        UnsupportedArchitectureError: a layer has a block that is not priced.
    """
    setting = Setting(model, shape, precision or Precision(), parallelism or Parallelism(), phase)
    operators: list[Operator | None] = [*_embedding(setting)]
    for layer, count in model.layer_groups:
        operators += [_times(operator, count) for operator in _layer(layer, setting)]
    operators += _head(setting)
    return Pass(phase, merge_equal(operator for operator in operators if operator is not None))


def merge_equal(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Operators in order, those that differ in nothing but their count folded into one."""
    merged: list[Operator] = []
    for operator in operators:
        for index, earlier in enumerate(merged):
            if earlier.name == operator.name and _same(earlier, operator):
                merged[index] = _times(earlier, (earlier.count + operator.count) / earlier.count) or earlier
                break
        else:
            merged.append(operator)
    return tuple(merged)


def _same(one: Operator, other: Operator) -> bool:
    plain = (float, int)
    values = [getattr(item.cost, field) for item in (one, other) for field in Cost.__slots__]
    if not all(isinstance(value, plain) for value in values):
        return False
    return one.cost == other.cost and (one.arithmetic, one.storage, one.kind) == (
        other.arithmetic,
        other.storage,
        other.kind,
    )


def _times(operator: Operator | None, count: float) -> Operator | None:
    from dataclasses import replace

    return None if operator is None else replace(operator, count=operator.count * count)


def _layer(layer: Layer, setting: Setting) -> list[Operator | None]:
    tokens, hidden = setting.shape.tokens, setting.model.hidden
    operators: list[Operator | None] = []
    blocks = [layer.mixer] if layer.mixer else []
    for block in (*blocks, *layer.feed_forwards):
        price = BLOCKS.get(block.kind)
        if price is None:
            raise UnsupportedArchitectureError(f"{setting.model.name}: no cost is known for {block.kind!r}")
        operators += price(layer, block, setting)
    # A fused norm reads the block's output and the residual, and writes the sum and its norm.
    flops = (7 if layer.norm_bias else 4) * tokens * hidden
    norm = small("norm and residual", 4 * tokens * hidden, setting, flops=flops)
    return [*operators, _times(norm, layer.norms) if layer.norms else None]


def _embedding(setting: Setting) -> list[Operator | None]:
    model, tokens = setting.model, setting.shape.tokens
    width = model.embedding_width or model.hidden
    rows = width + (model.hidden if model.position_rows else 0)
    b_w = number_format(model.dtype).bytes_per_element
    gather = Operator(
        "embedding gather",
        "small",
        Cost(activation_bytes=tokens * (rows * b_w + width * setting.activation_bytes), kernels=1.0),
    )
    reduce = all_reduce("embedding all-reduce", tokens * width, setting)
    project = _projection("embedding projection", width, model.hidden, tokens, setting)
    return [gather, reduce, project]


def _projection(name: str, inputs: int, outputs: int, tokens: Number, setting: Setting) -> Operator | None:
    if inputs == outputs:
        return None
    return linear(
        name,
        [Matrix(name, inputs, outputs)],
        [number_format(setting.model.dtype)],
        tokens,
        setting,
    )


def _head(setting: Setting) -> list[Operator | None]:
    """Final norm, head and sampling on the positions whose logits are needed."""
    model, tokens, ranks = setting.model, setting.shape.head_tokens, setting.parallelism.tensor
    width = model.embedding_width or model.hidden
    rows = -(-model.vocabulary // ranks)  # engines pad the vocabulary to a multiple of the degree
    head = linear(
        "head",
        [Matrix("head", width, rows, model.head_bias)],
        [number_format(model.dtype)],
        tokens,
        setting,
    )
    gathered = tokens * model.vocabulary * setting.activation_bytes * (ranks - 1) / ranks
    sampling = Cost(
        vector_flops=5.0 * tokens * model.vocabulary,
        activation_bytes=tokens * model.vocabulary * _LOGIT_BYTES,
        kernels=1.0,
    )
    return [
        small("final norm", 2 * tokens * model.hidden, setting, flops=4 * tokens * model.hidden)
        if model.final_norm
        else None,
        _projection("head projection", model.hidden, width, tokens, setting),
        head,
        Operator("logits all-gather", "collective", Cost(network_bytes=gathered, kernels=1.0), ranks=ranks)
        if ranks > 1
        else None,
        Operator("sampling", "small", sampling),
    ]
