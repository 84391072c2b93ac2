"""Passes: prefill, decode, verify and draft as lists of operators on one device of a group.

A decode is a verify of one position; a prefill is one long chunk whose last position alone needs logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from rooflines.costs.attention import attention_operators, cross_operators, encoder_positions
from rooflines.costs.cost import Cost, Number, Operator, Pass
from rooflines.costs.ends import embedding_operators, head_operators
from rooflines.costs.feed_forward import feed_forward_operators
from rooflines.costs.latent import latent_operators
from rooflines.costs.linear import layer_linear, small
from rooflines.costs.moe import moe_operators
from rooflines.costs.recurrent import recurrent_operators
from rooflines.costs.routing import UNIFORM, Routing
from rooflines.costs.setting import Mask, Parallelism, Phase, Precision, Setting, Shape
from rooflines.costs.sharding import on_device
from rooflines.dtypes import number_format
from rooflines.errors import UnsupportedArchitectureError
from rooflines.models.layer import VECTORS
from rooflines.models.spec import Layer, ModelSpec

Block = Callable[[Layer, Any, Setting], list[Operator | None]]
# One entry a kind of mixer or feed-forward; a kind without one cannot be priced.
BLOCKS: Final[dict[str, Block]] = {
    "attention": attention_operators,
    "latent": latent_operators,
    "cross": cross_operators,
    "gated_delta_net": recurrent_operators,
    "kimi_delta": recurrent_operators,
    "mamba": recurrent_operators,
    "mamba2": recurrent_operators,
    "dense": feed_forward_operators,
    "moe": moe_operators,
}


def decode_pass(
    model: ModelSpec,
    batch: Number,
    context: Number,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    routing: Routing = UNIFORM,
    encoder_positions: Number | None = None,
) -> Pass:
    """One token for each of `batch` sequences with `context` cached positions each."""
    shape = Shape(batch, 1.0, context, 1.0, encoder_positions=encoder_positions)
    return forward_pass(model, shape, "decode", precision=precision, parallelism=parallelism, routing=routing)


def verify_pass(
    model: ModelSpec,
    batch: Number,
    context: Number,
    verify_width: Number,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    routing: Routing = UNIFORM,
    encoder_positions: Number | None = None,
    ancestors: Number | None = None,
) -> Pass:
    """`verify_width` positions (draft length + 1, tree nodes + 1) for each sequence, all with logits."""
    shape = Shape(batch, verify_width, context, verify_width, ancestors, encoder_positions=encoder_positions)
    return forward_pass(model, shape, "verify", precision=precision, parallelism=parallelism, routing=routing)


def prefill_pass(
    model: ModelSpec,
    batch: Number,
    new_tokens: Number,
    context: Number = 0.0,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    routing: Routing = UNIFORM,
    encoder_positions: Number | None = None,
    mask: Mask = "exact",
) -> Pass:
    """A prompt (or chunk of one) of `new_tokens` positions; the last one's logits only.

    A model with an encoder also encodes its `encoder_positions` and makes the keys and values that its
    decoder attends to.
    """
    shape = Shape(batch, new_tokens, context, 1.0, None, mask, encoder_positions)
    return forward_pass(
        model, shape, "prefill", precision=precision, parallelism=parallelism, routing=routing
    )


def forward_pass(
    model: ModelSpec,
    shape: Shape,
    phase: Phase,
    *,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    routing: Routing = UNIFORM,
) -> Pass:
    """Any pass through `model`, as operators on one device.

    Multi-token-prediction modules are drafters and take no part. The weights of an encoder are read in the
    prefill only.

    Args:
        model: what is run.
        shape: how many positions.
        phase: which pass it is.
        precision: number formats chosen by hand; None for those of the checkpoint.
        parallelism: None for one device.
        routing: how many distinct experts the tokens of a pass hit.

    Raises:
        ParallelismError: the degree does not divide the heads or widths.
        UnsupportedArchitectureError: a layer has a block that is not priced.
        InputError: the model has an encoder, and nothing says how long its input is.
    """
    setting = Setting(model, shape, precision or Precision(), parallelism or Parallelism(), phase, routing)
    operators: list[Operator | None] = []
    if model.encoder and phase == "prefill":
        operators += _encoder(setting)
    operators += embedding_operators(setting)
    operators += _layers(model.layer_groups, setting)
    operators += head_operators(setting)
    return Pass(phase, merge_equal(operator for operator in operators if operator is not None))


def _encoder(setting: Setting) -> list[Operator | None]:
    """The encoder over its own positions, named apart from the decoder."""
    positions = encoder_positions(setting)
    shape = Shape(setting.shape.batch, positions, 0.0, mask=setting.shape.mask)
    own = replace(setting, shape=shape)
    hidden, vectors = setting.model.hidden, number_format(setting.model.dtype)
    norm = small(
        "final norm",
        2 * shape.tokens * hidden,
        own,
        flops=4 * shape.tokens * hidden,
        weights=hidden * vectors.bytes_per_element,
    )
    found = [*embedding_operators(own), *_layers(setting.model.encoder_groups, own), norm]
    return [operator and replace(operator, name=f"encoder {operator.name}") for operator in found]


def _layers(groups: Sequence[tuple[Layer, int]], setting: Setting) -> list[Operator | None]:
    hidden, precision, parallelism = setting.model.hidden, setting.precision, setting.parallelism
    return [
        _times(operator, count)
        for layer, count in groups
        for operator in _layer(on_device(layer, hidden, precision, parallelism), setting)
    ]


def _layer(layer: Layer, setting: Setting) -> list[Operator | None]:
    tokens, hidden = setting.shape.tokens, setting.model.hidden
    blocks = [block for block in (layer.mixer, layer.cross, *layer.feed_forwards) if block is not None]
    operators: list[Operator | None] = []
    for block in blocks:
        price = BLOCKS.get(block.kind)
        if price is None:
            raise UnsupportedArchitectureError(f"{setting.model.name}: no cost is known for {block.kind!r}")
        operators += price(layer, block, setting)
    for matrix in layer.extras:
        operators.append(layer_linear(matrix.name.replace("_", " "), layer, [matrix], tokens, setting))
    if not layer.norms:
        return operators
    # A fused norm reads the block's output and the residual, and writes the sum and its norm. All vectors of
    # the layer (norms, sinks, taps) are read with its norms.
    vectors = number_format(dict(layer.formats).get(VECTORS, setting.model.dtype)).bytes_per_element
    norm = small(
        "norm and residual",
        4 * tokens * hidden,
        setting,
        flops=(7 if layer.norm_bias else 4) * tokens * hidden,
        weights=layer.vector_parameters(hidden) * vectors / layer.norms,
    )
    return [*operators, _times(norm, layer.norms)]


def merge_equal(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Operators in order, those that differ in nothing but their count folded into one."""
    merged: list[Operator] = []
    places: dict[tuple[str, str, str, str], list[int]] = {}
    for operator in operators:
        key = (operator.name, operator.kind, operator.arithmetic, operator.storage)
        alike = places.setdefault(key, [])
        for index in alike:
            if _same(merged[index].cost, operator.cost):
                merged[index] = replace(merged[index], count=merged[index].count + operator.count)
                break
        else:
            alike.append(len(merged))
            merged.append(operator)
    return tuple(merged)


def _same(one: Cost, other: Cost) -> bool:
    pairs = [(getattr(one, field), getattr(other, field)) for field in Cost.__slots__]
    return all(a is b or (isinstance(a, _PLAIN) and isinstance(b, _PLAIN) and a == b) for a, b in pairs)


_PLAIN: Final = (float, int)


def _times(operator: Operator | None, count: float) -> Operator | None:
    return None if operator is None else replace(operator, count=operator.count * count)
