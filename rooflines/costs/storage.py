"""What has to stay in memory on one device: weights and the KV cache."""

from __future__ import annotations

from rooflines.costs.attention import cached_positions
from rooflines.costs.cost import Number
from rooflines.costs.passes import forward_pass
from rooflines.costs.setting import Parallelism, Precision, Setting, Shape
from rooflines.dtypes import number_format
from rooflines.models.spec import Attention, ModelSpec


def weight_bytes(
    model: ModelSpec, precision: Precision | None = None, parallelism: Parallelism | None = None
) -> float:
    """Weights that one device holds: what a pass reads, plus an embedding table that is not the head (bytes)."""
    one = Shape(1.0, 1.0, 0.0)
    read = forward_pass(model, one, "decode", precision=precision, parallelism=parallelism).cost.weight_bytes
    ranks = (parallelism or Parallelism()).tensor
    table = 0 if model.tied_embeddings else model.embedding_parameters
    rows = table / ranks + model.position_rows * model.hidden
    vectors = sum(count * layer.vector_parameters(model.hidden) for layer, count in model.layer_groups)
    return float(read) + (rows + vectors) * number_format(model.dtype).bytes_per_element


def kv_cache_bytes(
    model: ModelSpec,
    batch: Number,
    context: Number,
    precision: Precision | None = None,
    parallelism: Parallelism | None = None,
) -> Number:
    """Keys and values of `batch` sequences of `context` positions on one device (bytes)."""
    setting = Setting(
        model, Shape(batch, 1.0, context), precision or Precision(), parallelism or Parallelism(), "decode"
    )
    total: Number = 0.0
    for layer, count in model.layer_groups:
        mixer = layer.mixer
        if isinstance(mixer, Attention):
            heads = setting.parallelism.kv_share(mixer.kv_heads)
            width = mixer.head_size + mixer.value_head_size
            total = total + count * heads * width * cached_positions(context, mixer.window)
    return batch * total * setting.kv_bytes
