"""What adapters share: head geometry, windows, stacks of equal layers, and what surrounds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypedDict, Unpack

from rooflines.dtypes import number_format
from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.attention import Norms
from rooflines.models.config_view import MOST_LAYERS, MOST_MODULES, ConfigView
from rooflines.models.spec import (
    Attention,
    Block,
    Layer,
    Matrix,
    Mixer,
    ModelSpec,
    MultiTokenPrediction,
)

# A config that names no dtype is taken to hold 16-bit weights; the spec says so in `assumed`.
DEFAULT_DTYPE: Final = "bf16"
LAYER_TYPES: Final = {
    "full_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunk",
    "attention": "full",
}


class Reach(NamedTuple):
    """How far a layer looks back; None and None: everywhere."""

    window: int | None = None
    chunk: int | None = None


class AttentionFacts(TypedDict, total=False):
    """What configs of a family leave unsaid about attention; see `Attention`."""

    qkv_bias: bool
    output_bias: bool
    qk_norm: Norms
    qk_norm_bias: bool
    sinks: bool


class Around(TypedDict, total=False):
    """What surrounds the layers; see `ModelSpec`."""

    position_rows: int
    embedding_width: int | None
    head_bias: bool
    embedding_norm: bool
    final_norm: bool
    norm_bias: bool
    encoder: tuple[Layer, ...]
    mtp: tuple[MultiTokenPrediction, ...]
    gathered: tuple[Matrix, ...]
    extras: tuple[Matrix, ...]
    extra_vector_parameters: int


def layer_count(view: ConfigView, *keys: str) -> int:
    """L: number of layers."""
    return view.size(*(keys or ("num_hidden_layers",)), most=MOST_LAYERS)


def mtp_count(view: ConfigView, *keys: str) -> int:
    """How many multi-token-prediction modules a config states; 0 where it states none."""
    return view.count(*(keys or ("num_nextn_predict_layers",)), default=0, most=MOST_MODULES)


def split_heads(view: ConfigView, hidden: int, heads: int, key: str = "num_attention_heads") -> int:
    """Head size of a model that does not state it: h / H.

    Raises:
        ConfigError: a fraction.
    """
    if hidden % heads:
        raise ConfigError(
            f"{view.name}: {heads} heads ({view.where(key)}) do not divide a hidden size of {hidden}: "
            "state head_dim"
        )
    return hidden // heads


def attentions(
    view: ConfigView,
    hidden: int,
    reaches: Sequence[Reach],
    *,
    kv_heads_stated: bool = False,
    head_size_stated: bool = False,
    **facts: Unpack[AttentionFacts],
) -> tuple[Attention | None, ...]:
    """The attention of every layer from the usual keys; None where a layer has no key/value heads.

    `num_attention_heads`, `num_key_value_heads` and `head_dim` may be lists with one entry a layer. A null
    `num_key_value_heads` means as many as query heads; in a list, null and 0 mean that the layer has no
    attention.

    Args:
        view: the config.
        hidden: h.
        reaches: window or chunk of each layer.
        kv_heads_stated: refuse a missing `num_key_value_heads`, since the family's class has another default
            than as many as query heads.
        head_size_stated: refuse a missing `head_dim`, since the family's class has another default
            than h / H.
        facts: further fields of `Attention`.
    """
    length = len(reaches)
    heads = view.sizes("num_attention_heads", length=length)
    kv_heads = _kv_heads(view, heads, stated=kv_heads_stated)
    sizes = _head_sizes(view, hidden, heads, stated=head_size_stated)
    found: dict[tuple[int, int, int, Reach], Attention | None] = {}
    geometries = list(zip(heads, kv_heads, sizes, reaches, strict=True))
    for query, key_value, size, reach in geometries:
        known = (query, key_value, size, reach)
        if known not in found:
            found[known] = (
                None
                if key_value == 0
                else Attention(
                    query_heads=query,
                    kv_heads=key_value,
                    head_size=size,
                    value_head_size=size,
                    window=reach.window,
                    chunk=reach.chunk,
                    **facts,
                )
            )
    return tuple(found[geometry] for geometry in geometries)


def _kv_heads(view: ConfigView, heads: Sequence[int], *, stated: bool) -> Sequence[int]:
    if view.has("num_key_value_heads"):
        return view.sizes("num_key_value_heads", length=len(heads), nothing=True)
    if stated and view.missing("num_key_value_heads"):
        raise view.lacking("num_key_value_heads")
    return heads


def _head_sizes(view: ConfigView, hidden: int, heads: Sequence[int], *, stated: bool) -> Sequence[int]:
    if view.has("head_dim"):
        return view.sizes("head_dim", length=len(heads))
    if stated and view.missing("head_dim"):
        raise view.lacking("head_dim")
    return [split_heads(view, hidden, query) for query in heads]


def same_window(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """`sliding_window` in every layer, or in those that `layer_types` names."""
    if view.has("layer_types"):
        return typed_reaches(view, length)
    if view.missing("sliding_window"):
        view.assumed.append("full attention: the config does not mention a sliding window")
    return (Reach(view.optional_size("sliding_window")),) * length


def typed_reaches(view: ConfigView, length: int) -> tuple[Reach, ...]:
    """What `layer_types` says, with `sliding_window` or `attention_chunk_size` as the reach."""
    kinds = view.choices("layer_types", length, LAYER_TYPES)
    return reaches_of_kinds(view, kinds)


def reaches_of_kinds(view: ConfigView, kinds: Sequence[str]) -> tuple[Reach, ...]:
    """Reach of each layer of kind ``full``, ``window`` or ``chunk``."""
    window = view.size("sliding_window") if "window" in kinds else None
    chunk = view.size("attention_chunk_size") if "chunk" in kinds else None
    reach = {"full": Reach(), "window": Reach(window), "chunk": Reach(None, chunk)}
    view.disregard("sliding_window", "attention_chunk_size")
    return tuple(reach[kind] for kind in kinds)


def every_nth_full(view: ConfigView, length: int, key: str, default: int | None = None) -> tuple[Reach, ...]:
    """A window in all layers but every n-th: `layer_types`, else a period under `key`."""
    if view.has("layer_types"):
        view.disregard(key)
        return typed_reaches(view, length)
    period = view.optional_size(key) or default
    if period is None:
        raise view.lacking("layer_types", key)
    kinds = ["full" if (index + 1) % period == 0 else "window" for index in range(length)]
    return reaches_of_kinds(view, kinds)


def stack(
    parts: Iterable[tuple[Mixer | None, tuple[Block, ...]]],
    *,
    norms: int,
    norm_bias: bool = False,
) -> tuple[Layer, ...]:
    """Layers with equal parts become one object.

    Args:
        parts: mixer and feed-forwards of each layer.
        norms: norms of a layer that has both; one that lacks either has half of them.
        norm_bias: whether they have biases.
    """
    kept: dict[tuple[int, ...], Layer] = {}
    result = []
    for mixer, blocks in parts:
        key = (id(mixer), *map(id, blocks))
        if key not in kept:
            both = mixer is not None and blocks
            kept[key] = Layer(
                mixer=mixer, feed_forwards=blocks, norms=norms if both else norms // 2, norm_bias=norm_bias
            )
        result.append(kept[key])
    return tuple(result)


def one_each(
    mixers: Iterable[Mixer | None],
    blocks: Iterable[Block],
    *,
    norms: int = 2,
    norm_bias: bool = False,
) -> tuple[Layer, ...]:
    """Layers of one mixer and one feed-forward; see `stack`."""
    parts = zip(mixers, ((block,) for block in blocks), strict=True)
    return stack(parts, norms=norms, norm_bias=norm_bias)


def read_dtype(view: ConfigView) -> tuple[str, bool]:
    """Storage format of weights, and whether the config (at this level or around it) states it.

    Raises:
        ConfigError: a dtype that is not known.
    """
    level: ConfigView | None = view
    found: str | None = None
    while level is not None:
        for key in ("torch_dtype", "dtype"):
            if level.has(key) and found is None and level.text(key) != "auto":
                found = level.text(key)
        level = level.outer
    if found is None:
        return DEFAULT_DTYPE, False
    try:
        return number_format(found).name, True
    except UnknownNameError as mistake:
        raise ConfigError(f"{view.name}: torch_dtype: {mistake}") from None


def read_tied(view: ConfigView, *, default: bool) -> bool:
    """`tie_word_embeddings` at this level or around it; `default` is that of the family's class.

    Raises:
        ConfigError: two levels disagree.
    """
    found: dict[str, bool] = {}
    level: ConfigView | None = view
    while level is not None:
        if level.has("tie_word_embeddings"):
            found[level.where("tie_word_embeddings")] = level.flag("tie_word_embeddings", default=default)
        level = level.outer
    if len(set(found.values())) > 1:
        said = " and ".join(f"{key} {str(value).lower()}" for key, value in found.items())
        raise ConfigError(f"{view.name}: {said} contradict each other: keep one")
    return next(iter(found.values()), default)


def assemble(
    view: ConfigView,
    layers: tuple[Layer, ...],
    *,
    hidden: int,
    tied: bool,
    vocabulary: int | None = None,
    **around: Unpack[Around],
) -> ModelSpec:
    """The model around its layers; vocabulary, dtype and positions come from the usual keys.

    Args:
        view: the level that describes the text model.
        layers: in order.
        hidden: h.
        tied: what `tie_word_embeddings` means where it is missing.
        vocabulary: V where it is not under `vocab_size`.
        around: further fields of `ModelSpec`.
    """
    dtype, stated = read_dtype(view)
    if not stated:
        view.assumed.append(f"dtype {dtype}: the config names none")
    return ModelSpec(
        name=view.name,
        family=str(view.value("model_type")),
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary or view.size("vocab_size", "padded_vocab_size"),
        tied_embeddings=read_tied(view, default=tied),
        dtype=dtype,
        max_positions=_max_positions(view),
        assumed=tuple(view.assumed),
        **around,
    )


def _max_positions(view: ConfigView) -> int | None:
    # Spellings may disagree (Qwen-1: trained length and extended length); the first is what engines use.
    keys = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")
    found = [view.optional_size(key) for key in keys]
    return next((positions for positions in found if positions is not None), None)
