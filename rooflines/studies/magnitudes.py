"""The numbers that people reason from, as commonly quoted and as computed here, and why they differ."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rooflines.models.formats import remade
from rooflines.models.spec import ModelSpec
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.closed_form import walltime_improvement
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.deployment import Deployment

_H100: Final = "h100-sxm5-80gb"
_CONTEXT: Final = 1024.0
_RULE: Final = "rule of thumb"
# Prints 1.0 FLOP/byte, 140.0 GB and 23.9 tokens/s (41.8 ms) for 70B in 16 bits on an H100.
_CALCULATOR: Final = "https://www.aiinframap.com/tools/chips/memory-bandwidth-bottleneck-detector"
_ACCEPTANCES: Final = (0.5, 0.6, 0.7, 0.8, 0.9)
_LENGTHS: Final = (1, 2, 3, 4, 5, 6, 8)
_DRAFT_LAYERS: Final = 5
_BLOCK: Final = 16.0
_DEPTH: Final = 5
_COLUMNS: Final = ("quantity", "unit", "quoted", "source", "ours", "why they differ")


def magnitudes() -> dict[str, list[Any]]:
    """The table as columns; each number of ours is computed when it is asked for."""
    rows = [*_device_rows(), *_pass_rows(), *_draft_rows(), *_closed_form_rows()]
    return {name: [row[index] for row in rows] for index, name in enumerate(_COLUMNS)}


def large_draft_map() -> dict[str, list[Any]]:
    """Speedup of Llama-2-7B drafting for Llama-2-13B at batch 1, by acceptance (rows) and draft length."""
    target = _served("llama-2-13b", "a100-sxm4-80gb", "textbook")
    drafter = IndependentDrafter(_served("llama-2-7b", "a100-sxm4-80gb", "textbook"), target.model)
    times = cycle_times(target, drafter, 1.0, _CONTEXT, np.asarray(_LENGTHS, dtype=float)[None, :])
    alphas = np.asarray(_ACCEPTANCES)[:, None]
    speedups = np.broadcast_to(
        cycle(times, Acceptance.constant(alphas)).speedup, (len(_ACCEPTANCES), len(_LENGTHS))
    )
    columns: dict[str, list[Any]] = {"acceptance": list(_ACCEPTANCES)}
    return columns | {f"draft length {length}": speedups[:, j].tolist() for j, length in enumerate(_LENGTHS)}


def _served(
    model: str, hardware: str, calibration: str, weights: str | None = None, tensor: int = 1
) -> Deployment:
    machine = make_machine(hardware, calibration)
    return make_deployment(model, machine, weight_dtype=weights, tensor=tensor)


def _first_layers(spec: ModelSpec, count: int) -> ModelSpec:
    """The first layers of a model under its own head, as drafters that share the head are built."""
    return remade(spec, layers=spec.layers[:count])


def _device_rows() -> list[tuple[Any, ...]]:
    profile = make_machine(_H100, "textbook").profile
    peak = profile.peak_flop_per_s("bf16")
    return [
        (
            "H100-SXM ridge point, bf16",
            "FLOP/byte",
            330,
            "https://hawkvelt.id.au/post/2024-08-04-nvidia-h100",
            profile.ridge_point("bf16"),
            f"330 divides by the launch-time 3 TB/s ({peak / 3e12:.0f}); the shipped part has 3.35 TB/s",
        )
    ]


def _pass_rows() -> list[tuple[Any, ...]]:
    small, fp8 = _served("llama-3.1-8b", _H100, "textbook"), _served("llama-3.1-8b", _H100, "textbook", "fp8")
    large = _served("llama-3.1-70b", _H100, "textbook")
    verify = small.verify(1.0, _CONTEXT, 5.0).seconds / small.decode(1.0, _CONTEXT).seconds
    smooth = _served("llama-3.1-8b", _H100, "none")
    rounded = smooth.verify(1.0, _CONTEXT, 5.0).seconds / smooth.decode(1.0, _CONTEXT).seconds
    step_s = float(large.decode(1.0, _CONTEXT).seconds)
    return [
        ("decode intensity, bf16 weights", "FLOP/byte", 1, _CALCULATOR, _intensity(small), "2 FLOP per 2-byte weight; grouped-query attention does H / K = 4 FLOP per byte of KV"),
        ("decode intensity, fp8 weights", "FLOP/byte", 2, "2 FLOP per 1-byte weight", _intensity(fp8), "the head stays in 16 bits, and so does the KV cache"),
        ("70B weights, bf16", "GB", 140, _CALCULATOR, large.model.weight_bytes / 1e9, "Llama-3.1-70B has 70.55B parameters"),
        ("70B decode step on one H100's bandwidth, textbook", "ms", 41.8, _CALCULATOR, step_s * 1e3, "the input embedding is not read (2.1 GB), KV at context 1024 is; it does not fit in one card"),
        ("prompt from which an 8B prefill is bound by arithmetic (H100)", "tokens", 295, "ridge x 2 bytes / 2 FLOP", _prefill_crossing(small), "activations move too and the head reads its weights for one position, so it takes more tokens"),
        ("verify of 4 + 1 positions, batch 1, textbook", "target steps", "1.0-1.2", _RULE, float(verify), "weights and KV move once"),
        ("the same with default constants", "target steps", "1.0-1.2", _RULE, float(rounded), "a smooth maximum charges a little below the ridge"),
    ]  # fmt: skip


def _intensity(deployment: Deployment) -> float:
    total = [time.operator for time in deployment.decode(1.0, _CONTEXT).operators]
    flops = sum(float(one.cost.matmul_flops) * one.count for one in total)
    return flops / sum(float(one.cost.bytes_moved) * one.count for one in total)


def _prefill_crossing(deployment: Deployment) -> int:
    """The shortest prompt whose linear and attention operators together pass the ridge."""
    lengths = np.arange(1.0, 4096.0)
    flops: Any = 0.0
    moved: Any = 0.0
    for time in deployment.prefill(1.0, lengths).operators:
        flops = flops + time.operator.cost.matmul_flops * time.operator.count
        moved = moved + time.operator.cost.bytes_moved * time.operator.count
    ridge = deployment.machine.profile.ridge_point("bf16")
    return int(lengths[np.argmax(flops / moved >= ridge)])


def _draft_rows() -> list[tuple[Any, ...]]:
    target = _served("llama-3.1-70b", _H100, "none", tensor=4)
    step_s = float(target.decode(1.0, _CONTEXT).seconds)
    small = _served("llama-3.2-1b", _H100, "none", tensor=4)
    eight = _served("llama-3.1-8b", _H100, "none")
    eight_s = float(eight.decode(1.0, _CONTEXT).seconds)
    llama2 = _served("llama-2-7b", _H100, "none")
    llama2_s = float(llama2.decode(1.0, _CONTEXT).seconds)
    eagle = Deployment(_first_layers(llama2.model, 1), llama2.machine)
    eagle_wide = Deployment(_first_layers(eight.model, 1), eight.machine)
    block = Deployment(_first_layers(eight.model, _DRAFT_LAYERS), eight.machine)
    thirteen = _served("llama-2-13b", "a100-sxm4-80gb", "textbook").decode(1.0, _CONTEXT).seconds
    seven = _served("llama-2-7b", "a100-sxm4-80gb", "textbook").decode(1.0, _CONTEXT).seconds
    grid = large_draft_map()
    best = max(row[_ACCEPTANCES.index(0.8)] for name, row in grid.items() if name != "acceptance")
    eagle_paper = "https://arxiv.org/abs/2401.15077, figure 1"
    return [
        ("independent 1B draft of 4 for 70B on 4 x H100", "target steps", 0.2, "c = 0.05 x 4", 4 * float(small.decode(1.0, _CONTEXT).seconds) / step_s, "a small model is bound by per-kernel floors and all-reduces, not by its bytes"),
        ("EAGLE: one layer and the head, 5 steps, for Llama-2-7B", "target steps", "0.15-0.3", _RULE, _DEPTH * float(eagle.decode(1.0, _CONTEXT).seconds) / llama2_s, "within; a plain operator list"),
        ("the same for Llama-3.1-8B", "target steps", "0.15-0.3", _RULE, _DEPTH * float(eagle_wide.decode(1.0, _CONTEXT).seconds) / eight_s, "the shared head has 128k rows instead of 32k and outweighs the layer (EAGLE-3 drafts from 32k rows of its own)"),
        ("DFlash: five layers, one pass over a block of 16, for 8B", "target steps", "0.1-0.2", "https://arxiv.org/abs/2602.06036, figure 3", float(block.verify(1.0, _CONTEXT, _BLOCK).seconds) / eight_s, "five of 32 layers and the head; a plain operator list without KV injection"),
        ("7B draft for a 13B target, cost ratio", "c", "N/A", eagle_paper, float(seven / thirteen), "the figure prints no bar: the draft costs half the target"),
        ("the same, best speedup at acceptance 0.8", "x", "N/A", eagle_paper, best, "at most 1.2, and below 1 for lower acceptance or longer drafts: see the map"),
    ]  # fmt: skip


def _closed_form_rows() -> list[tuple[Any, ...]]:
    tau = float(Acceptance.constant(0.8).tokens_per_cycle(4))
    eta = float(walltime_improvement(0.8, 4, 0.05))
    paper = "https://arxiv.org/abs/2211.17192"
    return [
        ("tokens per cycle at acceptance 0.8, draft length 4", "tokens", 3.28, "often printed", tau, "(1 - 0.8^5) / (1 - 0.8) = 3.3616"),
        ("speedup of the same at cost ratio 0.05, verify free", "x", "2.7-2.8", f"{paper}, theorem 3.8", eta, "none"),
    ]  # fmt: skip
