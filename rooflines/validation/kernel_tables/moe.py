"""Layers of routed experts: router, permutation and grouped products timed together on one device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Cost, Operator
from rooflines.costs.routing import UNIFORM
from rooflines.errors import InputError
from rooflines.validation.kernel_tables.kind import (
    ACTIVATION_BYTES,
    TOKEN_REGIONS,
    TOKENS_BEYOND,
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

# Of 134 layers with two routings, one token took 0.83 to 1.07 times as long under one as under the other in
# all but two, with 1.60 and 1.69: another kernel, or another clock.
_ODD_RATIO: Final = 1.3
# Four times as many as Switch Transformer's largest layer has (https://arxiv.org/abs/2101.03961, table 9).
_MOST_EXPERTS: Final = 8192
_POWER_LAW: Final = "power_law_"
_SHAPE: Final = ("hidden_size", "expert_ffn_size", "top_k", "num_experts")
# Bounds of the power law that AIConfigurator draws loads from, before they are scaled to the tokens: few
# assignments (no more than experts), and many (the upper bound is then this share of the tokens).
_FEW_BOUNDS: Final = (0.01, 2.0)
_MANY_LOWER: Final = 1.0
_MANY_UPPER_SHARE: Final = 0.8


@lru_cache(maxsize=4096)
def power_law_loads(tokens: int, experts: int, per_token: int, alpha: float) -> tuple[int, ...]:
    """Tokens of each expert in the loads that AIConfigurator makes, at the quantiles of its random draw.

    Loads follow a truncated power law, are scaled to tokens x per_token, rounded, cut at one per token, and
    levelled at the least loaded experts until the sum is right (collector/helper.py,
    ``_generate_power_law_distribution``, https://github.com/ai-dynamo/aiconfigurator). So many more experts
    are hit than by tokens that choose independently with those weights.

    Raises:
        InputError: an exponent of 1, for which the form has no meaning, or more per token than experts.
    """
    if alpha == 1 or per_token > experts:
        raise InputError(f"power law {alpha:g} with {per_token} of {experts} experts: no such loads")
    assigned = tokens * per_token
    lower, upper = (_MANY_LOWER, tokens * _MANY_UPPER_SHARE) if assigned > experts else _FEW_BOUNDS
    upper = max(upper, lower)
    quantile = (np.arange(experts) + 0.5) / experts
    bend = 1.0 - alpha
    drawn = ((upper**bend - lower**bend) * quantile + lower**bend) ** (1.0 / bend)
    loads = np.minimum(np.round(drawn / drawn.sum() * assigned), tokens).astype(int)
    while (missing := assigned - int(loads.sum())) != 0:
        # The least loaded take what is missing, the most loaded give what is too much, one after another;
        # rounds in which everybody does are taken at once.
        order = np.argsort(loads, kind="stable")
        step = max(abs(missing) // experts, 1) * (1 if missing > 0 else -1)
        loads[(order if step > 0 else order[::-1])[: min(abs(missing), experts)]] += step
        loads = np.clip(loads, 0, tokens)
    return tuple(int(load) for load in loads)


def distinct(distribution: str, tokens: int, experts: int, per_token: int) -> float | None:
    """Experts that get at least one token; None for a distribution that is not known."""
    if distribution == "balanced":
        return float(min(experts, tokens * per_token))
    if distribution == "uniform":
        return float(UNIFORM(experts, per_token, float(tokens), 1.0))
    if not distribution.startswith(_POWER_LAW):
        return None
    try:
        alpha = float(distribution.removeprefix(_POWER_LAW))
        return float(np.count_nonzero(power_law_loads(tokens, experts, per_token, alpha)))
    except (ValueError, InputError):
        return None


def _distinct(frame: pd.DataFrame) -> Floats:
    """Distinct experts of each row (N); NaN where the distribution is not known."""
    found = [
        distinct(str(kind), int(tokens), int(experts), int(per_token))
        for kind, tokens, experts, per_token in zip(
            frame["distribution"], frame["num_tokens"], frame["num_experts"], frame["top_k"], strict=True
        )
    ]
    return np.array([np.nan if value is None else value for value in found])


def _operator(frame: pd.DataFrame, context: Context, hit: Floats) -> Operator:
    tokens, hidden, width, per_token, experts = (column(frame, name) for name in ("num_tokens", *_SHAPE))
    storage = context.weights
    one = np.array(
        [
            2 * storage.matrix_bytes(int(f), int(h)) + storage.matrix_bytes(int(h), int(f))
            for h, f in zip(hidden, width, strict=True)
        ],
        dtype=float,
    )
    assigned = tokens * per_token
    cost = Cost(
        matmul_flops=6.0 * hidden * width * assigned,
        weight_bytes=hit * one,
        activation_bytes=assigned * 3.0 * (hidden + width) * ACTIVATION_BYTES,
        kernels=1.0,
    )
    return Operator(
        "routed experts",
        "moe",
        cost,
        arithmetic=storage.arithmetic,
        storage=storage.name,
        rows=assigned / hit,
        tokens_per_expert=tokens / experts,
    )


def _left_out(frame: pd.DataFrame, context: Context) -> Texts:
    per_token, experts = column(frame, "top_k"), column(frame, "num_experts")
    possible = (per_token <= experts) & (experts <= _MOST_EXPERTS)
    hit = np.full(len(frame), np.nan)
    hit[possible] = _distinct(frame[possible])
    known = np.isfinite(hit)
    operator = _operator(frame, context, np.where(known, hit, 1.0))
    cache = context.profile.last_level_cache_bytes or 0.0
    return reasons(
        len(frame),
        (~possible, f"more experts per token than there are, or more than {_MOST_EXPERTS:,} of them"),
        (~known, "how experts were chosen is not known"),
        (
            np.asarray(operator.cost.weight_bytes) <= cache,
            "the experts hit fit the last-level cache, which the loop of the benchmark keeps warm",
        ),
        *too_fast((operator,), column(frame, "time_us") * 1e-6, context.profile),
    )


def _screen(frame: pd.DataFrame) -> Texts:
    """Name layers that were slow under one routing although one token hits k experts under any."""
    layer = [name for name in ("gpu", "engine", "engine_version", "moe_dtype", *_SHAPE) if name in frame]
    one = frame[frame["num_tokens"] == 1].groupby([*layer, "distribution"])["time_us"].median()
    if one.empty:
        return reasons(len(frame))
    ratio = (one / one.groupby(level=layer).min()).rename("ratio").reset_index()
    slower = frame[[*layer, "distribution"]].merge(ratio, how="left", on=[*layer, "distribution"])["ratio"]
    odd = np.asarray(slower.fillna(1.0), dtype=float) > _ODD_RATIO
    return reasons(
        len(frame),
        (odd, "one token took longer than under another routing, though it hits as many experts under any"),
    )


def _describe(frame: pd.DataFrame, context: Context) -> Described:
    tokens = column(frame, "num_tokens")
    return Described(
        (_operator(frame, context, _distinct(frame)),),
        labels(frame, *_SHAPE),
        regions(tokens, TOKEN_REGIONS, TOKENS_BEYOND),
        tokens,
    )


MOE_KINDS: Final = (
    Kind(
        name="layers of routed experts",
        operator="moe",
        device="gpu",
        dtype="moe_dtype",
        engine="engine",
        time="time_us",
        numbers=("num_tokens", *_SHAPE),
        leave_out=_left_out,
        describe=_describe,
        variants=("distribution",),
        screen=_screen,
    ),
)
