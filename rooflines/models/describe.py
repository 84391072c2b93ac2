"""Layers in a few words, for people: ``GQA 32/8 x 128, window 4096``."""

from __future__ import annotations

from collections.abc import Sequence

from rooflines.models.layer import Layer, Mixer
from rooflines.models.spec import (
    Attention,
    FeedForward,
    GatedDeltaNet,
    KimiDeltaAttention,
    LatentAttention,
    Mamba,
    MixtureOfExperts,
)


def describe_mixer(mixer: Mixer | None) -> str:
    """What mixes positions."""
    if mixer is None:
        return "none"
    if isinstance(mixer, Attention):
        return _describe_attention(mixer)
    if isinstance(mixer, LatentAttention):
        queries = f", queries through {mixer.query_rank}" if mixer.query_rank else ""
        heads = f"{mixer.query_heads} heads"
        indexer = ""
        if mixer.indexer:
            shared = "" if mixer.indexer.own else ", chosen by an earlier layer"
            indexer = f", best {mixer.indexer.top_k} positions{shared}"
        return f"MLA {heads}, latent {mixer.kv_rank} + {mixer.rope_head_size}{queries}{indexer}"
    if isinstance(mixer, GatedDeltaNet):
        return (
            f"gated delta net, {mixer.value_heads} heads of {mixer.key_head_size} x {mixer.value_head_size}"
        )
    if isinstance(mixer, KimiDeltaAttention):
        return f"Kimi delta attention, {mixer.heads} heads of {mixer.head_size}"
    if isinstance(mixer, Mamba):
        return f"Mamba, {mixer.inner} x {mixer.state_size}"
    return f"Mamba-2, {mixer.heads} heads of {mixer.head_size} x {mixer.state_size}"


def _describe_attention(mixer: Attention) -> str:
    kind = "MHA" if mixer.kv_heads == mixer.query_heads else "MQA" if mixer.kv_heads == 1 else "GQA"
    heads = f"{mixer.query_heads}" if kind == "MHA" else f"{mixer.query_heads}/{mixer.kv_heads}"
    size = f"{mixer.head_size}"
    if mixer.value_head_size != mixer.head_size:
        size += f" (values {mixer.value_head_size})"
    extras = (
        f"window {mixer.window}" if mixer.window else "",
        f"chunks of {mixer.chunk}" if mixer.chunk else "",
        "" if mixer.causal else "both ways",
        {"none": "", "full": "gated", "head": "gated by head"}[mixer.gate],
        "sinks" if mixer.sinks else "",
        "keys and values of an earlier layer" if mixer.shared_kv else "",
        "values are keys" if mixer.value_is_key else "",
    )
    return ", ".join([f"{kind} {heads} x {size}", *filter(None, extras)])


def describe_block(block: FeedForward | MixtureOfExperts) -> str:
    """What transforms each position."""
    gated = "gated" if block.gated else "ungated"
    if isinstance(block, FeedForward):
        return f"{gated} {block.width}"
    shared = f", shared {block.shared_width}" if block.shared_width else ""
    latent = f", in a latent of {block.latent}" if block.latent else ""
    return (
        f"{block.experts} {gated} experts of {block.width}, {block.experts_per_token} a token{shared}{latent}"
    )


def describe_feed_forward(layer: Layer) -> str:
    """The feed-forwards of a layer."""
    return " + ".join(map(describe_block, layer.feed_forwards)) or "none"


def describe_formats(layer: Layer, dtype: str) -> str:
    """Number formats of the layer's matrices, the model's dtype first."""
    named = dict(layer.formats)
    kinds = [named.get(matrix.name, dtype) for matrix in layer.matrices(1)]
    return ", ".join(dict.fromkeys(sorted(kinds, key=lambda kind: kind != dtype)))


def ranges(indices: Sequence[int]) -> str:
    """Numbers with runs folded: ``0-2, 5, 7-9``; equal steps of single numbers as ``3, 7, ... 31``."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in runs]
    folded = 4
    if len(texts) > folded:
        return f"{texts[0]}, {texts[1]}, ... {texts[-1]}"
    return ", ".join(texts)
