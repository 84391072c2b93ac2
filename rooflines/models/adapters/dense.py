"""Dense decoders that differ only in facts which their config does not state.

The table holds, for each family, the biases, norms, gates and tying of its class in transformers 5.23.0
(``src/transformers/models/<family>/modeling_<family>.py`` and ``configuration_<family>.py``); parameter
counts of every entry equal that class's on the meta device (tests/oracles/test_models_transformers.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rooflines.models.adapters.common import (
    Reach,
    assemble,
    attentions,
    every_nth_full,
    layer_count,
    mtp_count,
    one_each,
    same_window,
    typed_reaches,
)
from rooflines.models.attention import Norms
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import FeedForward, Layer, ModelSpec, MultiTokenPrediction


@dataclass(frozen=True, slots=True)
class Flag:
    """A config key that decides, and what its absence means."""

    key: str
    absent: bool = False

    def read(self, view: ConfigView) -> bool:
        """What the config says."""
        return view.flag(self.key, default=self.absent)


Fact = bool | Flag
Reaches = Callable[[ConfigView, int], tuple[Reach, ...]]


def everywhere(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """Full attention; a window would change the cache and is refused."""
    if view.has("layer_types"):
        return typed_reaches(view, length)
    view.refuse("sliding_window", "this family has none")
    return (Reach(),) * length


def switched_window(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """Qwen: a window only with `use_sliding_window`, and only from layer `max_window_layers` on."""
    view.disregard("max_window_layers", "sliding_window")
    on = view.flag("use_sliding_window", default=False) and view.has("sliding_window")
    if view.has("layer_types"):
        return typed_reaches(view, length)
    if not on:
        return (Reach(),) * length
    window = view.size("sliding_window")
    first = view.count("max_window_layers")
    return tuple(Reach(window) if index >= first else Reach() for index in range(length))


def mistral_window(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """A window in every layer unless `use_sliding_window` is false."""
    if not view.flag("use_sliding_window", default=True):
        view.disregard("sliding_window", "max_window_layers")
        return (Reach(),) * length
    return same_window(view, length)


def fourth_full(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """Cohere-2: a window in three of four layers."""
    return every_nth_full(view, length, "sliding_window_pattern", 4)


def stated_types(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """EXAONE-4, OLMo-3: `layer_types`, else full attention where no window is stated."""
    if view.has("layer_types"):
        view.disregard("sliding_window_pattern")
        return typed_reaches(view, length)
    if view.has("sliding_window"):
        raise view.lacking("layer_types")
    return (Reach(),) * length


@dataclass(frozen=True, slots=True)
class Facts:
    """What the configs of a dense family leave unsaid.

    Attributes:
        tied: `tie_word_embeddings` where it is missing.
        gated: three feed-forward matrices rather than two.
        norms: norms of width h in a layer.
        norm_bias: they are LayerNorms with biases.
        qkv_bias: biases on q, k and v.
        output_bias: bias on the output projection.
        mlp_bias: biases in the feed-forward.
        head_bias: bias on the head.
        qk_norm: norms of queries and keys (see `Attention`).
        qk_norm_flag: what switches them on, where something does.
        qk_norm_bias: they have biases.
        reaches: where windows are.
        final_norm: a norm with parameters before the head.
        parallel_norms: norms of a layer where `parallel_flag` is on.
        parallel_flag: flag of parallel attention and feed-forward.
        activation_parameters: learned numbers of the activation, in each layer.
        mtp_key: key with the number of multi-token-prediction layers.
        kv_heads_stated: a missing `num_key_value_heads` is refused: the class's default is no rule.
        head_size_stated: a missing `head_dim` is refused likewise.
    """

    tied: bool
    gated: bool = True
    norms: int = 2
    norm_bias: bool = False
    qkv_bias: Fact = False
    output_bias: Fact = False
    mlp_bias: Fact = False
    head_bias: Fact = False
    qk_norm: Norms = "none"
    qk_norm_flag: Flag | None = None
    qk_norm_bias: bool = False
    reaches: Reaches = everywhere
    final_norm: bool = True
    parallel_norms: int = 1
    parallel_flag: str | None = None
    activation_parameters: int = 0
    mtp_key: str | None = None
    kv_heads_stated: bool = False
    head_size_stated: bool = False


_ATTENTION_BIAS: Final = Flag("attention_bias")
_MLP_BIAS: Final = Flag("mlp_bias")
_USE_BIAS: Final = Flag("use_bias")
_USE_QKV_BIAS: Final = Flag("use_qkv_bias")
_LLAMA: Final = Facts(tied=False, qkv_bias=_ATTENTION_BIAS, output_bias=_ATTENTION_BIAS, mlp_bias=_MLP_BIAS)

DENSE: Final[dict[str, Facts]] = {
    "llama": _LLAMA,
    "mistral": Facts(tied=False, reaches=mistral_window, kv_heads_stated=True),
    "ministral": Facts(tied=False, reaches=mistral_window, kv_heads_stated=True),
    "ministral3": Facts(tied=False, reaches=mistral_window, kv_heads_stated=True, head_size_stated=True),
    "qwen2": Facts(tied=False, qkv_bias=True, reaches=switched_window, kv_heads_stated=True),
    "qwen3": Facts(
        tied=False,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        qk_norm="head",
        reaches=switched_window,
        kv_heads_stated=True,
        head_size_stated=True,
    ),
    # https://huggingface.co/XiaomiMiMo/MiMo-7B-Base: Qwen2's block, and one multi-token-prediction layer.
    "mimo": Facts(
        tied=False,
        qkv_bias=_ATTENTION_BIAS,
        reaches=switched_window,
        mtp_key="num_nextn_predict_layers",
    ),
    "phi3": Facts(tied=False, reaches=mistral_window),
    "olmo": Facts(
        tied=False, norms=0, final_norm=False, qkv_bias=_ATTENTION_BIAS, output_bias=_ATTENTION_BIAS
    ),
    "olmo2": Facts(tied=False, qkv_bias=_ATTENTION_BIAS, output_bias=_ATTENTION_BIAS, qk_norm="full"),
    "olmo3": Facts(
        tied=False,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        qk_norm="full",
        reaches=stated_types,
    ),
    "granite": Facts(tied=False, qkv_bias=_ATTENTION_BIAS, output_bias=_ATTENTION_BIAS, mlp_bias=_MLP_BIAS),
    "cohere": Facts(
        tied=True,
        norms=1,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        qk_norm="full",
        qk_norm_flag=Flag("use_qk_norm"),
    ),
    "cohere2": Facts(
        tied=True,
        norms=1,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        reaches=fourth_full,
    ),
    "starcoder2": Facts(
        tied=True,
        gated=False,
        norm_bias=True,
        qkv_bias=Flag("use_bias", absent=True),
        output_bias=Flag("use_bias", absent=True),
        mlp_bias=Flag("use_bias", absent=True),
        reaches=mistral_window,
        kv_heads_stated=True,
    ),
    "stablelm": Facts(
        tied=False,
        norm_bias=True,
        qkv_bias=_USE_QKV_BIAS,
        qk_norm="full",
        qk_norm_flag=Flag("qk_layernorm"),
        parallel_flag="use_parallel_residual",
        kv_heads_stated=True,
    ),
    "nemotron": Facts(
        tied=False,
        gated=False,
        norm_bias=True,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        mlp_bias=_MLP_BIAS,
    ),
    "glm": Facts(
        tied=False, qkv_bias=Flag("attention_bias", absent=True), kv_heads_stated=True, head_size_stated=True
    ),
    "glm4": Facts(
        tied=False,
        norms=4,
        qkv_bias=Flag("attention_bias", absent=True),
        kv_heads_stated=True,
        head_size_stated=True,
    ),
    "smollm3": Facts(
        tied=True,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        mlp_bias=_MLP_BIAS,
        reaches=switched_window,
        kv_heads_stated=True,
    ),
    "exaone4": Facts(tied=False, qk_norm="head", reaches=stated_types, kv_heads_stated=True),
    "seed_oss": Facts(
        tied=False,
        qkv_bias=Flag("attention_bias", absent=True),
        output_bias=Flag("attention_out_bias"),
        mlp_bias=_MLP_BIAS,
        kv_heads_stated=True,
        head_size_stated=True,
    ),
    "arcee": Facts(
        tied=False,
        gated=False,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        mlp_bias=_MLP_BIAS,
    ),
    # xIELU has two learned numbers (https://arxiv.org/abs/2411.13010).
    "apertus": Facts(
        tied=False,
        gated=False,
        qkv_bias=_ATTENTION_BIAS,
        output_bias=_ATTENTION_BIAS,
        qk_norm="head",
        activation_parameters=2,
    ),
    "helium": Facts(
        tied=False, qkv_bias=_ATTENTION_BIAS, mlp_bias=_MLP_BIAS, kv_heads_stated=True, head_size_stated=True
    ),
    "ernie4_5": Facts(
        tied=True,
        qkv_bias=_USE_BIAS,
        output_bias=_USE_BIAS,
        mlp_bias=_USE_BIAS,
        kv_heads_stated=True,
        head_size_stated=True,
    ),
    "hunyuan_v1_dense": Facts(
        tied=False, qkv_bias=_ATTENTION_BIAS, output_bias=_ATTENTION_BIAS, qk_norm="head"
    ),
    "cwm": Facts(tied=False, mlp_bias=_MLP_BIAS, reaches=stated_types),
    "internlm3": Facts(
        tied=False,
        qkv_bias=Flag("qkv_bias"),
        output_bias=Flag("bias"),
        mlp_bias=Flag("bias"),
        kv_heads_stated=True,
        head_size_stated=True,
    ),
    "glm4v_text": Facts(tied=False, norms=4, qkv_bias=True, kv_heads_stated=True),
    # Not in transformers: https://huggingface.co/internlm/internlm2-7b/blob/main/modeling_internlm2.py,
    # https://huggingface.co/baichuan-inc/Baichuan2-7B-Base/blob/main/modeling_baichuan.py and
    # https://huggingface.co/openbmb/MiniCPM-2B-sft-bf16/blob/main/modeling_minicpm.py.
    "internlm2": Facts(tied=False, qkv_bias=Flag("bias"), output_bias=Flag("bias")),
    "baichuan": Facts(tied=False),
    "minicpm": Facts(tied=True, qkv_bias=_ATTENTION_BIAS, output_bias=_ATTENTION_BIAS),
    "phi": Facts(
        tied=False,
        gated=False,
        norms=1,
        norm_bias=True,
        qk_norm="head",
        qk_norm_flag=Flag("qk_layernorm"),
        qk_norm_bias=True,
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
        head_bias=True,
    ),
}


# Language models of multimodal families, and where those once kept them at the top level.
DENSE.update(
    {
        alias: DENSE[family]
        for family, aliases in {
            "qwen2": ("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_5_omni_text"),
            "qwen3": ("qwen3_vl", "qwen3_vl_text"),
        }.items()
        for alias in aliases
    }
)


def _decide(view: ConfigView, fact: Fact) -> bool:
    return fact if isinstance(fact, bool) else fact.read(view)


def read_dense(view: ConfigView, facts: Facts) -> ModelSpec:
    """A dense decoder from the usual keys and the facts of its family."""
    hidden = view.size("hidden_size")
    length = layer_count(view)
    qk_norm = facts.qk_norm
    if facts.qk_norm_flag and not facts.qk_norm_flag.read(view):
        qk_norm = "none"
    norms = facts.norms
    if facts.parallel_flag and view.flag(facts.parallel_flag, default=False):
        norms = facts.parallel_norms
    mixers = attentions(
        view,
        hidden,
        facts.reaches(view, length),
        qkv_bias=_decide(view, facts.qkv_bias),
        output_bias=_decide(view, facts.output_bias),
        qk_norm=qk_norm,
        qk_norm_bias=facts.qk_norm_bias,
        kv_heads_stated=facts.kv_heads_stated,
        head_size_stated=facts.head_size_stated,
    )
    blocks = feed_forwards(view, length, gated=facts.gated, bias=_decide(view, facts.mlp_bias))
    layers = one_each(mixers, blocks, norms=norms, norm_bias=facts.norm_bias)
    if facts.activation_parameters:
        learned = {"extra_vector_parameters": facts.activation_parameters}
        layers = tuple(layer.model_copy(update=learned) for layer in layers)
    return assemble(
        view,
        layers,
        hidden=hidden,
        tied=facts.tied,
        head_bias=_decide(view, facts.head_bias),
        final_norm=facts.final_norm,
        norm_bias=facts.norm_bias,
        mtp=_mtp(view, facts, layers),
    )


def feed_forwards(
    view: ConfigView, length: int, *, gated: bool, bias: bool = False
) -> tuple[FeedForward, ...]:
    """One dense feed-forward a layer; equal widths are one object."""
    widths = view.sizes("intermediate_size", length=length)
    kept = {width: FeedForward(width=width, gated=gated, bias=bias) for width in set(widths)}
    return tuple(kept[width] for width in widths)


def _mtp(view: ConfigView, facts: Facts, layers: tuple[Layer, ...]) -> tuple[MultiTokenPrediction, ...]:
    if facts.mtp_key is None:
        return ()
    count = mtp_count(view, facts.mtp_key)
    return (MultiTokenPrediction(layers=(layers[-1],)),) * count
