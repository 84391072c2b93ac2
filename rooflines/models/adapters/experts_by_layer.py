"""Decoders with experts whose layers differ in reach, geometry or experts: Llama-4, MiMo-V2, ERNIE-4.5, ...

Facts that no config states are those of transformers 5.23.0 (``models/<family>/modeling_<family>.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rooflines.models.adapters.common import (
    LAYER_TYPES,
    Reach,
    assemble,
    attentions,
    layer_count,
    mtp_count,
    one_each,
    reaches_of_kinds,
    typed_reaches,
)
from rooflines.models.adapters.dense import everywhere, stated_types
from rooflines.models.adapters.experts import (
    COUNT_KEYS,
    TOP_K_KEYS,
    experts,
    first_dense,
    shared_width,
    sparse_and_dense,
    zero_or_one,
)
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import Attention, MixtureOfExperts, ModelSpec

_LLAMA4_NOPE_PERIOD: Final = 4  # every 4th layer has no rotary positions and full attention


def _llama4_sparse(view: ConfigView, length: int) -> tuple[bool, ...]:
    """Experts in `moe_layers`, or in every `interleave_moe_layer_step`-th layer."""
    if view.has("moe_layers"):
        view.disregard("interleave_moe_layer_step")
        chosen = view.value("moe_layers")
        if not isinstance(chosen, list | tuple) or any(type(index) is not int for index in chosen):
            raise view.wrong("moe_layers", "a list of layer numbers")
        return tuple(index in chosen for index in range(length))
    step = view.size("interleave_moe_layer_step")
    return tuple((index + 1) % step == 0 for index in range(length))


def _llama4_reaches(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """Chunked attention in the layers with rotary positions (three of four where nothing is listed)."""
    if view.has("layer_types"):
        return typed_reaches(view, length)
    if not view.has("attention_chunk_size"):
        return (Reach(),) * length
    period = view.optional_size("no_rope_layer_interval", "nope_layer_interval") or _LLAMA4_NOPE_PERIOD
    rotary: Sequence[bool] = [(index + 1) % period != 0 for index in range(length)]
    if view.value("no_rope_layers"):
        rotary = view.items("no_rope_layers", length, zero_or_one)
    return reaches_of_kinds(view, ["chunk" if has else "full" for has in rotary])


def read_llama4(view: ConfigView) -> ModelSpec:
    """Llama-4: experts beside one shared expert of their width; dense layers of `intermediate_size_mlp`.

    The norms of queries and keys (`use_qk_norm`) have no parameters.
    """
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    view.disregard("use_qk_norm")
    mixers = attentions(
        view,
        hidden,
        _llama4_reaches(view, length),
        qkv_bias=bias,
        output_bias=bias,
        kv_heads_stated=True,
        head_size_stated=True,
    )

    def mixture() -> MixtureOfExperts:
        return experts(view, width_key="intermediate_size", shared_width=view.size("intermediate_size"))

    blocks = sparse_and_dense(view, _llama4_sparse(view, length), mixture, dense_key="intermediate_size_mlp")
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_mimo_v2(view: ConfigView) -> ModelSpec:
    """MiMo-V2: two geometries (`swa_*` for layers with a window), narrower values, sinks by flag.

    A layer with a window sees `sliding_window_size` earlier positions beside its own.
    """
    hidden, length = view.size("hidden_size"), layer_count(view)
    windowed = view.items("hybrid_layer_pattern", length, zero_or_one)
    if view.has("layer_types"):  # transformers 5 says it twice
        kinds = view.choices("layer_types", length, LAYER_TYPES)
        if [kind == "window" for kind in kinds] != list(windowed):
            raise view.wrong("layer_types", "what hybrid_layer_pattern says")
    bias = view.flag("attention_bias", default=False)
    before = view.optional_size("sliding_window_size")
    window = before + 1 if before else view.size("sliding_window")
    view.disregard("sliding_window", "attention_chunk_size")

    def mixer(prefix: str, sinks: str, reach: int | None) -> Attention:
        return Attention(
            query_heads=view.size(f"{prefix}num_attention_heads"),
            kv_heads=view.size(f"{prefix}num_key_value_heads"),
            head_size=view.size(f"{prefix}head_dim"),
            value_head_size=view.size(f"{prefix}v_head_dim"),
            qkv_bias=bias,
            sinks=view.flag(sinks, default=False),
            window=reach,
        )

    local = mixer("swa_", "add_swa_attention_sink_bias", window)
    full = mixer("", "add_full_attention_sink_bias", None)

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=shared_width(view), correction_bias=True)

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    mixers = [local if is_local else full for is_local in windowed]
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_ernie4_5_moe(view: ConfigView) -> ModelSpec:
    """ERNIE-4.5-MoE: experts from `moe_layer_start_index` to `moe_layer_end_index`, shared ones by count."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("use_bias", default=False)
    mixers = attentions(
        view, hidden, everywhere(view, length), qkv_bias=bias, output_bias=bias, kv_heads_stated=True
    )
    first = view.count("moe_layer_start_index")
    last = view.value("moe_layer_end_index")
    step = view.optional_size("moe_layer_interval") or 1
    end = length - 1 if last in (None, -1) else view.count("moe_layer_end_index")
    sparse = [(index + 1) % step == 0 and first <= index <= end for index in range(length)]
    shared = view.count("moe_num_shared_experts", default=0)

    def mixture() -> MixtureOfExperts:
        width = shared * view.size("moe_intermediate_size")
        # Its correction bias is a parameter, not a buffer, and takes the room of a router bias.
        return experts(view, shared_width=width, router_bias=True)

    blocks = sparse_and_dense(view, sparse, mixture, bias=bias)
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=True, head_bias=bias)


