"""Gemma 1 to 4: tied, wide heads, windows in most layers; per-layer embeddings in 3n and 4.

Facts that no config states are those of transformers 5.23.0 (``models/gemma*/modeling_gemma*.py``).
"""

from __future__ import annotations

from typing import Final

from rooflines.models.adapters.common import (
    Reach,
    assemble,
    attentions,
    every_nth_full,
    layer_count,
    one_each,
    reaches_of_kinds,
    typed_reaches,
)
from rooflines.models.adapters.dense import feed_forwards
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import (
    Attention,
    Block,
    FeedForward,
    Layer,
    Matrix,
    MixtureOfExperts,
    ModelSpec,
)

_GEMMA3_PERIOD: Final = 6  # every 6th layer is global unless layer_types or sliding_window_pattern says else


def _attentions(
    view: ConfigView, hidden: int, reaches: tuple[Reach, ...], *, qk_norm: bool
) -> list[Attention]:
    if view.value("use_bidirectional_attention") not in (None, False, "vision"):
        raise view.unsupported("use_bidirectional_attention", "it makes an encoder of the model")
    bias = view.flag("attention_bias", default=False)
    found = attentions(
        view,
        hidden,
        reaches,
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="head" if qk_norm else "none",
        kv_heads_stated=True,
        head_size_stated=True,
    )
    mixers = [mixer for mixer in found if mixer is not None]
    if len(mixers) < len(found):
        raise view.unsupported("num_key_value_heads", "a Gemma layer without attention")
    return mixers


def _dense(view: ConfigView, reaches: tuple[Reach, ...], *, norms: int, qk_norm: bool) -> ModelSpec:
    hidden = view.size("hidden_size")
    mixers = _attentions(view, hidden, reaches, qk_norm=qk_norm)
    blocks = feed_forwards(view, len(reaches), gated=True)
    layers = one_each(mixers, blocks, norms=norms)
    return assemble(view, layers, hidden=hidden, tied=True)


def read_gemma(view: ConfigView) -> ModelSpec:
    """Gemma: full attention, two norms a layer."""
    return _dense(view, (Reach(),) * layer_count(view), norms=2, qk_norm=False)


def read_gemma2(view: ConfigView) -> ModelSpec:
    """Gemma-2: even layers have a window (nothing in the config says so), four norms a layer."""
    return _dense(
        view, every_nth_full(view, layer_count(view), "sliding_window_pattern", 2), norms=4, qk_norm=False
    )


def read_gemma3(view: ConfigView) -> ModelSpec:
    """Gemma-3: a window in all but every sixth layer, four norms a layer, norms of queries and keys."""
    reaches = every_nth_full(view, layer_count(view), "sliding_window_pattern", _GEMMA3_PERIOD)
    return _dense(view, reaches, norms=4, qk_norm=True)


def _shared_from(view: ConfigView, length: int) -> int:
    """First layer that reads the keys and values of an earlier one."""
    shared = view.count("num_kv_shared_layers")
    if shared >= length:
        raise view.wrong("num_kv_shared_layers", f"less than the {length} layers")
    return length - shared


def _per_layer_inputs(hidden: int, width: int) -> tuple[Matrix, ...]:
    return (
        Matrix("per_layer_gate", hidden, width),
        Matrix("per_layer_projection", width, hidden),
    )


def read_gemma3n(view: ConfigView) -> ModelSpec:
    """Gemma-3n: AltUp over several copies of the hidden state, LAuReL, per-layer embeddings, shared KV."""
    hidden = view.size("hidden_size")
    length = layer_count(view)
    width = view.size("hidden_size_per_layer_input")
    copies = view.size("altup_num_inputs")
    rank = view.size("laurel_rank")
    mixers = _attentions(view, hidden, typed_reaches(view, length), qk_norm=True)
    blocks = feed_forwards(view, length, gated=True)
    first_shared = _shared_from(view, length)
    extras = (
        Matrix("altup_router", hidden, copies),
        Matrix("altup_predict", copies, copies**2),
        Matrix("altup_correct", copies, copies),
        Matrix("laurel_left", hidden, rank),
        Matrix("laurel_right", rank, hidden),
        *_per_layer_inputs(hidden, width),
    )
    layers = tuple(
        Layer(
            mixer=mixer if index < first_shared else mixer.model_copy(update={"shared_kv": True}),
            feed_forwards=(block,),
            norms=7,  # 4 of Gemma-2, and those of LAuReL, the AltUp router and the per-layer input
            extras=extras,
            extra_vector_parameters=hidden,  # AltUp's correct_output_scale
        )
        for index, (mixer, block) in enumerate(zip(mixers, blocks, strict=True))
    )
    between = [Matrix(f"altup_{way}", hidden, hidden, copies=copies - 1) for way in ("project", "unembed")]
    return assemble(
        view,
        layers,
        hidden=hidden,
        tied=True,
        gathered=(Matrix("per_layer_embedding", length * width, view.size("vocab_size_per_layer_input")),),
        extras=(Matrix("per_layer_model_projection", hidden, length * width), *between),
        extra_vector_parameters=width,
    )


