"""Products with a weight matrix: single kernels, and the four of a dense layer."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Cost, Operator
from rooflines.costs.passes import decode_pass
from rooflines.costs.setting import Parallelism, Precision
from rooflines.dtypes import NumberFormat
from rooflines.errors import RooflinesError
from rooflines.models.readers import read_model
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
from rooflines.validation.kernel_tables.traps import host_bound, odd_single_row, too_fast

if TYPE_CHECKING:
    import pandas as pd

# Narrower matrices leave most of a tile empty, and no layer of a served model has them.
NARROWEST: Final = 512
PRODUCTS: Final = (
    "qkv projection",
    "output projection",
    "gate and up projection",
    "down projection",
)
_LAYER: Final = re.compile(r"(?P<model>.+?)\s+tp(?P<tensor>\d+)", re.IGNORECASE)
_NO: Final = ("0", "0.0", "false", "no")
_L2_HOT: Final = "weights fit the last-level cache, which the loop of the benchmark keeps warm"


def products(m: Floats, n: Floats, k: Floats, storage: NumberFormat, name: str = "product") -> Operator:
    """Products of m positions with weights [n, k] in one kernel, as rooflines.costs.linear prices them.

    Args:
        m: positions (N).
        n: outputs (N).
        k: inputs (N).
        storage: format of the weights.
        name: of the operator.
    """
    shapes, where = np.unique(np.stack([n, k]), axis=1, return_inverse=True)
    stored = np.array([storage.matrix_bytes(int(rows), int(inner)) for rows, inner in shapes.T], dtype=float)
    cost = Cost(
        matmul_flops=2.0 * m * n * k,
        weight_bytes=stored[where.ravel()],
        activation_bytes=m * (n + k) * ACTIVATION_BYTES,
        kernels=1.0,
    )
    return Operator(
        name, "linear", cost, arithmetic=storage.arithmetic, storage=storage.name, rows=m, outputs=n
    )


def weights_are_cached(weight_bytes: Floats, context: Context) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the weights (N) fit the last-level cache of the device."""
    cache = context.profile.last_level_cache_bytes or 0.0
    return weight_bytes <= cache


def _gemm_left_out(frame: pd.DataFrame, context: Context) -> Texts:
    m, n, k = (column(frame, name) for name in ("m", "n", "k"))
    operator = products(m, n, k, context.weights)
    seconds = column(frame, "time_us") * 1e-6
    cached = weights_are_cached(np.asarray(operator.cost.weight_bytes), context)
    if "weights_exceed_l2" in frame:
        exceed = np.char.lower(np.asarray(frame["weights_exceed_l2"], dtype=np.str_))
        # Collectors cycle several copies of the weights, and the table says whether these exceed the cache.
        cached = np.where(exceed == "", cached, np.isin(exceed, _NO))
    return reasons(
        len(frame),
        (cached, _L2_HOT),
        ((n < NARROWEST) | (k < NARROWEST), f"narrower than {NARROWEST}: no layer of a served model"),
        *too_fast((operator,), seconds, context.profile),
        *host_bound(operator, seconds, context.profile),
        *odd_single_row(m, labels(frame, "n", "k"), seconds),
    )


def _gemm(frame: pd.DataFrame, context: Context) -> Described:
    m, n, k = (column(frame, name) for name in ("m", "n", "k"))
    operator = products(m, n, k, context.weights)
    return Described((operator,), labels(frame, "n", "k"), regions(m, TOKEN_REGIONS, TOKENS_BEYOND), m)


def layer_products(layer: str, m: Floats, storage: NumberFormat) -> tuple[Operator, ...] | None:
    """The four products of one layer of a model on one device, out of the costs of a decode pass.

    Args:
        layer: a preset and a tensor-parallel degree, such as ``Llama-3-70B tp8``.
        m: positions (N).
        storage: format of the weights.

    Returns:
        None where the name is none of a dense model with these products.
    """
    match = _LAYER.fullmatch(layer)
    if match is None:
        return None
    try:
        found = decode_pass(
            read_model(match["model"].lower()),
            m,
            1.0,
            precision=Precision(weights=storage.name),
            parallelism=Parallelism(tensor=int(match["tensor"])),
        )
    except RooflinesError:
        return None
    chosen = {operator.name: operator for operator in found.operators if operator.name in PRODUCTS}
    if len(chosen) < len(PRODUCTS):
        return None
    return tuple(_once(chosen[name]) for name in PRODUCTS)


def _once(operator: Operator) -> Operator:
    return Operator(
        operator.name,
        operator.kind,
        operator.cost,
        arithmetic=operator.arithmetic,
        storage=operator.storage,
        rows=operator.rows,
        outputs=operator.outputs,
    )


def _layer_left_out(frame: pd.DataFrame, context: Context) -> Texts:
    layers = np.asarray(frame["layer"], dtype=np.str_)
    known = {
        name: layer_products(name, np.ones(1), context.weights) is not None for name in np.unique(layers)
    }
    found = np.array([known[name] for name in layers])
    why = np.full(
        len(frame), "the layer is of no known dense model, or its degree does not divide it", object
    )
    if found.any():
        rows = frame[found]
        seconds = column(rows, "layer_gemm_time_us") * 1e-6
        why[found] = reasons(len(rows), *too_fast(_layer(rows, context).operators, seconds, context.profile))
    return np.asarray(why, dtype=np.str_)


