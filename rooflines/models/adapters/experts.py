"""Decoders with experts over ordinary attention: Mixtral, Qwen-MoE, gpt-oss, Llama-4, GLM-4.5, ...

Facts that no config states are those of transformers 5.23.0 (``models/<family>/modeling_<family>.py``).
In Mixtral, gpt-oss, MiniMax and Phi-MoE `intermediate_size` is the expert width; in Qwen, GLM and ERNIE it is
that of the dense layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rooflines.models.adapters.common import (
    Reach,
    assemble,
    attentions,
    layer_count,
    reaches_of_kinds,
    same_window,
    stack,
    typed_reaches,
)
from rooflines.models.adapters.dense import everywhere, mistral_window, switched_window
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import (
    Attention,
    FeedForward,
    Layer,
    MixtureOfExperts,
    ModelSpec,
    MultiTokenPrediction,
)

TOP_K_KEYS: Final = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "moe_top_k",
    "moe_k",
)
COUNT_KEYS: Final = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_LLAMA4_NOPE_PERIOD: Final = 4  # every 4th layer has no rotary positions and full attention


def experts(
    view: ConfigView, *, width_key: str = "moe_intermediate_size", **facts: bool | int | None
) -> MixtureOfExperts:
    """A gated mixture from the usual keys.

    Args:
        view: the config.
        width_key: where the expert width is.
        facts: further fields of `MixtureOfExperts`.
    """
    return MixtureOfExperts.model_validate(
        {
            "experts": view.size(*COUNT_KEYS),
            "experts_per_token": view.size(*TOP_K_KEYS),
            "width": view.size(width_key),
            "gated": True,
            **facts,
        }
    )


def sparse_and_dense(
    view: ConfigView,
    sparse: Sequence[bool],
    mixture: Callable[[], MixtureOfExperts],
    *,
    dense_key: str = "intermediate_size",
    bias: bool = False,
) -> tuple[MixtureOfExperts | FeedForward, ...]:
    """The feed-forward of each layer; a width of dense layers is needed only where there are some."""
    block = mixture() if any(sparse) else None
    if all(sparse):
        view.disregard(dense_key)
        dense = None
    else:
        dense = FeedForward(width=view.size(dense_key), gated=True, bias=bias)
    chosen = [block if is_sparse else dense for is_sparse in sparse]
    return tuple(entry for entry in chosen if entry is not None)


def one_each(
    mixers: Sequence[Attention | None], blocks: Sequence[MixtureOfExperts | FeedForward], norms: int = 2
) -> tuple[Layer, ...]:
    """Layers of one mixer and one feed-forward."""
    return stack(zip(mixers, ((block,) for block in blocks), strict=True), norms=norms)


def stepped(view: ConfigView, length: int) -> tuple[bool, ...]:
    """Qwen: experts in every `decoder_sparse_step`-th layer, but not in `mlp_only_layers`."""
    step = view.optional_size("decoder_sparse_step") or 1
    dense = view.value("mlp_only_layers") or []
    if not isinstance(dense, list | tuple) or any(type(index) is not int for index in dense):
        raise view.wrong("mlp_only_layers", "a list of layer numbers")
    return tuple(index not in dense and (index + 1) % step == 0 for index in range(length))


def first_dense(view: ConfigView, length: int) -> tuple[bool, ...]:
    """DeepSeek and GLM: dense layers first, then experts; lists with one entry a layer go before."""
    if view.has("mlp_layer_types"):
        view.disregard("first_k_dense_replace", "moe_layer_freq")
        return view.choices("mlp_layer_types", length, {"dense": False, "sparse": True})
    if isinstance(view.value("moe_layer_freq"), list | tuple):
        view.disregard("first_k_dense_replace")
        return view.items("moe_layer_freq", length, _zero_or_one)
    dense = view.count("first_k_dense_replace")
    step = view.optional_size("moe_layer_freq") or 1
    return tuple(index >= dense and index % step == 0 for index in range(length))


def _zero_or_one(entry: object) -> bool:
    if entry not in (0, 1):
        raise ValueError(f"entry {entry!r} must be 0 (dense) or 1 (experts)")
    return bool(entry)


def read_mixtral(view: ConfigView) -> ModelSpec:
    """Mixtral: experts in every layer."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    if view.missing("sliding_window"):
        reaches: tuple[Reach, ...] = (Reach(),) * length
    else:
        reaches = same_window(view, length)
    mixers = attentions(view, hidden, reaches, kv_heads_stated=True)
    block = experts(view, width_key="intermediate_size")
    return assemble(view, one_each(mixers, (block,) * length), hidden=hidden, tied=False)


