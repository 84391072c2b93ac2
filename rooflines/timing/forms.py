"""The time forms: how FLOPs, bytes and constants become seconds.

All take numbers or NumPy arrays that broadcast.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from rooflines.costs.cost import Number

# Kernels that pack new positions and query heads of a kv head took the same time for 1, 16 and 32 rows on
# HBM-bound caches (0.97-1.03, H100, H200 and Blackwell, AIConfigurator 0.12.0 tables,
# https://pypi.org/project/aiconfigurator-core/); from 64 rows on it depends on the kernel.
NARROW_QUERY_ROWS: Final = 32.0
# Data in what the quick protocol of NCCL moves (see `faster_protocol_s`).
QUICK_PROTOCOL_SHARE: Final = 0.5
# Fewest rows of a matrix instruction (mma.m16n8k16, NVIDIA PTX ISA, warp-level matrix instructions).
FEWEST_ROWS: Final = 16.0
# Most devices of which each reads messages of up to the full size from every other in one stage.
_FEW_RANKS: Final = 4
# Tiles (rows, outputs) that one unit works on at a time. Those of 64 rows and more are the ones of cuBLAS
# (NVIDIA, Matrix Multiplication Background User's Guide, section GPU Implementation); smaller ones serve
# kernels written for few rows, such as those of quantised weights.
TILES: Final = (
    (16.0, 64.0),
    (16.0, 128.0),
    (32.0, 64.0),
    (32.0, 128.0),
    (64.0, 64.0),
    (64.0, 128.0),
    (128.0, 64.0),
    (64.0, 256.0),
    (256.0, 64.0),
    (128.0, 128.0),
    (128.0, 256.0),
    (256.0, 128.0),
)


def smooth_maximum(one: Number, other: Number, sharpness: float) -> Number:
    """(a^p + b^p)^(1/p): the sum for p = 1, the hard maximum for p = inf.

    Args:
        one: a, 0 or more.
        other: b, 0 or more.
        sharpness: p, 1 or more.
    """
    if math.isinf(sharpness):
        return np.maximum(one, other) if np.ndim(one) or np.ndim(other) else max(one, other)
    if sharpness == 1:
        return one + other
    high = np.maximum(one, other)
    # The ratio is at most 1, so nothing overflows; where both are 0 the result is 0.
    result = np.asarray(_ratio(np.minimum(one, other), high), dtype=float)
    # In place: of millions of points, fresh memory would cost more than the arithmetic.
    np.power(result, sharpness, out=result)
    result += 1.0
    np.power(result, 1.0 / sharpness, out=result)
    result *= high
    return float(result) if np.ndim(result) == 0 else result


def _ratio(low: Number, high: Number) -> Number:
    """Quotient of the two as a new array; 0 where `high` is."""
    if np.size(high) and np.min(high) > 0:
        return low / high
    return np.divide(low, high, out=np.zeros(np.shape(high)), where=np.asarray(high) > 0)


def saturating(efficiency: float, tokens: Number, saturation_tokens: Number) -> Number:
    """An efficiency that grows with the length it works on: e / (1 + s0 / n)."""
    if np.ndim(saturation_tokens) == 0 and not saturation_tokens:
        return efficiency
    return efficiency / (1.0 + saturation_tokens / np.maximum(tokens, 1.0))


def sent_share(ranks: int) -> float:
    """Bytes that each of N devices sends to sum a message, over those of the message."""
    return 2.0 * (ranks - 1.0) / ranks


def faster_protocol_s(bulk_s: Number, bulk_overhead_s: float) -> Number:
    """Time of a message by the faster of two protocols, as NCCL chooses (s).

    The quick one (LL) stores 4 bytes of a flag with each 4 bytes of data, so it has half of the bandwidth;
    the one for large messages (Simple) waits for fences at each hop (Hu et al. 2025, Demystifying NCCL,
    https://arxiv.org/abs/2507.04786; src/graph/tuning.cc of https://github.com/NVIDIA/nccl).

    Args:
        bulk_s: time of its bytes at the bandwidth of the protocol for large messages (s).
        bulk_overhead_s: latency that this protocol adds (s).
    """
    return np.minimum(bulk_s / QUICK_PROTOCOL_SHARE, bulk_s + bulk_overhead_s)


def reduced_bytes(sent: Number, ranks: int, share: float, one_stage_bytes: float) -> Number:
    """Bytes over an unshared link that take as long as summing a message with other devices.

    In one stage each device reads the N - 1 messages of the others; in two it sums its part of the message
    and gathers the other parts, with one more barrier. Custom kernels change from one to two at a size that
    halves beyond four devices (vLLM, csrc/custom_all_reduce.cuh, https://github.com/vllm-project/vllm). That
    size is taken as the one where both take as long, which prices the barrier.

    Args:
        sent: 2 (N - 1) / N of the message (bytes).
        ranks: devices N, 2 or more.
        share: of a link's bandwidth that a device has in two stages.
        one_stage_bytes: least message of four devices or fewer that takes two stages (bytes).
    """
    change = one_stage_bytes if ranks <= _FEW_RANKS else one_stage_bytes / 2.0
    in_two = sent_share(ranks)
    message = sent / in_two
    barrier = max((ranks - 1.0 - in_two / share) * change, 0.0)
    return np.where(np.asarray(message) < change, (ranks - 1.0) * message, sent / share + barrier)


def widened(query_rows: Number, factor: float) -> Number:
    """How much longer attention takes for its query rows: 1 up to 32, `factor` from 64 on, linear between."""
    if factor == 1.0:
        return 1.0
    return 1.0 + (factor - 1.0) * np.clip(np.asarray(query_rows) / NARROW_QUERY_ROWS - 1.0, 0.0, 1.0)


def padded_rows(rows: Number, tile_rows: float) -> Number:
    """Rows that a kernel computes on: whole tiles, or the next power of two from 16 on below one tile.

    Args:
        rows: m, 1 or more.
        tile_rows: rows of a tile, a power of two.
    """
    small = 2.0 ** np.ceil(np.log2(np.maximum(rows, FEWEST_ROWS)))
    return np.where(np.asarray(rows) <= tile_rows, small, np.ceil(np.asarray(rows) / tile_rows) * tile_rows)


def tiled_work(
    rows: Number, outputs: Number, smallest_rows: float, half_intensity: float, units: float | None
) -> Number:
    """Work of a product cut into tiles over its useful work: the least among `TILES`.

    Tiles are worked on in waves of one per unit, and the last wave takes as long as a full one (NVIDIA,
    Matrix Multiplication Background User's Guide, sections Tile Quantization and Wave Quantization,
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/). A tile of a by b
    outputs attains I / (I + half_intensity), I = a b / (a + b), since it reads a + b operands a step.

    Args:
        rows: m, 1 or more.
        outputs: n, 1 or more.
        smallest_rows: fewest rows of a tile.
        half_intensity: I of a tile that attains half of the share of an endless one.
        units: compute units; None leaves waves out, so that only the edges of tiles are lost.
    """
    useful = np.asarray(rows) * outputs
    least: Number = math.inf
    by_height = {high: np.ceil(np.asarray(rows) / high) for high, _ in TILES if high >= smallest_rows}
    for high, wide in TILES:
        if high < smallest_rows:
            continue
        tiles: Number = by_height[high] * np.ceil(outputs / wide)
        if units is not None:
            tiles = np.ceil(tiles / units) * units
        loss = 1.0 + half_intensity * (high + wide) / (high * wide)
        least = np.minimum(least, tiles * (high * wide) / useful * loss)
    return least