def _step_heads(view: ConfigView) -> int:
    """Query heads of layers with a window; a file that does not state them cannot be read."""
    if view.has("attention_other_setting"):
        return view.level("attention_other_setting").size("num_attention_heads")
    found = view.optional_size("num_sliding_attention_heads")
    if found is None:
        raise view.lacking("attention_other_setting", "num_sliding_attention_heads")
    return found


def _step_sparse(view: ConfigView, length: int, padded: int) -> tuple[bool, ...]:
    """Experts in the layers that `moe_layers_enum` or `mlp_layer_types` names."""
    if view.has("mlp_layer_types"):
        listed = view.value("mlp_layer_types")
        entries = len(listed) if isinstance(listed, list | tuple) else length
        view.disregard("moe_layers_enum")
        kinds = {"dense": False, "sparse": True}
        return view.choices("mlp_layer_types", padded if entries == padded else length, kinds)[:length]
    text = view.text("moe_layers_enum")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise view.wrong("moe_layers_enum", "layer numbers with commas between")
    chosen = {int(part) for part in parts}
    return tuple(index in chosen for index in range(length))


def read_step(view: ConfigView) -> ModelSpec:
    """Step-3.5 and 3.7: more query heads in layers with a window, one gate a head, one shared expert.

    Lists with one entry a layer also cover the multi-token-prediction layers that follow.
    """
    hidden, length = view.size("hidden_size"), layer_count(view)
    padded = length + mtp_count(view)
    listed = view.value("layer_types")
    entries = len(listed) if isinstance(listed, list | tuple) else length
    kinds = view.choices("layer_types", padded if entries == padded else length, LAYER_TYPES)[:length]
    reaches = reaches_of_kinds(view, kinds)
    bias = view.flag("attention_bias", default=False)
    size = view.size("head_dim")
    local_heads = _step_heads(view) if "window" in kinds else 0
    made: dict[Reach, Attention] = {}
    for kind, reach in zip(kinds, reaches, strict=True):
        if reach not in made:
            made[reach] = Attention(
                query_heads=local_heads if kind == "window" else view.size("num_attention_heads"),
                kv_heads=view.size("num_key_value_heads", "num_attention_groups"),
                head_size=size,
                value_head_size=size,
                qkv_bias=bias,
                output_bias=bias,
                qk_norm="head",
                gate="head",
                window=reach.window,
            )

    def mixture() -> MixtureOfExperts:
        return experts(
            view, shared_width=view.size("share_expert_dim", "share_expert_dims"), correction_bias=True
        )

    view.disregard("first_k_dense_replace", "n_shared_experts", "use_qk_norm", "use_head_wise_attn_gate")
    blocks = sparse_and_dense(view, _step_sparse(view, length, padded), mixture)
    return assemble(view, one_each([made[reach] for reach in reaches], blocks), hidden=hidden, tied=False)


