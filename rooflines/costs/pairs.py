"""How many query-key pairs attention computes, and how many cached positions it reads.

One pass over the cached keys and values serves all n new positions and all query heads of a group: verifying
does not multiply what is read by n, only the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.setting import Shape


@dataclass(frozen=True, slots=True)
class Reach:
    """What a query sees.

    Attributes:
        window: newest positions, itself included; None for all.
        chunk: its own chunk of this many positions, up to itself; None for no chunks.
        causal: False where every new position sees every other.
        top_k: cached or new positions that an indexer chooses; None for all.
    """

    window: int | None = None
    chunk: int | None = None
    causal: bool = True
    top_k: int | None = None


def attention_pairs(shape: Shape, reach: Reach = Reach()) -> Number:
    """Query-key pairs per sequence and head.

    Args:
        shape: B, n, S; `ancestors` replaces the causal triangle of a tree; ``mask="dense"`` counts every new
            position against all kept and all new ones.
        reach: what a query sees.

    Returns:
        Chain: n S + n (n + 1) / 2; tree: n S + sum of node depths; window W: sum over i of min(S + i, W), and
        the same for top-k; chunks C: sum of (S + i - 1) mod C + 1; dense or bidirectional: n (S + n). Trees
        that cross the edge of a window or chunk are bounded from above.
    """
    n, context = shape.new_tokens, shape.context
    if shape.mask == "dense" or not reach.causal:
        return n * (kept_positions(context, reach) + n)
    limit = reach.window or reach.top_k
    if shape.ancestors is not None:
        if reach.chunk:
            return np.minimum(n * (context % reach.chunk) + shape.ancestors, n * float(reach.chunk))
        pairs = n * context + shape.ancestors
        return pairs if limit is None else np.minimum(pairs, n * float(limit))
    if reach.chunk:
        return _chunked(context + n, reach.chunk) - _chunked(context, reach.chunk)
    if limit is None:
        return n * context + n * (n + 1) / 2
    growing = np.clip(limit - np.asarray(context, dtype=float), 0.0, n)
    pairs = growing * context + growing * (growing + 1) / 2 + (n - growing) * limit
    return float(pairs) if np.ndim(pairs) == 0 else pairs


def _chunked(positions: Number, chunk: int) -> Number:
    """Pairs of the first `positions` positions: whole triangles, and what has grown of the last one."""
    rest = positions % chunk
    return (positions - rest) / chunk * (chunk * (chunk + 1) / 2) + rest * (rest + 1) / 2


def kept_positions(context: Number, reach: Reach) -> Number:
    """Cached positions that must stay: S, or the newest W - 1 of a sliding window or chunk of W."""
    limit = reach.window or reach.chunk
    return context if limit is None else _least(context, limit - 1.0)


def read_positions(shape: Shape, reach: Reach = Reach()) -> Number:
    """Cached positions that a pass reads per sequence, once for all of its queries.

    Returns:
        S; min(S, W - 1) in a window; S mod C in chunks; at most n times top-k where an indexer chooses.
    """
    if reach.chunk:
        return shape.context % reach.chunk
    kept = kept_positions(shape.context, reach)
    return kept if reach.top_k is None else _least(kept, shape.new_tokens * float(reach.top_k))


def _least(one: Number, other: Number) -> Number:
    least = np.minimum(one, other)
    return float(least) if np.ndim(least) == 0 else least
