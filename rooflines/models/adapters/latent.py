"""Decoders with multi-head latent attention: DeepSeek V2 to V3.2, Kimi-K2, GLM-5, MiniCPM3.

With `kv_lora_rank` present, `head_dim` and `num_key_value_heads` mean nothing for weights and cache (GLM-5
states a `head_dim` of 64 and 192 in two files of one architecture). Facts are those of transformers 5.23.0.
"""

from __future__ import annotations

from typing import Final

from rooflines.models.adapters.common import assemble, layer_count, mtp_count, one_each, stack
from rooflines.models.adapters.experts import experts, first_dense, shared_width, sparse_and_dense
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import (
    FeedForward,
    Indexer,
    LatentAttention,
    MixtureOfExperts,
    ModelSpec,
    MultiTokenPrediction,
)


def latent_attention(
    view: ConfigView, indexer: Indexer | None = None, *, output_gate: bool = False
) -> LatentAttention:
    """Latent attention from DeepSeek's keys.

    Queries are compressed where `q_lora_rank` has a value. Some files drop it where it is null; it is then
    taken as null and the spec says so, since no class default tells about this model.
    """
    if view.missing("q_lora_rank"):
        view.assumed.append("queries are not compressed: the config does not mention q_lora_rank")
    view.disregard("head_dim", "num_key_value_heads", "qk_head_dim")
    heads = view.size("num_attention_heads")
    nope, rope = view.size("qk_nope_head_dim"), view.size("qk_rope_head_dim")
    return LatentAttention(
        query_heads=heads,
        query_rank=view.optional_size("q_lora_rank"),
        kv_rank=view.size("kv_lora_rank"),
        nope_head_size=nope,
        rope_head_size=rope,
        value_head_size=view.size("v_head_dim"),
        bias=view.flag("attention_bias", default=False),
        output_gate=output_gate,
        indexer=indexer,
    )


def _indexer(view: ConfigView, *, own: bool) -> Indexer:
    return Indexer(
        heads=view.size("index_n_heads"),
        head_size=view.size("index_head_dim"),
        top_k=view.size("index_topk"),
        query_width=view.size("q_lora_rank"),
        own=own,
    )


def _deepseek(
    view: ConfigView, mixers: list[LatentAttention], *, correction_bias: bool, mtp_copies: bool
) -> ModelSpec:
    hidden, length = view.size("hidden_size"), len(mixers)

    def mixture() -> MixtureOfExperts:
        return experts(view, shared_width=shared_width(view), correction_bias=correction_bias)

    blocks = sparse_and_dense(view, first_dense(view, length), mixture)
    layers = one_each(mixers, blocks)
    modules = mtp_count(view)
    own_indexer = mixers[0].indexer
    last = layers[-1].model_copy(update={"mixer": mixers[-1].model_copy(update={"indexer": own_indexer})})
    module = MultiTokenPrediction(layers=(last,), own_embedding=mtp_copies, own_head=mtp_copies)
    return assemble(view, layers, hidden=hidden, tied=False, mtp=(module,) * modules)


def read_deepseek_v2(view: ConfigView) -> ModelSpec:
    """DeepSeek-V2: softmax routing, no correction bias."""
    mixers = [latent_attention(view)] * layer_count(view)
    return _deepseek(view, mixers, correction_bias=False, mtp_copies=False)


def read_deepseek_v3(view: ConfigView) -> ModelSpec:
    """DeepSeek-V3, R1 and Kimi-K2: the multi-token-prediction module copies embedding and head."""
    mixers = [latent_attention(view)] * layer_count(view)
    return _deepseek(view, mixers, correction_bias=True, mtp_copies=True)


def read_deepseek_v32(view: ConfigView) -> ModelSpec:
    """DeepSeek-V3.2: an indexer chooses the positions that attention reads."""
    length = layer_count(view)
    _all_indexed(view, length)
    mixers = [latent_attention(view, _indexer(view, own=True))] * length
    return _deepseek(view, mixers, correction_bias=True, mtp_copies=True)


def _all_indexed(view: ConfigView, length: int) -> None:
    """Read the list of layers that transformers 5 writes: all are alike."""
    if view.has("layer_types"):
        view.choices("layer_types", length, {"indexed_attention": True})


def read_glm_moe_dsa(view: ConfigView) -> ModelSpec:
    """GLM-5: as DeepSeek-V3.2; layers of `indexer_types` ``shared`` reuse an earlier layer's choice."""
    length = layer_count(view)
    _all_indexed(view, length)
    owned: tuple[bool, ...] = (True,) * length
    if view.has("indexer_types"):
        owned = view.choices("indexer_types", length, {"full": True, "shared": False})
    view.disregard("index_topk_freq", "index_skip_topk_offset", "index_topk_pattern")
    made = {own: latent_attention(view, _indexer(view, own=own)) for own in set(owned)}
    return _deepseek(view, [made[own] for own in owned], correction_bias=True, mtp_copies=False)


def read_minicpm3(view: ConfigView) -> ModelSpec:
    """MiniCPM3: latent attention over dense feed-forwards, tied; values are h / H wide unless stated."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    heads = view.size("num_attention_heads")
    if not view.has("v_head_dim") and hidden % heads:
        raise view.lacking("v_head_dim")
    mixer = LatentAttention(
        query_heads=heads,
        query_rank=view.size("q_lora_rank"),
        kv_rank=view.size("kv_lora_rank"),
        nope_head_size=view.size("qk_nope_head_dim"),
        rope_head_size=view.size("qk_rope_head_dim"),
        value_head_size=view.optional_size("v_head_dim") or hidden // heads,
        bias=view.flag("attention_bias", default=False),
    )
    view.disregard("num_key_value_heads", "head_dim")
    block = FeedForward(width=view.size("intermediate_size"), gated=True)
    return assemble(view, stack([(mixer, (block,))] * length, norms=2), hidden=hidden, tied=True)


def read_deepseek_v4(view: ConfigView) -> ModelSpec:
    """DeepSeek-V4 is refused: compressed attention and hyper-connections are not modelled."""
    raise view.unsupported("compress_ratios", "attention over compressed positions, and hc_mult")


LATENT: Final = {
    "deepseek_v2": read_deepseek_v2,
    "deepseek_v3": read_deepseek_v3,
    "deepseek_v32": read_deepseek_v32,
    "deepseek_v4": read_deepseek_v4,
    "kimi_k2": read_deepseek_v3,
    "kimi_k25": read_deepseek_v3,
    "glm4_moe_lite": read_deepseek_v3,
    "glm_moe_dsa": read_glm_moe_dsa,
    "minicpm3": read_minicpm3,
}
