"""Older decoders with names and habits of their own: GPT-2, GPT-NeoX, GPT-J, OPT, Falcon, MPT, BLOOM, ...

Biases and norms are those of transformers 5.23.0 (``modeling_<family>.py``); Qwen-1, ChatGLM and GLM-4 follow
the code in their repositories (https://huggingface.co/Qwen/Qwen-7B/blob/main/modeling_qwen.py,
https://huggingface.co/THUDM/glm-4-9b/blob/main/modeling_chatglm.py).
"""

from __future__ import annotations

from typing import Final

from rooflines.models.adapters.common import assemble, layer_count, split_heads, stack
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import Attention, FeedForward, Layer, ModelSpec

_OPT_OFFSET: Final = 2  # OPTLearnedPositionalEmbedding has two rows more than positions


def _uniform(
    length: int,
    attention: Attention,
    feed_forward: FeedForward,
    *,
    norms: int = 2,
    norm_bias: bool = True,
) -> tuple[Layer, ...]:
    return stack([(attention, (feed_forward,))] * length, norms=norms, norm_bias=norm_bias)


def _multi_head(
    view: ConfigView,
    hidden: int,
    heads: int,
    *,
    bias: bool,
    kv_heads: int = 0,
) -> Attention:
    size = split_heads(view, hidden, heads)
    return Attention(
        query_heads=heads,
        kv_heads=kv_heads or heads,
        head_size=size,
        value_head_size=size,
        qkv_bias=bias,
        output_bias=bias,
    )


def _gpt_sizes(view: ConfigView) -> tuple[int, int, int, int]:
    """h, H, L and f of the GPT-2 family; a null or missing `n_inner` means 4 h."""
    hidden = view.size("n_embd", "hidden_size")
    heads = view.size("n_head", "num_attention_heads")
    inner = view.optional_size("n_inner", "intermediate_size")
    view.disregard("n_ctx")
    return hidden, heads, layer_count(view, "n_layer", "num_hidden_layers"), inner or 4 * hidden


def read_gpt2(view: ConfigView) -> ModelSpec:
    """GPT-2: LayerNorms, biases everywhere, learned positions, tied."""
    hidden, heads, length, width = _gpt_sizes(view)
    view.refuse("add_cross_attention")
    layers = _uniform(
        length,
        _multi_head(view, hidden, heads, bias=True),
        FeedForward(width=width, gated=False, bias=True),
    )
    rows = view.size("n_positions", "max_position_embeddings")
    return assemble(view, layers, hidden=hidden, tied=True, norm_bias=True, position_rows=rows)


def read_gpt_bigcode(view: ConfigView) -> ModelSpec:
    """GPT-BigCode: GPT-2 with one key/value head where `multi_query` says so (the class's default)."""
    hidden, heads, length, width = _gpt_sizes(view)
    kv_heads = 1 if view.flag("multi_query", default=True) else heads
    if view.has("num_key_value_heads") and view.size("num_key_value_heads") != kv_heads:
        raise view.wrong("num_key_value_heads", f"{kv_heads}, as multi_query says")
    layers = _uniform(
        length,
        _multi_head(view, hidden, heads, bias=True, kv_heads=kv_heads),
        FeedForward(width=width, gated=False, bias=True),
    )
    rows = view.size("n_positions", "max_position_embeddings")
    return assemble(view, layers, hidden=hidden, tied=True, norm_bias=True, position_rows=rows)


def read_gptj(view: ConfigView) -> ModelSpec:
    """GPT-J and CodeGen: one norm a layer, biases only in the feed-forward and on the head."""
    hidden, heads, length, width = _gpt_sizes(view)
    layers = _uniform(
        length,
        _multi_head(view, hidden, heads, bias=False),
        FeedForward(width=width, gated=False, bias=True),
        norms=1,
    )
    return assemble(view, layers, hidden=hidden, tied=False, norm_bias=True, head_bias=True)


