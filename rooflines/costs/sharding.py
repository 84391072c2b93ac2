"""What one device of a group holds of a layer: the same blocks with fewer heads, channels and experts.

Megatron-LM's cut (arXiv 1909.08053, section 3): projections into heads or into a feed-forward width are
divided by columns, those out of it by rows. Norms, routers, latents and their caches are whole on each.
"""

from __future__ import annotations

from typing import TypeVar

from rooflines.costs.setting import KEPT, Parallelism, Precision
from rooflines.errors import ParallelismError, UnsupportedArchitectureError
from rooflines.facts import Fact
from rooflines.models.spec import (
    Attention,
    CrossAttention,
    FeedForward,
    GatedDeltaNet,
    KimiDeltaAttention,
    LatentAttention,
    Layer,
    Mamba,
    Mamba2,
    MixtureOfExperts,
)

_Fact = TypeVar("_Fact", bound=Fact)


def on_device(layer: Layer, hidden: int, precision: Precision, parallelism: Parallelism) -> Layer:
    """The layer as one device holds it, in the formats it is held in.

    Args:
        layer: the whole.
        hidden: h.
        precision: a weight format chosen by hand replaces those of mixers and feed-forwards.
        parallelism: degrees.

    Raises:
        ParallelismError: a degree does not divide what it should.
        UnsupportedArchitectureError: a block that no rule divides.
    """
    changes: dict[str, object] = {}
    if precision.weights:
        changes["formats"] = _chosen(layer, hidden, precision.weights)
    if parallelism.devices > 1:
        changes["mixer"] = divided(layer.mixer, parallelism) if layer.mixer else None
        changes["cross"] = divided(layer.cross, parallelism) if layer.cross else None
        changes["feed_forwards"] = tuple(divided(block, parallelism) for block in layer.feed_forwards)
    return layer.model_copy(update=changes) if changes else layer


def _chosen(layer: Layer, hidden: int, weights: str) -> tuple[tuple[str, str], ...]:
    kept = KEPT | {matrix.name for matrix in layer.extras}
    names = [matrix.name for matrix in layer.matrices(hidden) if matrix.name not in kept]
    return tuple({**dict(layer.formats), **dict.fromkeys(names, weights)}.items())


def divided(block: _Fact, parallelism: Parallelism) -> _Fact:
    """One device's part of a mixer or feed-forward.

    Raises:
        ParallelismError: the degree does not divide it.
        UnsupportedArchitectureError: no rule divides such a block.
    """
    share = parallelism.share
    match block:
        case Attention() | CrossAttention():
            heads = share(block.query_heads, "query heads")
            changes = {"query_heads": heads, "kv_heads": parallelism.kv_share(block.kv_heads)}
        case LatentAttention():
            changes = {"query_heads": share(block.query_heads, "query heads")}
        case GatedDeltaNet():
            changes = {
                "key_heads": share(block.key_heads, "key heads"),
                "value_heads": share(block.value_heads, "value heads"),
            }
        case KimiDeltaAttention():
            changes = {"heads": share(block.heads, "heads")}
        case Mamba():
            changes = {"inner": share(block.inner, "channels")}
        case Mamba2():
            groups = parallelism.kv_share(block.groups)
            changes = {"heads": share(block.heads, "heads"), "groups": groups}
        case FeedForward():
            changes = {"width": share(block.width, "feed-forward channels")}
        case MixtureOfExperts():
            changes = _experts(block, parallelism)
        case _:
            raise UnsupportedArchitectureError(f"no rule divides {type(block).__name__} over devices")
    return block.model_copy(update=changes)


def _experts(block: MixtureOfExperts, parallelism: Parallelism) -> dict[str, int]:
    """Spread whole over e devices, or every expert cut over t; shared experts are cut over t."""
    changes = {"shared_width": parallelism.share(block.shared_width, "shared-expert channels")}
    if parallelism.expert == 1:
        return {**changes, "width": parallelism.share(block.width, "expert channels")}
    if block.experts % parallelism.expert:
        allowed = [str(e) for e in range(2, block.experts + 1) if block.experts % e == 0][:8]
        raise ParallelismError(
            f"expert parallelism {parallelism.expert} does not divide {block.experts} experts: use "
            f"{', '.join(allowed)}, ..."
        )
    return changes
