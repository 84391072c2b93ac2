"""Decoders with experts over ordinary attention: Mixtral, Qwen-MoE, gpt-oss, GLM-4.5, ...

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
    mtp_count,
    one_each,
    reaches_of_kinds,
    same_window,
    typed_reaches,
)
from rooflines.models.adapters.dense import everywhere, mistral_window, switched_window
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import (
    Attention,
    FeedForward,
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
        return view.items("moe_layer_freq", length, zero_or_one)
    dense = view.count("first_k_dense_replace")
    step = view.optional_size("moe_layer_freq") or 1
    return tuple(index >= dense and index % step == 0 for index in range(length))


def zero_or_one(entry: object) -> bool:
    """An entry of a list of 0 (dense) and 1 (experts).

    Raises:
        ValueError: it is neither.
    """
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
    layers = one_each(mixers, (block,) * length, norm_bias=True)
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


def shared_width(view: ConfigView) -> int:
    """DeepSeek and GLM: `n_shared_experts` experts of `moe_intermediate_size`; null or missing is none."""
    shared = view.count("n_shared_experts", default=0)
    return shared * view.size("moe_intermediate_size")


def read_glm4v_moe(view: ConfigView) -> ModelSpec:
    """GLM-4.5V: as GLM-4.5, but its class has no norms of queries and keys whatever the flag says."""
    view.disregard("use_qk_norm")
    return _glm4_moe(view, qk_norm=False)


def read_glm4_moe(view: ConfigView) -> ModelSpec:
    """GLM-4.5: biases on q, k and v only; the multi-token-prediction module copies embedding and head."""
    return _glm4_moe(view, qk_norm=view.flag("use_qk_norm", default=False))


def _glm4_moe(view: ConfigView, *, qk_norm: bool) -> ModelSpec:
    hidden, length = view.size("hidden_size"), layer_count(view)
    mixers = attentions(
        view,
        hidden,
        everywhere(view, length),
        qkv_bias=view.flag("attention_bias", default=False),
        qk_norm="head" if qk_norm else "none",
        kv_heads_stated=True,
        head_size_stated=True,
    )

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=shared_width(view), correction_bias=True)

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    layers = one_each(mixers, blocks)
    modules = mtp_count(view)
    module = MultiTokenPrediction(layers=(layers[-1],), own_embedding=True, own_head=True)
    return assemble(view, layers, hidden=hidden, tied=False, mtp=(module,) * modules)


def read_dots1(view: ConfigView) -> ModelSpec:
    """dots.llm1: as GLM-4.5 with norms of queries and keys always, and biases on the output too."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    view.disregard("max_window_layers")
    mixers = attentions(
        view,
        hidden,
        same_window(view, length),
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="head",
        kv_heads_stated=True,
    )

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=shared_width(view), correction_bias=True)

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_deepseek(view: ConfigView) -> ModelSpec:
    """DeepSeek-MoE (https://huggingface.co/deepseek-ai/deepseek-moe-16b-base): Llama's attention."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    bias = view.flag("attention_bias", default=False)
    mixers = attentions(view, hidden, everywhere(view, length), qkv_bias=bias, output_bias=bias)

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=shared_width(view))

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    return assemble(view, one_each(mixers, blocks), hidden=hidden, tied=False)


def read_bailing_moe(view: ConfigView) -> ModelSpec:
    """Ling 2.0 (``modeling_bailing_moe_v2.py`` beside its checkpoints): dense layers first, shared experts.

    Ling 1 has the same `model_type`, but neither norms of queries and keys nor correction biases; its configs
    do not mention `use_qk_norm` and are refused.
    """
    hidden, length = view.size("hidden_size"), layer_count(view)
    if view.missing("use_qk_norm"):
        raise view.lacking("use_qk_norm")
    mixers = attentions(
        view,
        hidden,
        switched_window(view, length),
        qkv_bias=view.flag("use_qkv_bias", default=False),
        output_bias=view.flag("use_bias", default=False),
        qk_norm="head" if view.flag("use_qk_norm", default=False) else "none",
        kv_heads_stated=True,
    )

    def mixture() -> MixtureOfExperts:
        shared = view.count("num_shared_experts", default=0) * view.size("moe_intermediate_size")
        return experts(view, shared_width=shared, correction_bias=True)

    layers = one_each(mixers, sparse_and_dense(view, first_dense(view, length), mixture))
    module = MultiTokenPrediction(layers=(layers[-1],))
    return assemble(view, layers, hidden=hidden, tied=False, mtp=(module,) * mtp_count(view))


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
    "glm4_moe": read_glm4_moe,
    "glm4v_moe_text": read_glm4v_moe,
    "dots1": read_dots1,
    "deepseek": read_deepseek,
    "bailing_moe": read_bailing_moe,
    "bailing_moe_v2": read_bailing_moe,
    "qwen3_vl_moe": read_qwen3_moe,
    "qwen3_vl_moe_text": read_qwen3_moe,
    "qwen3_omni_moe_text": read_qwen3_moe,
}