def read_gpt_neox(view: ConfigView) -> ModelSpec:
    """GPT-NeoX and Pythia: biases everywhere (`attention_bias` may switch those of attention off)."""
    hidden = view.size("hidden_size")
    bias = view.flag("attention_bias", default=True)
    layers = _uniform(
        layer_count(view),
        _multi_head(view, hidden, view.size("num_attention_heads"), bias=bias),
        FeedForward(width=view.size("intermediate_size"), gated=False, bias=True),
    )
    return assemble(view, layers, hidden=hidden, tied=False, norm_bias=True)


def read_opt(view: ConfigView) -> ModelSpec:
    """OPT: learned positions with two rows more; OPT-350m is post-norm and has a narrower embedding."""
    hidden = view.size("hidden_size")
    bias = view.flag("enable_bias", default=True)
    if not view.flag("layer_norm_elementwise_affine", default=True):
        raise view.unsupported("layer_norm_elementwise_affine", "norms without parameters")
    layers = _uniform(
        layer_count(view),
        _multi_head(view, hidden, view.size("num_attention_heads"), bias=bias),
        FeedForward(width=view.size("ffn_dim"), gated=False, bias=bias),
    )
    before = view.flag("do_layer_norm_before", default=True)
    removed = view.flag("_remove_final_layer_norm", default=False)
    return assemble(
        view,
        layers,
        hidden=hidden,
        tied=True,
        norm_bias=True,
        final_norm=before and not removed,
        position_rows=view.size("max_position_embeddings") + _OPT_OFFSET,
        embedding_width=view.optional_size("word_embed_proj_dim") or hidden,
    )


def read_falcon(view: ConfigView) -> ModelSpec:
    """Falcon: `multi_query` means one key/value head, but the new decoder counts them in `num_kv_heads`."""
    hidden = view.size("hidden_size")
    heads = view.size("num_attention_heads", "n_head")
    length = layer_count(view, "num_hidden_layers", "n_layer")
    new = view.flag("new_decoder_architecture", default=False)
    multi_query = view.flag("multi_query", default=True)
    kv_heads = view.optional_size("num_kv_heads", "n_head_kv")
    if not new:
        kv_heads = 1 if multi_query else heads
    norms = 2
    if new:
        norms = view.optional_size("num_ln_in_parallel_attn") or 2
    elif view.flag("parallel_attn", default=True):
        norms = 1
    bias = view.flag("bias", default=False)
    layers = _uniform(
        length,
        _multi_head(view, hidden, heads, bias=bias, kv_heads=kv_heads or heads),
        FeedForward(width=view.optional_size("ffn_hidden_size") or 4 * hidden, gated=False, bias=bias),
        norms=norms,
    )
    return assemble(view, layers, hidden=hidden, tied=True, norm_bias=True)


def read_mpt(view: ConfigView) -> ModelSpec:
    """MPT: no biases anywhere, ALiBi positions; options of the original code are refused."""
    hidden = view.size("d_model")
    heads = view.size("n_heads")
    if not view.flag("no_bias", default=True):
        raise view.unsupported("no_bias")
    if view.has("attn_config"):
        attention = view.level("attn_config")
        attention.refuse("qk_ln")
        if attention.text("attn_type", "multihead_attention") != "multihead_attention":
            raise attention.unsupported("attn_type")
        if not attention.flag("alibi", default=True) and view.flag("learned_pos_emb", default=True):
            raise attention.unsupported("alibi", "learned positions")
    layers = _uniform(
        layer_count(view, "n_layers"),
        _multi_head(view, hidden, heads, bias=False),
        FeedForward(width=view.size("expansion_ratio") * hidden, gated=False),
        norm_bias=False,
    )
    return assemble(view, layers, hidden=hidden, tied=True)


def read_bloom(view: ConfigView) -> ModelSpec:
    """BLOOM: a norm after the embedding, biases everywhere, ALiBi positions, f = 4 h."""
    hidden = view.size("hidden_size", "n_embed")
    heads = view.size("n_head", "num_attention_heads")
    layers = _uniform(
        layer_count(view, "n_layer", "num_hidden_layers"),
        _multi_head(view, hidden, heads, bias=True),
        FeedForward(width=4 * hidden, gated=False, bias=True),
    )
    return assemble(view, layers, hidden=hidden, tied=True, norm_bias=True, embedding_norm=True)


