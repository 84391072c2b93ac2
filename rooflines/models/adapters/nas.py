"""Nemotron-NAS (DeciLM): every layer has its own attention and feed-forward, or none of either.

After ``modeling_decilm.py`` of https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1; the parameters
of that model come out equal to its published total.
"""

from __future__ import annotations

import math
from typing import Final

from rooflines.errors import ConfigError
from rooflines.models.adapters.common import assemble, layer_count, split_heads, stack
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import Attention, FeedForward, Layer, ModelSpec

_MULTIPLE: Final = 256  # widths are rounded up to a multiple of this


def _block_views(view: ConfigView, length: int) -> list[tuple[ConfigView, ConfigView]]:
    blocks = view.value("block_configs")
    if not isinstance(blocks, list | tuple) or len(blocks) != length:
        raise view.wrong("block_configs", f"a list of {length} objects")
    found = []
    for index, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise view.wrong("block_configs", f"a list of {length} objects")
        inner = ConfigView(block, view.name, view.where(f"block_configs[{index}]"), view)
        found.append((inner.level("attention"), inner.level("ffn")))
    return found


def _attention(view: ConfigView, hidden: int, heads: int, *, bias: bool) -> Attention | None:
    if view.flag("no_op", default=False):
        return None
    for key in ("replace_with_linear", "sparsify", "num_sink_tokens", "unshifted_sink"):
        view.refuse(key)
    group = view.size("n_heads_in_group")
    if heads % group:
        raise view.wrong("n_heads_in_group", f"a divisor of {heads} heads")
    size = split_heads(view, hidden, heads, "num_attention_heads")
    return Attention(
        query_heads=heads,
        kv_heads=heads // group,
        head_size=size,
        value_head_size=size,
        qkv_bias=bias,
        output_bias=bias,
        window=view.optional_size("window_length"),
    )


def _feed_forward(view: ConfigView, hidden: int, *, bias: bool) -> FeedForward | None:
    if view.flag("no_op", default=False):
        return None
    for key in ("replace_with_linear", "sparsify"):
        view.refuse(key)
    width = int(2 * view.number("ffn_mult") * hidden / 3)
    return FeedForward(width=max(1, math.ceil(width / _MULTIPLE)) * _MULTIPLE, gated=True, bias=bias)


def read_nemotron_nas(view: ConfigView) -> ModelSpec:
    """Llama-Nemotron found by architecture search: `block_configs` describes each layer."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    heads = view.size("num_attention_heads")
    bias, mlp_bias = view.flag("attention_bias", default=False), view.flag("mlp_bias", default=False)
    view.disregard("intermediate_size", "num_key_value_heads")
    parts: list[tuple[Attention | None, tuple[FeedForward, ...]]] = []
    known: dict[object, Attention | FeedForward] = {}
    for attention_view, ffn_view in _block_views(view, length):
        mixer = _attention(attention_view, hidden, heads, bias=bias)
        block = _feed_forward(ffn_view, hidden, bias=mlp_bias)
        if mixer is not None:
            found = known.setdefault(mixer, mixer)
            mixer = found if isinstance(found, Attention) else mixer
        if block is not None:
            kept = known.setdefault(block, block)
            block = kept if isinstance(kept, FeedForward) else block
        parts.append((mixer, (block,) if block else ()))
    layers: tuple[Layer, ...] = stack(parts, norms=2)
    return assemble(view, _with_empty(view, layers), hidden=hidden, tied=False)


def _with_empty(view: ConfigView, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Layers that do nothing have no norms either; a model of nothing else is a mistake."""
    if all(layer.mixer is None and not layer.feed_forwards for layer in layers):
        raise ConfigError(f"{view.name}: block_configs leaves every layer empty")
    return tuple(
        layer if layer.mixer or layer.feed_forwards else layer.model_copy(update={"norms": 0})
        for layer in layers
    )


NAS: Final = {"nemotron-nas": read_nemotron_nas, "deci": read_nemotron_nas}
