"""Decoders with recurrent layers: Qwen3-Next and 3.5, Kimi Linear, Jamba, Mamba, Nemotron-H.

Facts that no config states are those of transformers 5.23.0 (``models/<family>/modeling_<family>.py``).
"""

from __future__ import annotations

import math
from typing import Final

from rooflines.dtypes import number_format
from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.adapters.common import (
    Reach,
    assemble,
    attentions,
    layer_count,
    mtp_count,
    one_each,
    stack,
)
from rooflines.models.adapters.experts import experts, first_dense, sparse_and_dense, stepped
from rooflines.models.adapters.latent import latent_attention
from rooflines.models.config_view import MOST_LAYERS, ConfigView
from rooflines.models.spec import (
    Attention,
    Block,
    FeedForward,
    GatedDeltaNet,
    KimiDeltaAttention,
    Layer,
    Mamba,
    Mamba2,
    Mixer,
    MixtureOfExperts,
    ModelSpec,
    MultiTokenPrediction,
)

_LINEAR_TYPES: Final = {"linear_attention": True, "full_attention": False}
_QWEN_INTERVAL: Final = 4  # every 4th layer attends unless layer_types or full_attention_interval says else
_STATE_KEYS: Final = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")


def _state_dtype(view: ConfigView, default: str | None) -> str | None:
    for key in _STATE_KEYS:
        if view.has(key):
            try:
                return number_format(view.text(key)).name
            except UnknownNameError as mistake:
                raise ConfigError(f"{view.name}: {view.where(key)}: {mistake}") from None
    return default


def _interval_linear(view: ConfigView, length: int) -> tuple[bool, ...]:
    if view.has("layer_types"):
        view.disregard("full_attention_interval")
        return view.choices("layer_types", length, _LINEAR_TYPES)
    period = view.optional_size("full_attention_interval") or _QWEN_INTERVAL
    return tuple((index + 1) % period != 0 for index in range(length))


def _delta_net(view: ConfigView) -> GatedDeltaNet:
    return GatedDeltaNet(
        key_heads=view.size("linear_num_key_heads"),
        value_heads=view.size("linear_num_value_heads"),
        key_head_size=view.size("linear_key_head_dim"),
        value_head_size=view.size("linear_value_head_dim"),
        convolution=view.size("linear_conv_kernel_dim"),
        state_dtype=_state_dtype(view, "fp32") or "fp32",
    )


def _gated_attention(view: ConfigView, hidden: int) -> Attention:
    bias = view.flag("attention_bias", default=False)
    found = attentions(
        view,
        hidden,
        (Reach(),),
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="head",
        kv_heads_stated=True,
        head_size_stated=True,
    )[0]
    if found is None:
        raise view.wrong("num_key_value_heads", "a number of heads")
    gated = view.flag("attn_output_gate", default=True)
    return found.model_copy(update={"gate": "full" if gated else "none"})


def _qwen_hybrid(view: ConfigView, *, sparse: bool) -> ModelSpec:
    hidden, length = view.size("hidden_size"), layer_count(view)
    linear = _interval_linear(view, length)
    full = _gated_attention(view, hidden)
    recurrent = _delta_net(view)
    mixers: list[Mixer] = [recurrent if is_linear else full for is_linear in linear]

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=view.size("shared_expert_intermediate_size"), shared_gate=True)

    chosen = stepped(view, length) if sparse else (False,) * length
    blocks = sparse_and_dense(view, chosen, mixture)
    layers = one_each(mixers, blocks)
    modules = mtp_count(view, "mtp_num_hidden_layers", "num_nextn_predict_layers")
    last = Layer(mixer=full, feed_forwards=(blocks[-1],), norms=2)
    copies = view.flag("mtp_use_dedicated_embeddings", default=False)
    module = MultiTokenPrediction(layers=(last,), own_embedding=copies)
    return assemble(view, layers, hidden=hidden, tied=False, mtp=(module,) * modules)


def read_qwen3_next(view: ConfigView) -> ModelSpec:
    """Qwen3-Next and Qwen3.5-MoE: gated delta nets, gated attention in every fourth layer, experts."""
    return _qwen_hybrid(view, sparse=True)


def read_qwen3_5(view: ConfigView) -> ModelSpec:
    """Qwen3.5 dense: as Qwen3-Next without experts."""
    return _qwen_hybrid(view, sparse=False)


