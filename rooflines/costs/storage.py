"""What has to stay in memory on one device: weights, the KV cache and constant state."""

from __future__ import annotations

from collections.abc import Sequence

from rooflines.costs import attention, latent
from rooflines.costs.cost import Number
from rooflines.costs.ends import format_outside, head_on_device
from rooflines.costs.linear import stored_bytes
from rooflines.costs.pairs import kept_positions
from rooflines.costs.recurrent import state_bytes as block_state_bytes
from rooflines.costs.setting import Parallelism, Precision, Setting, Shape
from rooflines.costs.sharding import on_device
from rooflines.dtypes import number_format
from rooflines.models.layer import VECTORS
from rooflines.models.spec import Attention, LatentAttention, Layer, MixtureOfExperts, ModelSpec


def weight_bytes(
    model: ModelSpec, precision: Precision | None = None, parallelism: Parallelism | None = None
) -> float:
    """Weights that one device holds (bytes); on one device and by default, `ModelSpec.weight_bytes`.

    Multi-token-prediction modules are apart.
    """
    precision, parallelism = precision or Precision(), parallelism or Parallelism()
    layers = (*model.layer_groups, *model.encoder_groups)
    inside = sum(
        count * layer_bytes(on_device(layer, model.hidden, precision, parallelism), model, parallelism)
        for layer, count in layers
    )
    return inside + _outside_bytes(model, parallelism.tensor)


def layer_bytes(layer: Layer, model: ModelSpec, parallelism: Parallelism) -> float:
    """Weights of a layer, already cut to one device, without the experts that other devices hold (bytes)."""
    total = float(layer.weight_bytes(model.hidden, model.dtype))
    if parallelism.expert == 1:
        return total
    own = dict(layer.formats)
    vectors = number_format(own.get(VECTORS, model.dtype))
    for block in layer.feed_forwards:
        if isinstance(block, MixtureOfExperts):
            experts = [matrix for matrix in block.matrices(model.hidden) if matrix.copies > 1]
            formats = [number_format(own.get(matrix.name, model.dtype)) for matrix in experts]
            each = stored_bytes(experts, formats, vectors)
            total -= each * (1.0 - 1.0 / parallelism.expert)
    return total


def _outside_bytes(model: ModelSpec, ranks: int) -> float:
    vectors = format_outside(model, VECTORS)
    head = head_on_device(model, ranks)
    tables = [head] if model.tied_embeddings else [head, head]
    names = ["embedding"] if model.tied_embeddings else ["embedding", "head"]
    total = sum(
        float(format_outside(model, name).matrix_bytes(table.outputs, table.inputs))
        for name, table in zip(names, tables, strict=True)
    )
    for matrix in (*model.embedding_projections, *model.extras, *model.gathered):
        total += stored_bytes([matrix], [format_outside(model, matrix.name)], vectors)
    norms = (model.embedding_norm + model.final_norm + bool(model.encoder)) * model.hidden
    plain = norms * (2 if model.norm_bias else 1) + model.extra_vector_parameters
    plain += model.position_rows * model.hidden + (head.outputs if model.head_bias else 0)
    return total + plain * vectors.element_bits / 8


def kv_cache_bytes(
    model: ModelSpec,
    batch: Number,
    context: Number,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
    *,
    encoder_positions: Number | None = None,
) -> Number:
    """Keys and values of `batch` sequences of `context` positions on one device (bytes).

    Windows keep their newest positions only; latents are whole on every device; a model with an encoder also
    keeps what its decoder attends to.

    Raises:
        InputError: the model has an encoder, and nothing says how long its input is.
    """
    setting = _setting(
        model, Shape(batch, 1.0, context, encoder_positions=encoder_positions), precision, parallelism
    )
    total: Number = 0.0
    for layer, count in _on_device(setting):
        mixer = layer.mixer
        if isinstance(mixer, Attention | LatentAttention):
            reach = attention.reach_of(mixer) if isinstance(mixer, Attention) else latent.reach_of(mixer)
            total = total + count * mixer.kv_elements_per_position * kept_positions(context, reach)
        if layer.cross:
            each = layer.cross.kv_elements_per_encoder_position
            total = total + count * each * attention.encoder_positions(setting)
    return batch * total * setting.kv_bytes


def state_bytes(
    model: ModelSpec,
    batch: Number,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
) -> Number:
    """Constant state of `batch` sequences on one device, whatever their context (bytes)."""
    setting = _setting(model, Shape(batch, 1.0, 0.0), precision, parallelism)
    each = sum(
        count * block_state_bytes(layer.mixer, setting)
        for layer, count in _on_device(setting)
        if layer.mixer is not None and not isinstance(layer.mixer, Attention | LatentAttention)
    )
    return batch * each


def _setting(
    model: ModelSpec, shape: Shape, precision: Precision | None, parallelism: Parallelism | None
) -> Setting:
    return Setting(model, shape, precision or Precision(), parallelism or Parallelism(), "decode")


def _on_device(setting: Setting) -> Sequence[tuple[Layer, int]]:
    hidden, precision, parallelism = setting.model.hidden, setting.precision, setting.parallelism
    groups = setting.model.layer_groups
    return [(on_device(layer, hidden, precision, parallelism), count) for layer, count in groups]