def _layer(frame: pd.DataFrame, context: Context) -> Described:
    """Rows of all layers at once: costs are worked out layer by layer and put back in order."""
    layers = np.asarray(frame["layer"], dtype=np.str_)
    m = column(frame, "m")
    parts: list[tuple[Operator, ...]] = []
    for name in np.unique(layers):
        found = layer_products(str(name), m[layers == name], context.weights)
        if found is not None:
            parts.append(found)
    order = np.argsort(np.concatenate([np.flatnonzero(layers == name) for name in np.unique(layers)]))
    operators = tuple(_joined(same, order) for same in zip(*parts, strict=True))
    return Described(operators, layers, regions(m, TOKEN_REGIONS, TOKENS_BEYOND), m)


def _joined(parts: tuple[Operator, ...], order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Operator:
    def gather(name: str) -> Floats:
        values = [
            np.broadcast_to(getattr(part.cost, name), np.shape(part.rows)).astype(float) for part in parts
        ]
        return np.asarray(np.concatenate(values)[order])

    first = parts[0]
    cost = Cost(gather("matmul_flops"), 0.0, gather("weight_bytes"), 0.0, 0.0, gather("activation_bytes"))
    rows = np.concatenate([np.atleast_1d(part.rows) for part in parts])[order]
    outputs = np.concatenate([np.broadcast_to(part.outputs, np.shape(part.rows)) for part in parts])[order]
    return Operator(
        first.name,
        "linear",
        Cost(cost.matmul_flops, 0.0, cost.weight_bytes, 0.0, 0.0, cost.activation_bytes, kernels=1.0),
        arithmetic=first.arithmetic,
        storage=first.storage,
        rows=rows,
        outputs=outputs,
    )


def vidur_shapes(frame: pd.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    """Outputs n and inputs k of the four products of each row's layer on one device (gate and up fused)."""
    heads, kv_heads, hidden, width, tensor = (
        column(frame, name) for name in ("n_head", "n_kv_head", "hidden", "ffn", "tp")
    )
    size = hidden / heads
    # KV heads are replicated where there are fewer of them than devices.
    own = (heads / tensor + 2 * np.maximum(kv_heads / tensor, 1.0)) * size
    return {
        "qkv projection": (own, hidden),
        "output projection": (hidden, heads / tensor * size),
        "gate and up projection": (2 * width / tensor, hidden),
        "down projection": (hidden, width / tensor),
    }


def _vidur_operators(frame: pd.DataFrame, context: Context, names: tuple[str, ...]) -> tuple[Operator, ...]:
    m, shapes = column(frame, "num_tokens"), vidur_shapes(frame)
    return tuple(products(m, *shapes[name], context.weights, name) for name in names)


def _vidur_left_out(frame: pd.DataFrame, context: Context, names: tuple[str, ...], time: str) -> Texts:
    operators = _vidur_operators(frame, context, names)
    largest = np.max([np.asarray(operator.cost.weight_bytes) for operator in operators], axis=0)
    total = np.sum([np.asarray(operator.cost.weight_bytes) for operator in operators], axis=0)
    cached = weights_are_cached(total if len(names) > 1 else largest, context)
    short = column(frame, time) < _FEWEST_TICKS
    return reasons(
        len(frame),
        (cached, _L2_HOT),
        (short, f"shorter than {_FEWEST_TICKS} us: the timer has steps of 1 us"),
        *too_fast(operators, column(frame, time) * 1e-6, context.profile),
    )


def _vidur(frame: pd.DataFrame, context: Context, names: tuple[str, ...]) -> Described:
    m = column(frame, "num_tokens")
    shape = np.char.add(
        np.char.add(np.asarray(frame["model"], dtype=np.str_), " tp"), labels(frame, "tp")
    ).astype(np.str_)
    return Described(
        _vidur_operators(frame, context, names), shape, regions(m, TOKEN_REGIONS, TOKENS_BEYOND), m
    )


# One tick of Vidur's timer is 2 % of it.
_FEWEST_TICKS: Final = 50.0
_VIDUR_TIMES: Final = dict(
    zip(
        PRODUCTS,
        ("attn_pre_proj_time_us", "attn_post_proj_time_us", "mlp_up_proj_time_us", "mlp_down_proj_time_us"),
        strict=True,
    )
)


def _vidur_kind(names: tuple[str, ...], time: str, variant: str) -> Kind:
    return Kind(
        name="layer operators",
        operator="linear" if len(names) == 1 else "layer",
        device="gpu",
        dtype="=bf16",
        engine="=vidur",
        time=time,
        numbers=("num_tokens", "n_head", "n_kv_head", "hidden", "ffn", "tp"),
        leave_out=partial(_vidur_left_out, names=names, time=time),
        describe=partial(_vidur, names=names),
        texts=("model",),
        variant=variant,
    )


LINEAR_KINDS: Final = (
    Kind(
        name="linear kernels",
        operator="linear",
        device="gpu",
        dtype="gemm_dtype",
        engine="engine",
        time="time_us",
        numbers=("m", "n", "k"),
        leave_out=_gemm_left_out,
        describe=_gemm,
    ),
    Kind(
        name="layers of linear kernels",
        operator="layer",
        device="gpu",
        dtype="dtype",
        engine="engine",
        time="layer_gemm_time_us",
        numbers=("m",),
        leave_out=_layer_left_out,
        describe=_layer,
        texts=("layer",),
    ),
    *(_vidur_kind((name,), time, name) for name, time in _VIDUR_TIMES.items()),
    _vidur_kind(PRODUCTS, "layer_gemm_time_us", ""),
)
