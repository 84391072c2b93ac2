"""Rows that measured something else than the kernel's own time on the device: found, and named.

What the tables hold is told by how they were made (https://github.com/ai-dynamo/aiconfigurator/tree/main/collector):
loops that reuse few copies of the weights read them from a cache; kernels that are not replayed from a CUDA
graph are as slow as the host launches them; some engines have one odd kernel for a single position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Operator
from rooflines.hardware.profile import HardwareProfile
from rooflines.validation.kernel_tables.rows import Chosen, Floats, Texts

if TYPE_CHECKING:
    from collections.abc import Sequence

Rule = tuple[Chosen, str]
# No memory system beats its datasheet; 2 % is left for the timer and for rounding of the stated bandwidth.
_FASTEST_SHARE: Final = 1.02
# Kernels that the roofline puts below 10 us take 5-20 us on every device and engine of AIConfigurator 0.12.0
# when replayed from a graph, and 60-540 us where the host launches them one by one.
_SHORT_S: Final = 10e-6
_HOST_FLOOR_S: Final = 50e-6
_NEAR_FLOOR: Final = 1.5
_FEW_ROWS: Final = 4
# A kernel for one position that is this much slower than those for two to four is another implementation.
_ODD_RATIO: Final = 1.25
_FEW_POSITIONS: Final = 4


def plain_roofline_s(operator: Operator, profile: HardwareProfile) -> tuple[Floats, Floats]:
    """Memory and compute time (N) of an operator at the datasheet's numbers (s)."""
    memory = np.asarray(operator.cost.bytes_moved, dtype=float) / profile.bandwidth_bytes_per_s
    compute = np.asarray(operator.cost.matmul_flops, dtype=float) / profile.peak_flop_per_s(
        operator.arithmetic
    )
    return memory, compute


def too_fast(operators: Sequence[Operator], seconds: Floats, profile: HardwareProfile) -> Sequence[Rule]:
    """Rows that took less than the memory or the arithmetic allows their operators, one after another."""
    memory, compute = np.sum([plain_roofline_s(operator, profile) for operator in operators], axis=0)
    return (
        (memory > seconds * _FASTEST_SHARE, "faster than the memory allows: read from a cache"),
        (compute > seconds * _FASTEST_SHARE, "faster than the stated dense peak allows"),
    )


def host_bound(operator: Operator, seconds: Floats, profile: HardwareProfile) -> Sequence[Rule]:
    """Rows of a group whose short kernels all wait for the host."""
    short = np.maximum(*plain_roofline_s(operator, profile)) < _SHORT_S
    if np.count_nonzero(short) < _FEW_ROWS:
        return ()
    floor = float(np.quantile(seconds[short], 0.1))
    if floor < _HOST_FLOOR_S:
        return ()
    waits = seconds < _NEAR_FLOOR * floor
    return (
        (
            waits,
            f"launched by the host, not from a graph: no kernel of the group is below {floor * 1e6:.0f} us",
        ),
    )


def odd_single_row(positions: Floats, shape: Texts, seconds: Floats) -> Sequence[Rule]:
    """Rows of one position that are slower than those of two to four positions of the same weights."""
    few = (positions > 1) & (positions <= _FEW_POSITIONS)
    odd = np.zeros(len(seconds), dtype=np.bool_)
    for row in np.flatnonzero(positions == 1):
        others = seconds[few & (shape == shape[row])]
        odd[row] = bool(len(others)) and seconds[row] > _ODD_RATIO * float(np.median(others))
    return ((odd, "the kernel for one position is an outlier: slower than for two to four"),)
