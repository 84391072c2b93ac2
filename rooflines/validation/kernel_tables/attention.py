"""Attention over a cache (decode) and over a prompt (prefill)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Cost, Operator, OperatorKind
from rooflines.dtypes import NumberFormat
from rooflines.validation.kernel_tables.kind import (
    ACTIVATION_BYTES,
    Context,
    Described,
    Kind,
    column,
    labels,
    reasons,
    regions,
)
from rooflines.validation.kernel_tables.rows import Floats, Texts
from rooflines.validation.kernel_tables.traps import too_fast

if TYPE_CHECKING:
    import pandas as pd

# The loop of the benchmark reads one cache again and again, so a part of it stays in the last-level cache.
CACHE_MULTIPLE: Final = 2.0
_KV_REGIONS: Final = ((512 * 2.0**20, "KV <= 512 MiB"),)
_KV_BEYOND: Final = "KV > 512 MiB"
_PROMPT_REGIONS: Final = ((512, "prompt <= 512"), (2048, "prompt 513-2048"))
_PROMPT_BEYOND: Final = "prompt > 2048"
_HEADS: Final = ("batch", "q_heads", "kv_heads", "head_dim")


def attention(
    frame: pd.DataFrame, storage: NumberFormat, kind: OperatorKind, new: Floats, pairs: Floats
) -> Operator:
    """One fused kernel, as rooflines.costs.attention prices it.

    Args:
        frame: head counts, head size and batch of each row.
        storage: format of the cached keys and values.
        kind: decode or prefill attention.
        new: new positions per sequence n (N).
        pairs: query-key pairs per head and sequence (N).
    """
    batch, heads, kv_heads, size = (column(frame, name) for name in _HEADS)
    positions = column(frame, "context_tokens" if kind == "decode_attention" else "query_tokens")
    cost = Cost(
        matmul_flops=4.0 * batch * heads * size * pairs,
        vector_flops=5.0 * batch * heads * pairs,
        kv_bytes=batch * positions * kv_heads * 2.0 * size * storage.bytes_per_element,
        activation_bytes=batch * new * heads * 2.0 * size * ACTIVATION_BYTES,
        kernels=1.0,
    )
    return Operator(
        "attention",
        kind,
        cost,
        arithmetic="bf16",
        storage=storage.name,
        query_rows=new * heads / kv_heads,
        query_tokens=new,
    )


def _ungrouped(frame: pd.DataFrame) -> tuple[Floats, str]:
    return (
        column(frame, "q_heads") % column(frame, "kv_heads"),
        "query heads are no multiple of the KV heads",
    )


def _decode_operator(frame: pd.DataFrame, context: Context) -> Operator:
    # The tables count the token of the step among those of the context.
    new = np.ones(len(frame))
    return attention(frame, context.weights, "decode_attention", new, column(frame, "context_tokens"))


def _decode_left_out(frame: pd.DataFrame, context: Context) -> Texts:
    operator = _decode_operator(frame, context)
    cache = context.profile.last_level_cache_bytes or 0.0
    small = np.asarray(operator.cost.kv_bytes) <= CACHE_MULTIPLE * cache
    return reasons(
        len(frame),
        _ungrouped(frame),
        (small, "KV within twice the last-level cache, which the loop of the benchmark keeps warm"),
        *too_fast((operator,), column(frame, "time_us") * 1e-6, context.profile),
    )


def _decode(frame: pd.DataFrame, context: Context) -> Described:
    operator = _decode_operator(frame, context)
    size = np.asarray(operator.cost.kv_bytes)
    shape = labels(frame, "q_heads", "kv_heads", "head_dim")
    return Described((operator,), shape, regions(size, _KV_REGIONS, _KV_BEYOND), size)


def _prefill_operator(frame: pd.DataFrame, context: Context) -> Operator:
    new = column(frame, "query_tokens")
    return attention(frame, context.weights, "prefill_attention", new, new * (new + 1.0) / 2.0)


def _prefill_left_out(frame: pd.DataFrame, context: Context) -> Texts:
    operator = _prefill_operator(frame, context)
    single = column(frame, "query_tokens") <= 1
    return reasons(
        len(frame),
        _ungrouped(frame),
        (single, "a prompt of one token: the decode kernel runs"),
        *too_fast((operator,), column(frame, "time_us") * 1e-6, context.profile)[1:],
    )


def _prefill(frame: pd.DataFrame, context: Context) -> Described:
    tokens = column(frame, "query_tokens")
    shape = labels(frame, "q_heads", "kv_heads", "head_dim")
    return Described(
        (_prefill_operator(frame, context),), shape, regions(tokens, _PROMPT_REGIONS, _PROMPT_BEYOND), tokens
    )


ATTENTION_KINDS: Final = (
    Kind(
        name="decode attention",
        operator="decode_attention",
        device="gpu",
        dtype="kv_cache_dtype",
        engine="engine",
        time="time_us",
        numbers=(*_HEADS, "context_tokens"),
        leave_out=_decode_left_out,
        describe=_decode,
        kernel="kernel_source",
    ),
    Kind(
        name="prefill attention",
        operator="prefill_attention",
        device="gpu",
        dtype="kv_cache_dtype",
        engine="engine",
        time="time_us",
        numbers=(*_HEADS, "query_tokens"),
        leave_out=_prefill_left_out,
        describe=_prefill,
        kernel="kernel_source",
    ),
)