def _one_based(view: ConfigView, key: str) -> list[int]:
    value = view.value(key)
    if not isinstance(value, list | tuple) or any(type(index) is not int or index < 1 for index in value):
        raise view.wrong(key, "a list of layer numbers, counted from 1")
    return list(value)


def read_kimi_linear(view: ConfigView) -> ModelSpec:
    """Kimi Linear: Kimi delta attention, latent attention in every fourth layer, experts.

    Kimi-K3's residuals over blocks of layers are not modelled.
    """
    view.refuse("attn_res_block_size", "attention over the residuals of earlier layers")
    hidden, length = view.size("hidden_size"), layer_count(view)
    linear_view = view.level("linear_attn_config")
    full, delta = _one_based(linear_view, "full_attn_layers"), _one_based(linear_view, "kda_layers")
    if sorted(full + delta) != list(range(1, length + 1)):
        raise ConfigError(
            f"{view.name}: full_attn_layers and kda_layers must together name every layer from 1 to {length} "
            "once"
        )
    recurrent = KimiDeltaAttention(
        heads=linear_view.size("num_heads"),
        head_size=linear_view.size("head_dim"),
        convolution=linear_view.size("short_conv_kernel_size"),
        full_rank_gate=linear_view.flag("use_full_rank_gate", default=False),
    )
    attention = latent_attention(view, output_gate=view.flag("mla_use_output_gate", default=False))
    shared = view.count("num_shared_experts", "n_shared_experts", default=0)

    def mixture() -> MixtureOfExperts:
        return experts(
            view,
            shared_width=shared * view.size("moe_intermediate_size"),
            correction_bias=True,
            latent=view.optional_size("routed_expert_hidden_size"),
            latent_norm=view.flag("latent_moe_use_norm", default=False),
        )

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    mixers: list[Mixer] = [attention if index + 1 in full else recurrent for index in range(length)]
    layers = one_each(mixers, blocks)
    return assemble(view, layers, hidden=hidden, tied=False)


def _time_step_rank(view: ConfigView, key: str, hidden: int) -> int:
    """A number, or ``auto`` for the ceiling of h / 16 (Mamba, section 3.6)."""
    return math.ceil(hidden / 16) if view.value(key) == "auto" else view.size(key)


def read_mamba(view: ConfigView) -> ModelSpec:
    """Mamba: one selective state space block a layer, no feed-forward."""
    hidden = view.size("hidden_size", "d_model")
    inner = view.optional_size("intermediate_size", "d_inner") or view.size("expand") * hidden
    view.disregard("expand")
    mixer = Mamba(
        inner=inner,
        state_size=view.size("state_size"),
        time_rank=_time_step_rank(view, "time_step_rank", hidden),
        convolution=view.size("conv_kernel"),
        convolution_bias=view.flag("use_conv_bias", default=True),
        bias=view.flag("use_bias", default=False),
        state_dtype=_state_dtype(view, None),
    )
    layers = stack([(mixer, ())] * layer_count(view, "num_hidden_layers", "n_layer"), norms=2)
    return assemble(view, layers, hidden=hidden, tied=True)


def read_mamba2(view: ConfigView) -> ModelSpec:
    """Mamba-2: one state space duality block a layer, no feed-forward."""
    hidden = view.size("hidden_size")
    view.disregard("time_step_rank")
    heads, size = view.size("num_heads"), view.size("head_dim")
    if view.size("expand") * hidden != heads * size:
        raise view.wrong(
            "num_heads", f"expand x hidden_size / head_dim = {view.size('expand') * hidden / size:g}"
        )
    mixer = Mamba2(
        heads=heads,
        head_size=size,
        groups=view.size("n_groups"),
        state_size=view.size("state_size"),
        convolution=view.size("conv_kernel"),
        convolution_bias=view.flag("use_conv_bias", default=True),
        bias=view.flag("use_bias", default=False),
        state_dtype=_state_dtype(view, None),
    )
    return assemble(view, stack([(mixer, ())] * layer_count(view), norms=2), hidden=hidden, tied=False)