def _gemma4_mixer(view: ConfigView, kind: str, reach: Reach, heads: int, *, shared: bool) -> Attention:
    """Local layers have the usual head geometry; global ones their own, and may drop the value matrix."""
    bias = view.flag("attention_bias", default=False)
    same = view.flag("attention_k_eq_v", default=False)
    view.disregard("global_head_dim", "num_global_key_value_heads", "per_layer_config")
    local = kind == "window"
    if local:
        size, kv_heads = view.size("head_dim"), None
    elif view.has("per_layer_config"):
        size, kv_heads = _gemma4_listed(view)
    else:
        size = view.size("global_head_dim")
        kv_heads = view.optional_size("num_global_key_value_heads") if same else None
    return Attention(
        query_heads=heads,
        kv_heads=kv_heads or view.size("num_key_value_heads"),
        head_size=size,
        value_head_size=size,
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="head",
        window=reach.window,
        value_is_key=same and not local,
        shared_kv=shared,
    )


def _gemma4_listed(view: ConfigView) -> tuple[int, int | None]:
    """Head size and KV heads of the global layers, as transformers 5 saves them, layer by layer."""
    listed = view.level("per_layer_config")
    given = [listed.level(layer) for layer in listed.data]
    kinds = view.value("layer_types") or []
    full = [index for index, kind in enumerate(kinds) if kind == "full_attention"]
    names = [int(layer) if layer.isdecimal() else -1 for layer in listed.data]
    found = {(one.size("head_dim"), one.optional_size("num_key_value_heads")) for one in given}
    if sorted(names) != full or len(found) != 1 or any(one.unread() for one in given):
        raise view.unsupported("per_layer_config", "other than one head geometry for all global layers")
    return found.pop()


def _gemma4_blocks(view: ConfigView, *, shared: bool) -> tuple[Block, ...]:
    """A dense feed-forward, beside experts where `enable_moe_block` says so."""
    wide = 2 if shared and view.flag("use_double_wide_mlp", default=False) else 1
    dense = FeedForward(width=view.size("intermediate_size") * wide, gated=True)
    if not view.flag("enable_moe_block", default=False):
        view.disregard("num_experts", "top_k_experts", "moe_intermediate_size", "use_double_wide_mlp")
        return (dense,)
    experts = MixtureOfExperts(
        experts=view.size("num_experts"),
        experts_per_token=view.size("top_k_experts"),
        width=view.size("moe_intermediate_size"),
        gated=True,
        router_scales=True,
    )
    return (dense, experts)


def read_gemma4(view: ConfigView) -> ModelSpec:
    """Gemma-4: geometry by layer type, values that are keys, dense and MoE side by side, shared KV."""
    hidden = view.size("hidden_size")
    length = layer_count(view)
    if view.value("use_bidirectional_attention") == "all":
        raise view.unsupported("use_bidirectional_attention", "it makes an encoder of the model")
    heads = view.size("num_attention_heads")
    kinds = view.choices("layer_types", length, {"full_attention": "full", "sliding_attention": "window"})
    if kinds[-1] == "window":
        raise view.wrong("layer_types", "full_attention in the last layer")
    reaches = reaches_of_kinds(view, kinds)
    first_shared = _shared_from(view, length)
    width = view.count("hidden_size_per_layer_input")
    made: dict[tuple[str, bool], Layer] = {}
    for kind, reach, shared in (
        (kind, reach, index >= first_shared)
        for index, (kind, reach) in enumerate(zip(kinds, reaches, strict=True))
    ):
        if (kind, shared) in made:
            continue
        blocks = _gemma4_blocks(view, shared=shared)
        made[kind, shared] = Layer(
            mixer=_gemma4_mixer(view, kind, reach, heads, shared=shared),
            feed_forwards=blocks,
            norms=4 + 3 * (len(blocks) - 1) + bool(width),
            extras=_per_layer_inputs(hidden, width) if width else (),
        )
    layers = tuple(made[kind, index >= first_shared] for index, kind in enumerate(kinds))
    if not width:
        view.disregard("vocab_size_per_layer_input")
        return assemble(view, layers, hidden=hidden, tied=True)
    return assemble(
        view,
        layers,
        hidden=hidden,
        tied=True,
        gathered=(Matrix("per_layer_embedding", length * width, view.size("vocab_size_per_layer_input")),),
        extras=(Matrix("per_layer_model_projection", hidden, length * width),),
        extra_vector_parameters=width,
    )


GEMMA: Final = {
    "gemma": read_gemma,
    "gemma2": read_gemma2,
    "gemma3": read_gemma3,
    "gemma3_text": read_gemma3,
    "gemma3n": read_gemma3n,
    "gemma3n_text": read_gemma3n,
    "gemma4": read_gemma4,
    "gemma4_text": read_gemma4,
}
