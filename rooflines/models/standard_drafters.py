"""Heads of a family's usual shape for any target, where nobody has published one.

Every result that uses one says so (`DrafterSpec.assumed`). Shapes follow the heads that exist: a dense target
lends its own attention and feed-forward; for a mixture of experts the trained heads are dense, 6 h wide in
EAGLE-3 (17,280 for gpt-oss-20b, 24,576 for Qwen3-235B, 40,960 = 5.7 h for DeepSeek-V3; narrower ones exist:
2.6 h for Kimi-K2, 3 h for Qwen3-30B-A3B, 3.5 h for Ling-flash-2.0) and 3 h in block drafters (6,144 for
Qwen3.5-35B-A3B): https://github.com/sgl-project/SpecForge/tree/main/configs. A target
without softmax heads of its own (latent or linear attention) gets heads of 128 on 8 key/value heads, as
SpecForge's head for DeepSeek-V3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rooflines.errors import ConfigError
from rooflines.models.drafters import DrafterSpec, Method, medusa_drafter, mtp_drafter
from rooflines.models.matrix import Matrix
from rooflines.models.spec import Attention, FeedForward, Layer, ModelSpec, MultiTokenPrediction

_HEAD_SIZE: Final = 128
_KV_HEADS: Final = 8
_EAGLE_EXPERTS_WIDTH: Final = 6  # times h, for targets with experts
_BLOCK_EXPERTS_WIDTH: Final = 3
_EAGLE3_FEATURES: Final = 3  # layers of the target that EAGLE-3 reads (arXiv 2503.01840)
_EAGLE3_VOCABULARY: Final = 32_000  # draft_vocab_size of every published EAGLE-3 head
_MEDUSA_HEADS: Final = 5  # Medusa (arXiv 2401.10774), section 3.1: five heads suffice
# DFlash (arXiv 2602.06036): 5 layers that read 5 layers of the target, blocks of 16.
_BLOCK_LAYERS: Final = 5
_DFLASH_BLOCK: Final = 16
# DSpark (arXiv 2607.05147; SpecForge configs): block 7, Markov head of rank 256 and a confidence head.
_DSPARK_BLOCK: Final = 7
_MARKOV_RANK: Final = 256


def standard_drafter(method: Method, target: ModelSpec) -> DrafterSpec:
    """A head of the usual shape for `target`; what was assumed is listed in the result.

    Args:
        method: how it drafts. ``mtp`` takes the target's own module where it has one.
        target: the model it drafts for.

    Raises:
        ConfigError: the family has no usual shape.
    """
    if method == "mtp" and target.mtp:
        return mtp_drafter(target)
    build = _BUILDERS.get(method)
    if build is None:
        raise ConfigError(
            f"{method} heads have no usual shape that could be derived from {target.name}: give a config"
        )
    spec = build(target)
    return spec.model_copy(update={"assumed": (_note(method, target),)})


def usual_attention(target: ModelSpec) -> Attention:
    """Full causal attention with the heads of the target's last softmax layer, or the usual heads."""
    found = [layer.mixer for layer in target.layers if isinstance(layer.mixer, Attention)]
    if found:
        last = found[-1]
        heads, groups, size = last.query_heads, last.kv_heads, last.head_size
    else:
        heads, size = max(target.hidden // _HEAD_SIZE, 1), _HEAD_SIZE
        groups = _KV_HEADS if heads % _KV_HEADS == 0 else heads
    return Attention(query_heads=heads, kv_heads=groups, head_size=size, value_head_size=size)


def usual_feed_forward(target: ModelSpec, experts_width: int) -> FeedForward:
    """The target's own feed-forward, or a gated one of `experts_width` h beside experts."""
    blocks = [block for layer in target.layers for block in layer.feed_forwards]
    dense = [block for block in blocks if isinstance(block, FeedForward)]
    if dense and len(dense) == len(blocks):
        return dense[-1].model_copy(update={"gated": True, "bias": False})
    return FeedForward(width=experts_width * target.hidden, gated=True)


def _named(method: Method, target: ModelSpec) -> str:
    return f"{target.name} {method} (usual shape)"


def _eagle(target: ModelSpec) -> DrafterSpec:
    hidden = target.hidden
    block = usual_feed_forward(target, _EAGLE_EXPERTS_WIDTH)
    return DrafterSpec(
        name=_named("eagle", target),
        method="eagle",
        hidden=hidden,
        target_hidden=hidden,
        layers=(Layer(mixer=usual_attention(target), feed_forwards=(block,), norms=1),),
        entry=(Matrix("fuse", 2 * hidden, hidden, bias=True),),
        heads=(),
        shares=("embedding", "head"),
        vocabulary=target.vocabulary,
        draft_vocabulary=target.vocabulary,
        dtype=target.dtype,
    )


def _eagle3(target: ModelSpec) -> DrafterSpec:
    hidden = target.hidden
    mixer = usual_attention(target).model_copy(update={"input_width": 2 * hidden})
    block = usual_feed_forward(target, _EAGLE_EXPERTS_WIDTH)
    vocabulary = min(_EAGLE3_VOCABULARY, target.vocabulary)
    return DrafterSpec(
        name=_named("eagle3", target),
        method="eagle3",
        hidden=hidden,
        target_hidden=hidden,
        layers=(Layer(mixer=mixer, feed_forwards=(block,), norms=3),),
        entry=(Matrix("fuse", _EAGLE3_FEATURES * hidden, hidden),),
        heads=(Matrix("head", hidden, vocabulary),),
        norms=1,
        shares=("embedding",),
        vocabulary=target.vocabulary,
        draft_vocabulary=vocabulary,
        dtype=target.dtype,
    )


def _medusa(target: ModelSpec) -> DrafterSpec:
    return medusa_drafter(
        _named("medusa", target), target.hidden, target.vocabulary, target.dtype, _MEDUSA_HEADS
    )


def _block(target: ModelSpec, method: Method, block_size: int, draft_length: int) -> DrafterSpec:
    hidden = target.hidden
    mixer = usual_attention(target).model_copy(update={"causal": False, "qk_norm": "head"})
    layer = Layer(mixer=mixer, feed_forwards=(usual_feed_forward(target, _BLOCK_EXPERTS_WIDTH),), norms=2)
    return DrafterSpec(
        name=_named(method, target),
        method=method,
        hidden=hidden,
        target_hidden=hidden,
        layers=(layer,) * _BLOCK_LAYERS,
        entry=(Matrix("fuse", _BLOCK_LAYERS * hidden, hidden),),
        heads=(),
        norms=2,
        shares=("embedding", "head"),
        vocabulary=target.vocabulary,
        draft_vocabulary=target.vocabulary,
        dtype=target.dtype,
        block_size=block_size,
        draft_length=draft_length,
    )


def _dflash(target: ModelSpec) -> DrafterSpec:
    """Its first position is the token that is known, so a block of 16 drafts 15."""
    return _block(target, "dflash", _DFLASH_BLOCK, _DFLASH_BLOCK - 1)


def _dspark(target: ModelSpec) -> DrafterSpec:
    """Its first position predicts too, so a block of 7 drafts 7."""
    body = _block(target, "dspark", _DSPARK_BLOCK, _DSPARK_BLOCK)
    return body.model_copy(
        update={
            "gathered": (Matrix("markov_embedding", _MARKOV_RANK, target.vocabulary),),
            "heads": (
                Matrix("markov_head", _MARKOV_RANK, target.vocabulary),
                Matrix("confidence", target.hidden + _MARKOV_RANK, 1, bias=True),
            ),
        }
    )


def _mtp(target: ModelSpec) -> DrafterSpec:
    """DeepSeek-V3's module (arXiv 2412.19437, section 2.2): a projection and one more layer like the last.

    The last layer that has both attention and a feed-forward, without what it reads of an encoder.
    """
    whole = [layer for layer in target.layers if layer.mixer and layer.feed_forwards]
    last = (whole or list(target.layers))[-1].model_copy(update={"cross": None})
    module = MultiTokenPrediction(layers=(last,))
    return mtp_drafter(target.model_copy(update={"mtp": (module,)})).model_copy(
        update={"name": _named("mtp", target)}
    )


def _note(method: Method, target: ModelSpec) -> str:
    """What was assumed."""
    if method == "mtp":
        return f"{target.name} ships no MTP module: this one is hypothetical, of the usual shape"
    return f"a head of its family's usual shape, derived from {target.name}: no published config was given"


_BUILDERS: Final[dict[Method, Callable[[ModelSpec], DrafterSpec]]] = {
    "eagle": _eagle,
    "eagle3": _eagle3,
    "medusa": _medusa,
    "dflash": _dflash,
    "dspark": _dspark,
    "mtp": _mtp,
}