def read_qwen2_moe(view: ConfigView) -> ModelSpec:
    """Qwen1.5-MoE and Qwen2-MoE: a gated shared expert beside the routed ones; biases on q, k and v."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    mixers = attentions(
        view,
        hidden,
        switched_window(view, length),
        qkv_bias=view.flag("qkv_bias", default=True),
        kv_heads_stated=True,
    )

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=view.size("shared_expert_intermediate_size"), shared_gate=True)

    blocks = sparse_and_dense(view, stepped(view, length), mixture)
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_qwen3_moe(view: ConfigView) -> ModelSpec:
    """Qwen3-MoE: no shared expert, norms of queries and keys."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(
        view,
        hidden,
        switched_window(view, length),
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="head",
        kv_heads_stated=True,
    )
    view.refuse("shared_expert_intermediate_size", "Qwen3-MoE has no shared expert")
    view.disregard("use_qk_norm")
    blocks = sparse_and_dense(view, stepped(view, length), lambda: experts(view))
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_gpt_oss(view: ConfigView) -> ModelSpec:
    """gpt-oss: a window in every second layer, sinks, biases everywhere, experts and router included."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    if view.has("layer_types"):
        reaches = typed_reaches(view, length)
    else:
        reaches = reaches_of_kinds(view, ["full" if index % 2 else "window" for index in range(length)])
    bias = view.flag("attention_bias", default=True)
    mixers = attentions(
        view,
        hidden,
        reaches,
        qkv_bias=bias,
        output_bias=bias,
        sinks=True,
        kv_heads_stated=True,
        head_size_stated=True,
    )
    block = experts(view, width_key="intermediate_size", bias=True, router_bias=True)
    return assemble(view, one_each(mixers, (block,) * length), hidden=hidden, tied=False)


def read_phimoe(view: ConfigView) -> ModelSpec:
    """Phi-3.5-MoE: LayerNorms with biases, biases in attention and on the head where the flags say so."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(
        view,
        hidden,
        mistral_window(view, length),
        qkv_bias=bias,
        output_bias=bias,
        kv_heads_stated=True,
    )
    block = experts(view, width_key="intermediate_size")
    layers = stack(((mixer, (block,)) for mixer in mixers), norms=2, norm_bias=True)
    head_bias = view.flag("lm_head_bias", default=False)
    return assemble(view, layers, hidden=hidden, tied=False, norm_bias=True, head_bias=head_bias)


def read_minimax_m2(view: ConfigView) -> ModelSpec:
    """MiniMax-M2: norms over all query and key heads, a correction bias for the choice of experts."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    view.refuse("shared_intermediate_size")
    if view.text("qk_norm_type", "per_layer") != "per_layer":
        raise view.unsupported("qk_norm_type")
    mixers = attentions(
        view,
        hidden,
        everywhere(view, length),
        qk_norm="full" if view.flag("use_qk_norm", default=True) else "none",
        kv_heads_stated=True,
        head_size_stated=True,
    )
    block = experts(
        view, width_key="intermediate_size", correction_bias=view.flag("use_routing_bias", default=True)
    )
    return assemble(view, one_each(mixers, (block,) * length), hidden=hidden, tied=False)


def read_olmoe(view: ConfigView) -> ModelSpec:
    """OLMoE: norms over all query and key heads."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(
        view, hidden, everywhere(view, length), qkv_bias=bias, output_bias=bias, qk_norm="full"
    )
    block = experts(view, width_key="intermediate_size")
    return assemble(view, one_each(mixers, (block,) * length), hidden=hidden, tied=False)