def read_jamba(view: ConfigView) -> ModelSpec:
    """Jamba: Mamba blocks with inner norms, attention and experts by period and offset."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    attention = attentions(view, hidden, (Reach(),), kv_heads_stated=True)[0]
    if attention is None:
        raise view.wrong("num_key_value_heads", "a number of heads")
    recurrent = Mamba(
        inner=view.size("mamba_expand") * hidden,
        state_size=view.size("mamba_d_state"),
        time_rank=_time_step_rank(view, "mamba_dt_rank", hidden),
        convolution=view.size("mamba_d_conv"),
        convolution_bias=view.flag("mamba_conv_bias", default=True),
        bias=view.flag("mamba_proj_bias", default=False),
        inner_norms=True,
        state_dtype=_state_dtype(view, None),
    )
    attending = _periodic(view, "attn_layer_period", "attn_layer_offset", length)
    sparse = _periodic(view, "expert_layer_period", "expert_layer_offset", length)
    if view.size("num_experts") == 1:
        sparse = (False,) * length
        view.disregard("num_experts_per_tok")
    blocks = sparse_and_dense(view, sparse, lambda: experts(view, width_key="intermediate_size"))
    mixers: list[Mixer] = [attention if attends else recurrent for attends in attending]
    layers = one_each(mixers, blocks)
    return assemble(view, layers, hidden=hidden, tied=False)


def _periodic(view: ConfigView, period_key: str, offset_key: str, length: int) -> tuple[bool, ...]:
    period, offset = view.size(period_key), view.count(offset_key)
    if offset >= period:
        raise view.wrong(offset_key, f"less than {period_key} ({period})")
    return tuple(index % period == offset for index in range(length))


def _granite_mamba(view: ConfigView, hidden: int) -> Mamba2:
    heads = view.size("mamba_n_heads")
    inner = view.size("mamba_expand") * hidden
    if inner % heads:
        raise view.wrong("mamba_n_heads", f"a divisor of mamba_expand x hidden_size ({inner})")
    stated = view.value("mamba_d_head")
    if stated not in (None, "auto") and view.size("mamba_d_head") * heads != inner:
        raise view.wrong("mamba_d_head", f"{inner // heads}, the expanded width over mamba_n_heads")
    return Mamba2(
        heads=heads,
        head_size=inner // heads,
        groups=view.size("mamba_n_groups"),
        state_size=view.size("mamba_d_state"),
        convolution=view.size("mamba_d_conv"),
        convolution_bias=view.flag("mamba_conv_bias", default=True),
        bias=view.flag("mamba_proj_bias", default=False),
        state_dtype=_state_dtype(view, None),
    )


def read_granite_hybrid(view: ConfigView) -> ModelSpec:
    """Granite-4: Mamba-2 or attention, then a dense feed-forward beside experts (none where there are 0)."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    kinds = {**_LINEAR_TYPES, "mamba": True, "attention": False}
    linear = view.choices("layer_types", length, kinds)
    bias = view.flag("attention_bias", default=False)
    attention = attentions(view, hidden, (Reach(),), qkv_bias=bias, output_bias=bias)[0]
    if attention is None:
        raise view.wrong("num_key_value_heads", "a number of heads")
    recurrent = _granite_mamba(view, hidden) if any(linear) else None
    blocks: tuple[Block, ...]
    if view.count("num_local_experts"):
        mixture = experts(
            view, width_key="intermediate_size", shared_width=view.size("shared_intermediate_size")
        )
        blocks = (mixture,)
    else:
        # Without experts `intermediate_size` is unused: the shared feed-forward is the only one.
        view.disregard("intermediate_size", "num_experts_per_tok")
        blocks = (FeedForward(width=view.size("shared_intermediate_size"), gated=True),)
    mixers: list[Mixer | None] = [recurrent if is_linear else attention for is_linear in linear]
    layers = stack(((mixer, blocks) for mixer in mixers), norms=2)
    return assemble(view, layers, hidden=hidden, tied=False)


_NEMOTRON_LETTERS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NEMOTRON_WORDS: Final = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}


def _pattern(view: ConfigView, key: str) -> list[str]:
    text = view.text(key)
    unknown = sorted(set(text) - set(_NEMOTRON_LETTERS))
    if unknown:
        raise view.unsupported(key, f"letter {unknown[0]!r} (known: {' '.join(_NEMOTRON_LETTERS)})")
    if not 1 <= len(text) <= MOST_LAYERS:
        raise view.wrong(key, f"1 to {MOST_LAYERS} letters")
    return [_NEMOTRON_LETTERS[letter] for letter in text]


