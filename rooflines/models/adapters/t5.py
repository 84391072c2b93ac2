"""T5: an encoder, and a decoder with cross-attention (transformers 5.23.0, ``modeling_t5.py``)."""

from __future__ import annotations

from typing import Final

from rooflines.errors import ConfigError
from rooflines.models.adapters.common import assemble, layer_count
from rooflines.models.config_view import MOST_LAYERS, ConfigView
from rooflines.models.spec import Attention, CrossAttention, FeedForward, Layer, ModelSpec


def read_t5(view: ConfigView) -> ModelSpec:
    """T5, T5 v1.1 and mT5: the first layer of each stack holds the table of relative positions.

    The head is tied as the config says (by default yes). transformers 5 ties it whatever the config says,
    which miscounts T5 v1.1 by one table.
    """
    hidden = view.size("d_model", "hidden_size")
    heads = view.size("num_heads", "num_attention_heads")
    size = view.size("d_kv")
    length = layer_count(view, "num_layers", "num_hidden_layers")
    decoder_length = view.optional_size("num_decoder_layers", most=MOST_LAYERS) or length
    feed_forward = FeedForward(width=view.size("d_ff"), gated=_gated(view))
    buckets = view.size("relative_attention_num_buckets")

    def attention(index: int, *, causal: bool) -> Attention:
        return Attention(
            query_heads=heads,
            kv_heads=heads,
            head_size=size,
            value_head_size=size,
            causal=causal,
            position_bias=buckets * heads if index == 0 else 0,
        )

    encoder = tuple(
        Layer(mixer=attention(index, causal=False), feed_forwards=(feed_forward,), norms=2)
        for index in range(length)
    )
    cross = CrossAttention(query_heads=heads, kv_heads=heads, head_size=size)
    layers = tuple(
        Layer(mixer=attention(index, causal=True), cross=cross, feed_forwards=(feed_forward,), norms=3)
        for index in range(decoder_length)
    )
    return assemble(view, layers, hidden=hidden, tied=True, encoder=encoder)


def _gated(view: ConfigView) -> bool:
    """`feed_forward_proj` is an activation, with ``gated-`` before it where there are three matrices."""
    activation = view.text("feed_forward_proj")
    parts = activation.split("-")
    if len(parts) > 2 or (len(parts) == 2 and parts[0] != "gated"):  # noqa: PLR2004 - "gated-gelu" has 2
        raise ConfigError(
            f"{view.name}: feed_forward_proj {activation!r} must be an activation or gated-<activation>"
        )
    return parts[0] == "gated"


T5: Final = {"t5": read_t5, "mt5": read_t5}
# PaddleNLP writes T5 configs without `model_type`; these keys together are T5's alone.
T5_SIGNATURE: Final = frozenset(
    {
        "d_model",
        "d_kv",
        "d_ff",
        "num_layers",
        "num_heads",
        "feed_forward_proj",
        "relative_attention_num_buckets",
    }
)