def read_qwen(view: ConfigView) -> ModelSpec:
    """Qwen-1: `intermediate_size` is gate and up together, and q, k and v have biases despite `no_bias`."""
    hidden = view.size("hidden_size")
    heads = view.size("num_attention_heads")
    both = view.size("intermediate_size")
    if both % 2:
        raise view.wrong("intermediate_size", "even: it is the width of gate and up together")
    bias = not view.flag("no_bias", default=True)
    size = view.size("kv_channels")
    attention = Attention(
        query_heads=heads,
        kv_heads=heads,
        head_size=size,
        value_head_size=size,
        qkv_bias=True,
        output_bias=bias,
    )
    layers = _uniform(
        layer_count(view),
        attention,
        FeedForward(width=both // 2, gated=True, bias=bias),
        norm_bias=False,
    )
    return assemble(view, layers, hidden=hidden, tied=False)


def read_chatglm(view: ConfigView) -> ModelSpec:
    """ChatGLM-2, -3 and GLM-4-9B: `multi_query_group_num` key/value heads, gated, padded vocabulary."""
    hidden = view.size("hidden_size")
    heads = view.size("num_attention_heads")
    grouped = view.flag("multi_query_attention", default=False)
    bias = view.flag("add_bias_linear", default=False)
    if not view.flag("rmsnorm", default=True):
        raise view.unsupported("rmsnorm")
    size = view.size("kv_channels")
    attention = Attention(
        query_heads=heads,
        kv_heads=view.size("multi_query_group_num") if grouped else heads,
        head_size=size,
        value_head_size=size,
        qkv_bias=bias or view.flag("add_qkv_bias", default=False),
        output_bias=bias,
    )
    layers = _uniform(
        layer_count(view, "num_layers"),
        attention,
        FeedForward(width=view.size("ffn_hidden_size"), gated=True, bias=bias),
        norm_bias=False,
    )
    rows = view.size("padded_vocab_size")
    view.disregard("vocab_size")
    return assemble(
        view,
        layers,
        hidden=hidden,
        tied=False,
        vocabulary=rows,
        final_norm=view.flag("post_layer_norm", default=True),
    )


def read_phi3small(view: ConfigView) -> ModelSpec:
    """Phi-3-small is refused: in its block-sparse layers each head reads other positions."""
    raise view.unsupported("blocksparse_block_size", "attention over blocks that differ by head")


def read_phi_msft(view: ConfigView) -> ModelSpec:
    """Phi-1.5 and Phi-2 as first uploaded: Phi's block under GPT-2's names.

    https://huggingface.co/microsoft/phi-2/blob/d3186761bf5c4409f7679359284066c25ab668ee/modeling_phi.py
    """
    hidden, heads, length, width = _gpt_sizes(view)
    if view.has("n_head_kv") and view.size("n_head_kv") != heads:
        raise view.unsupported("n_head_kv")
    layers = _uniform(
        length,
        _multi_head(view, hidden, heads, bias=True),
        FeedForward(width=width, gated=False, bias=True),
        norms=1,
    )
    return assemble(view, layers, hidden=hidden, tied=False, norm_bias=True, head_bias=True)


GPT: Final = {
    "gpt2": read_gpt2,
    "gpt_bigcode": read_gpt_bigcode,
    "gptj": read_gptj,
    "codegen": read_gptj,
    "gpt_neox": read_gpt_neox,
    "opt": read_opt,
    "falcon": read_falcon,
    "RefinedWebModel": read_falcon,
    "RefinedWeb": read_falcon,
    "mpt": read_mpt,
    "bloom": read_bloom,
    "qwen": read_qwen,
    "chatglm": read_chatglm,
    "phi-msft": read_phi_msft,
    "phi3small": read_phi3small,
}