def read_exaone_moe(view: ConfigView) -> ModelSpec:
    """K-EXAONE: EXAONE-4's attention without biases; layers with experts are listed, or the last ones."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    mixers = attentions(view, hidden, stated_types(view, length), qk_norm="head", kv_heads_stated=True)
    if view.has("is_moe_layer"):
        view.disregard("first_k_dense_replace", "first_last_k_dense_replace", "mlp_layer_types")
        sparse = view.items("is_moe_layer", length, zero_or_one)
    else:
        sparse = first_dense(view, length)

    def mixture() -> MixtureOfExperts:
        shared = view.count("num_shared_experts", default=0) * view.size("moe_intermediate_size")
        return experts(view, shared_width=shared, correction_bias=True)

    blocks = sparse_and_dense(view, sparse, mixture)
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_solar_open(view: ConfigView) -> ModelSpec:
    """Solar-Open: as GLM-4.5, but experts in every layer, and norms of queries and keys in none."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(
        view,
        hidden,
        everywhere(view, length),
        qkv_bias=bias,
        kv_heads_stated=True,
        head_size_stated=True,
    )
    view.refuse("first_k_dense_replace", "Solar-Open has experts in every layer")
    view.refuse("use_qk_norm", "Solar-Open has none")
    block = experts(view, shared_width=shared_width(view), correction_bias=True)
    return assemble(view, one_each(mixers, (block,) * length), hidden=hidden, tied=False)


def read_hunyuan_v1_moe(view: ConfigView) -> ModelSpec:
    """Hunyuan-A13B: experts and one shared expert of the same width in every layer, k listed by layer.

    The class knows one width and one shared expert, whatever its lists say: others are refused.
    """
    hidden, length = view.size("hidden_size"), layer_count(view)
    view.refuse("use_cla", "layers that share a cache")
    view.disregard("use_qk_norm", "use_mixed_mlp_moe", "cla_share_factor", "attention_head_dim")
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(
        view, hidden, everywhere(view, length), qkv_bias=bias, output_bias=bias, qk_norm="head"
    )
    width = view.size("intermediate_size")
    for key, only in (("moe_intermediate_size", width), ("num_shared_expert", 1)):
        if view.has(key) and set(view.sizes(key, length=length)) != {only}:
            raise view.unsupported(key, f"other than {only} in some layer")
    chosen = view.sizes("moe_topk", *TOP_K_KEYS, length=length)
    blocks = {
        per_token: MixtureOfExperts(
            experts=view.size(*COUNT_KEYS),
            experts_per_token=per_token,
            width=width,
            gated=True,
            shared_width=width,
        )
        for per_token in set(chosen)
    }
    layers = one_each(mixers, [blocks[per_token] for per_token in chosen])
    return assemble(view, layers, hidden=hidden, tied=False)


EXPERTS_BY_LAYER: Final = {
    "llama4": read_llama4,
    "llama4_text": read_llama4,
    "mimo_v2_flash": read_mimo_v2,
    "ernie4_5_moe": read_ernie4_5_moe,
    "exaone_moe": read_exaone_moe,
    "hunyuan_v1_moe": read_hunyuan_v1_moe,
    "solar_open": read_solar_open,
    "step3p5": read_step,
    "step3p7": read_step,
}