def read_granitemoe(view: ConfigView) -> ModelSpec:
    """Granite-MoE, with a shared expert of `shared_intermediate_size` where there is one."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(view, hidden, everywhere(view, length), qkv_bias=bias, output_bias=bias)
    shared = view.count("shared_intermediate_size", default=0)
    block = experts(view, width_key="intermediate_size", shared_width=shared)
    return assemble(view, one_each(mixers, (block,) * length), hidden=hidden, tied=False)


def read_dbrx(view: ConfigView) -> ModelSpec:
    """DBRX: heads and experts are described in `attn_config` and `ffn_config`; norms have no biases."""
    hidden = view.size("d_model", "hidden_size")
    heads = view.size("n_heads", "num_attention_heads")
    length = layer_count(view, "n_layers", "num_hidden_layers")
    attention, feed_forward = view.level("attn_config"), view.level("ffn_config")
    if hidden % heads:
        raise view.wrong("n_heads", f"a divisor of {hidden}")
    size = hidden // heads
    mixer = Attention(
        query_heads=heads,
        kv_heads=attention.size("kv_n_heads"),
        head_size=size,
        value_head_size=size,
    )
    block = MixtureOfExperts(
        experts=feed_forward.size("moe_num_experts"),
        experts_per_token=feed_forward.size("moe_top_k"),
        width=feed_forward.size("ffn_hidden_size"),
        gated=True,
    )
    return assemble(view, one_each((mixer,) * length, (block,) * length), hidden=hidden, tied=False)


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
        rotary = view.items("no_rope_layers", length, _zero_or_one)
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


def shared_width(view: ConfigView) -> int:
    """DeepSeek and GLM: `n_shared_experts` experts of `moe_intermediate_size`; null or missing is none."""
    shared = view.count("n_shared_experts", default=0)
    return shared * view.size("moe_intermediate_size")


def read_glm4_moe(view: ConfigView) -> ModelSpec:
    """GLM-4.5: biases on q, k and v only; the multi-token-prediction module copies embedding and head."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    mixers = attentions(
        view,
        hidden,
        everywhere(view, length),
        qkv_bias=view.flag("attention_bias", default=False),
        qk_norm="head" if view.flag("use_qk_norm", default=False) else "none",
        kv_heads_stated=True,
        head_size_stated=True,
    )

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=shared_width(view), correction_bias=True)

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    layers = one_each(mixers, blocks)
    modules = view.count("num_nextn_predict_layers", default=0)
    module = MultiTokenPrediction(layers=(layers[-1],), own_embedding=True, own_head=True)
    return assemble(view, layers, hidden=hidden, tied=False, mtp=(module,) * modules)


def read_mimo_v2(view: ConfigView) -> ModelSpec:
    """MiMo-V2: two geometries (`swa_*` for layers with a window), narrower values, sinks by flag.

    A layer with a window sees `sliding_window_size` earlier positions beside its own.
    """
    hidden, length = view.size("hidden_size"), layer_count(view)
    windowed = view.items("hybrid_layer_pattern", length, _zero_or_one)
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
        return experts(view, shared_width=width, correction_bias=True)

    blocks = sparse_and_dense(view, sparse, mixture, bias=bias)
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=True, head_bias=bias)


EXPERTS: Final = {
    "mixtral": read_mixtral,
    "qwen2_moe": read_qwen2_moe,
    "qwen3_moe": read_qwen3_moe,
    "gpt_oss": read_gpt_oss,
    "phimoe": read_phimoe,
    "minimax_m2": read_minimax_m2,
    "olmoe": read_olmoe,
    "granitemoe": read_granitemoe,
    "granitemoeshared": read_granitemoe,
    "dbrx": read_dbrx,
    "llama4": read_llama4,
    "llama4_text": read_llama4,
    "glm4_moe": read_glm4_moe,
    "mimo_v2_flash": read_mimo_v2,
    "ernie4_5_moe": read_ernie4_5_moe,
}
