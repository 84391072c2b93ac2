"""Elementwise kernels of a layer: norms, rotation, activation, residual sum."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Cost, Operator
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

if TYPE_CHECKING:
    import pandas as pd

# One tick of Vidur's timer is 5 % of it.
_FEWEST_TICKS: Final = 20.0
_NAMES: Final = {
    "input_layernorm_time_us": "norm before attention",
    "attn_rope_time_us": "rope",
    "post_attention_layernorm_time_us": "norm before feed-forward",
    "mlp_act_time_us": "activation",
    "add_time_us": "residual sum",
}


def elements_moved(frame: pd.DataFrame, time: str) -> Floats:
    """Activations (N) that a kernel reads and writes for one position on one device."""
    heads, kv_heads, hidden, width, tensor = (
        column(frame, name) for name in ("n_head", "n_kv_head", "hidden", "ffn", "tp")
    )
    match time:
        case "attn_rope_time_us":
            return 2.0 * (heads + kv_heads) / tensor * hidden / heads
        case "mlp_act_time_us":
            return 3.0 * width / tensor
        case "add_time_us":
            return 3.0 * hidden
        case _:
            return 2.0 * hidden


def _left_out(frame: pd.DataFrame, context: Context, time: str) -> Texts:  # noqa: ARG001  # a kind's signature
    short = column(frame, time) < _FEWEST_TICKS
    return reasons(len(frame), (short, f"shorter than {_FEWEST_TICKS:.0f} us: the timer has steps of 1 us"))


def _describe(frame: pd.DataFrame, context: Context, time: str) -> Described:  # noqa: ARG001  # a kind's signature
    tokens = column(frame, "num_tokens")
    cost = Cost(activation_bytes=tokens * elements_moved(frame, time) * ACTIVATION_BYTES, kernels=1.0)
    shape = np.char.add(np.char.add(np.asarray(frame["model"], dtype=np.str_), " tp"), labels(frame, "tp"))
    operator = Operator(_NAMES[time], "small", cost, rows=tokens)
    return Described(
        (operator,), shape.astype(np.str_), regions(tokens, TOKEN_REGIONS, TOKENS_BEYOND), tokens
    )


SMALL_KINDS: Final = tuple(
    Kind(
        name="layer operators",
        operator="small",
        device="gpu",
        dtype="=bf16",
        engine="=vidur",
        time=time,
        numbers=("num_tokens", "n_head", "n_kv_head", "hidden", "ffn", "tp"),
        leave_out=partial(_left_out, time=time),
        describe=partial(_describe, time=time),
        texts=("model",),
        variant=name,
    )
    for time, name in _NAMES.items()
)