def _nemotron_kinds(view: ConfigView) -> list[str]:
    """Kind of each block: the pattern's letters, or a list of words; its length is the number of blocks."""
    if not view.has("hybrid_override_pattern"):
        for key in ("layers_block_type", "layer_types"):
            if view.has(key):
                length = len(view.value(key)) if isinstance(view.value(key), list | tuple) else 0
                return list(view.choices(key, length, _NEMOTRON_WORDS))
        raise view.lacking("hybrid_override_pattern", "layers_block_type")
    kinds = _pattern(view, "hybrid_override_pattern")
    stated = view.optional_size("num_hidden_layers", most=MOST_LAYERS)
    if stated is not None and stated != len(kinds):
        raise ConfigError(
            f"{view.name}: the hybrid_override_pattern has {len(kinds)} letters, "
            f"but num_hidden_layers is {stated}"
        )
    return kinds


def _nemotron_moe(view: ConfigView) -> MixtureOfExperts:
    if view.flag("mlp_bias", default=False):
        raise view.unsupported("mlp_bias", "biases of experts")
    shared = view.count("n_shared_experts", default=0)
    return experts(
        view,
        gated=False,
        shared_width=view.size("moe_shared_expert_intermediate_size") if shared else 0,
        correction_bias=True,
        latent=view.optional_size("moe_latent_size"),
    )


def _nemotron_block(view: ConfigView, kind: str, hidden: int) -> tuple[Mixer | None, tuple[Block, ...]]:
    if kind == "moe":
        return None, (_nemotron_moe(view),)
    if kind == "mlp":
        bias = view.flag("mlp_bias", default=False)
        return None, (FeedForward(width=view.size("intermediate_size"), gated=False, bias=bias),)
    if kind == "attention":
        found = attentions(
            view,
            hidden,
            (Reach(view.optional_size("sliding_window")),),
            kv_heads_stated=True,
            head_size_stated=True,
        )
        return found[0], ()
    return (
        Mamba2(
            heads=view.size("mamba_num_heads"),
            head_size=view.size("mamba_head_dim"),
            groups=view.size("n_groups", "mamba_n_groups"),
            state_size=view.size("ssm_state_size"),
            convolution=view.size("conv_kernel", "mamba_d_conv"),
            convolution_bias=view.flag("use_conv_bias", default=True),
            bias=view.flag("use_bias", default=False),
            state_dtype=_state_dtype(view, "fp32"),
        ),
        (),
    )


def read_nemotron_h(view: ConfigView) -> ModelSpec:
    """Nemotron-H and Nemotron-3: each block is a mixer or a feed-forward, after one norm."""
    hidden = view.size("hidden_size")
    kinds = _nemotron_kinds(view)
    made = {kind: _nemotron_block(view, kind, hidden) for kind in set(kinds)}
    # Widths of kinds that the pattern does not use are stated all the same, and mean nothing.
    view.disregard("num_hidden_layers", "intermediate_size", "moe_intermediate_size", "n_shared_experts")
    view.disregard("n_routed_experts", "num_experts_per_tok", "mamba_num_heads", "ssm_state_size", "head_dim")
    view.disregard("num_key_value_heads", "moe_latent_size", "sliding_window")
    layers = stack((made[kind] for kind in kinds), norms=2)
    mtp: tuple[MultiTokenPrediction, ...] = ()
    if mtp_count(view) and view.has("mtp_hybrid_override_pattern"):
        parts = [
            _nemotron_block(view, kind, hidden) for kind in _pattern(view, "mtp_hybrid_override_pattern")
        ]
        mtp = (MultiTokenPrediction(layers=stack(parts, norms=2)),)
    return assemble(view, layers, hidden=hidden, tied=False, mtp=mtp)


HYBRID: Final = {
    "qwen3_next": read_qwen3_next,
    "qwen3_5": read_qwen3_5,
    "qwen3_5_text": read_qwen3_5,
    "qwen3_5_moe": read_qwen3_next,
    "qwen3_5_moe_text": read_qwen3_next,
    "kimi_linear": read_kimi_linear,
    "mamba": read_mamba,
    "falcon_mamba": read_mamba,
    "mamba2": read_mamba2,
    "jamba": read_jamba,
    "granitemoehybrid": read_granite_hybrid,
    "nemotron_h": read_nemotron_h,
}
