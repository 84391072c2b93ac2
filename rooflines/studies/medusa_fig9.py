"""Medusa's Figure 9 (arXiv 2401.10774, appendix): where the operators of Llama stand on an A100-80GB-PCIe.

Six series, as the text of the paper names them: QKV projections, up/gate/down, and attention scores and
values, each in decode ("ar") and prefill ("init"), over 7 batches x 7 sequence lengths. Attained rates are
the textbook roofline's; whether the paper's are measured could not be read from its text. The paper runs
scores and values as two products, ours is one fused kernel that writes no scores: with them, prefill could
not pass s d / (2 d + s) < d = 128 FLOP/byte, below the ridge; without them it crosses the ridge as the
sequence grows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rooflines.costs.cost import Cost
from rooflines.costs.passes import decode_pass, prefill_pass
from rooflines.hardware.catalogue import load_hardware
from rooflines.models.readers import read_model
from rooflines.timing.roofline import attainable_flop_per_s

HARDWARE: Final = "a100-pcie-80gb"
MODELS: Final = {"7b": "llama-7b", "13b": "llama-13b", "33b": "llama-30b"}
BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)
LENGTHS: Final = (128, 256, 512, 1024, 2048, 4096, 8192)
SERIES: Final = {
    "qkv": ("qkv projection",),
    "up/gate/down": ("gate and up projection", "down projection"),
    "qk/pv": ("attention",),
}


def medusa_fig9(model: str, hardware: str = HARDWARE) -> dict[str, list[Any]]:
    """The points of one figure as columns: 6 series of 49 points.

    Args:
        model: preset of the model.
        hardware: the device; the paper's unless another is asked for.

    Returns:
        Columns `series`, `phase`, `batch`, `sequence_length`, `intensity_flop_per_byte`,
        `attained_flop_per_s`.
    """
    spec, profile = read_model(model), load_hardware(hardware)
    batch = np.asarray(BATCHES, dtype=float)[:, None]
    length = np.asarray(LENGTHS, dtype=float)[None, :]
    passes = {"ar": decode_pass(spec, batch, length), "init": prefill_pass(spec, batch, length)}
    columns: dict[str, list[Any]] = {
        "series": [],
        "phase": [],
        "batch": [],
        "sequence_length": [],
        "intensity_flop_per_byte": [],
        "attained_flop_per_s": [],
    }
    shape = (len(BATCHES), len(LENGTHS))
    for phase, forward in passes.items():
        for series, names in SERIES.items():
            cost = Cost()
            for operator in forward.operators:
                if operator.name in names:
                    cost = cost + operator.cost * operator.count
            intensity = np.broadcast_to(cost.intensity_flop_per_byte, shape)
            rate = attainable_flop_per_s(
                intensity, profile.peak_flop_per_s("fp16"), profile.bandwidth_bytes_per_s
            )
            columns["series"] += [series] * intensity.size
            columns["phase"] += [phase] * intensity.size
            columns["batch"] += [one for one in BATCHES for _ in LENGTHS]
            columns["sequence_length"] += list(LENGTHS) * len(BATCHES)
            columns["intensity_flop_per_byte"] += intensity.ravel().tolist()
            columns["attained_flop_per_s"] += np.asarray(rate).ravel().tolist()
    return columns
