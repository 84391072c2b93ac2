"""Constants of the time form.

The form (rooflines.timing.forms): t = ((flops / (e_f F))^p + (bytes / (e_b BW))^p)^(1/p) + t0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Constants:
    """What one operator class attains on one device; the defaults are the textbook roofline.

    Attributes:
        bandwidth_efficiency: e_b, attained share of the memory (or link) bandwidth.
        compute_efficiency: e_f, attained share of the dense peak.
        overhead_s: t0, time of a kernel that moves and computes nothing (s).
        sharpness: p of the smooth maximum; infinite is the hard maximum, 1 adds the two times.
        saturation_tokens: s0; the attained peak is e_f / (1 + s0 / n) for n new positions of prefill, or n
            positions per expert hit.
        narrow_tile_share: what is left of s0 while there is at most one position per expert: grouped
            products take their narrow tiles then. All of s0 counts from two on, and a share in between.
        token_overhead_s: time that each new position of a sequence adds to the floor, however many heads
            and sequences run beside it: the length of the loop that attention cannot divide (s).
        rank_overhead_s: time that each device beyond two adds to the floor of a collective (s).
        rank_contention: c; a link shared by N devices attains e_b (2 / N)^c (0 where every pair has its own).
        one_stage_bytes: up to four devices sum messages below this size in one stage, more devices those
            below half of it: each reads all that the others have; 0 knows no such kernel.
        bulk_overhead_s: latency that NCCL's protocol for large messages adds (s); another one is quick and
            moves half as many bytes a second, and the faster of the two runs. 0 knows one protocol.
        bulk_from_bytes: kernels that sum in one stage or two leave messages of this size or more to NCCL's
            protocol for large ones; 0 knows no such limit.
        wide_factor: how much longer attention takes from 64 query rows per key/value head on; nothing is
            added up to 32, and the factor grows evenly in between.
        kv_traffic: bytes of keys and values that prefill moves over those that it stores: it reads the new
            ones in 16 bits before it writes them in the format of the cache.
        padded_to_rows: a linear kernel computes on whole tiles of so many rows, or for fewer rows on the next
            power of two from 16 on; 0 prices the rows there are.
        smallest_tile_rows: a linear kernel cuts its output into the best of a menu of tiles of so many rows
            or more, and its units work on them in waves; 0 knows no tiles.
        tile_half_intensity: a tile of a by b outputs attains I / (I + this) of e_f, with I = a b / (a + b):
            larger tiles read each operand less often.
    """

    bandwidth_efficiency: float = 1.0
    compute_efficiency: float = 1.0
    overhead_s: float = 0.0
    sharpness: float = math.inf
    saturation_tokens: float = 0.0
    narrow_tile_share: float = 1.0
    token_overhead_s: float = 0.0
    rank_overhead_s: float = 0.0
    rank_contention: float = 0.0
    one_stage_bytes: float = 0.0
    bulk_overhead_s: float = 0.0
    bulk_from_bytes: float = 0.0
    wide_factor: float = 1.0
    kv_traffic: float = 1.0
    padded_to_rows: float = 0.0
    smallest_tile_rows: float = 0.0
    tile_half_intensity: float = 0.0


TEXTBOOK: Final = Constants()
# p = 2 to 3 gave errors within 0.2 points of each other on held-out products of nine GPUs (AIConfigurator
# 0.12.0 tables, https://pypi.org/project/aiconfigurator-core/, Apache-2.0).
DEFAULT_SHARPNESS: Final = 2.5
