"""The numbers behind the figures that people expect: one table a figure, computed when it is asked for.

Settings are common ones, stated here once; none of them is a default of any command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rooflines.rows import Columns, Row, as_columns
from rooflines.serving.memory import largest_batch
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_presets import acceptance_preset
from rooflines.speculation.acceptance_text import parse_rates
from rooflines.speculation.crossover import end_of, search_batches
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_pareto
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.studies.verify_cost import verify_rows

H100: Final = "h100-sxm5-80gb"
EIGHT_B: Final = "llama-3.1-8b"
CONTEXT: Final = 1024

VERIFY_DEVICES: Final = ("b200-sxm-180gb", H100, "a100-sxm4-80gb", "mi300x", "l40s", "rtx-4090")
VERIFY_BATCHES: Final = (1, 32)
VERIFY_WIDTHS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)

SURFACE_TARGET: Final = ("llama-3.1-70b", 4)
SURFACE_DRAFTER: Final = "independent:llama-3.2-1b"
SURFACE_BATCHES: Final = (1, 64)
SURFACE_LENGTHS: Final = tuple(range(1, 13))
SURFACE_ACCEPTANCES: Final = tuple(percent / 100 for percent in range(30, 100, 2))
SURFACE_CONTEXT: Final = 2048

CROSSOVER_TARGET: Final = "qwen3-8b"
# Drafter -> published acceptance of chat prompts, the lowest of three (DSpark, arXiv 2607.05147, table 1).
CROSSOVER_DRAFTERS: Final = {
    "eagle3:qwen3-8b-eagle3": "preset:eagle3-qwen3-8b-mt-bench",
    "dflash:qwen3-8b-dflash": "preset:dflash-qwen3-8b-mt-bench",
    "dspark:qwen3-8b-dspark": "preset:dspark-qwen3-8b-mt-bench",
}
CROSSOVER_LENGTHS: Final = (1, 2, 3, 4, 5, 6, 7)
KEPT_LENGTHS: Final = (1, 3, 7)
CROSSOVER_CONTEXTS: Final = (512, 2048, 8192)
_MOST_BATCHES: Final = 1024
_BATCH_POINTS: Final = 60

DECAY_DRAFTERS: Final = ("eagle3", "dflash", "dspark")
DECAY_TASKS: Final = ("math", "chat")

CYCLE_DRAFTERS: Final = (
    "independent:llama-3.2-1b",
    "eagle3",
    "eagle3:topk=10,nodes=59",
    "medusa",
    "dflash",
    "ngram",
    "layerskip:layers=8",
    "quantized:int4-g128",
)
CYCLE_BATCHES: Final = (1, 64)
CYCLE_LENGTH: Final = 5
CYCLE_ACCEPTANCE: Final = 0.75

PARETO_QUESTION: Final = CapacityQuestion(
    options=(ServedOption(H100, drafters=(SURFACE_DRAFTER, "eagle3")),),
    target=EIGHT_B,
    prompt_tokens="1024",
    output_tokens="512",
    acceptance=("0.75",),
    draft_length="0..8",
)


def verify_cost() -> Columns:
    """Time of a pass of n positions a sequence over a plain step, by device and batch."""
    targets = [make_deployment(EIGHT_B, make_machine(hardware)) for hardware in VERIFY_DEVICES]
    return as_columns(
        row for target in targets for row in verify_rows(target, VERIFY_BATCHES, CONTEXT, VERIFY_WIDTHS)
    )


def speedup_surface() -> Columns:
    """Speedup over acceptance and draft length, of a small model drafting for a large one."""
    model, tensor = SURFACE_TARGET
    target = make_deployment(model, make_machine(H100), tensor=tensor)
    drafter = make_drafter(SURFACE_DRAFTER, target)
    batches = np.asarray(SURFACE_BATCHES, dtype=float)[:, None, None]
    alphas = np.asarray(SURFACE_ACCEPTANCES)[None, :, None]
    lengths = np.asarray(SURFACE_LENGTHS, dtype=float)[None, None, :]
    times = cycle_times(target, drafter, batches, SURFACE_CONTEXT, lengths)
    shape = (len(SURFACE_BATCHES), len(SURFACE_ACCEPTANCES), len(SURFACE_LENGTHS))
    speedups = np.broadcast_to(cycle(times, Acceptance.constant(alphas)).speedup, shape)
    return as_columns(
        {
            "batch": batch,
            "acceptance": alpha,
            "draft_length": length,
            "speedup": float(speedups[i, j, k]),
        }
        for i, batch in enumerate(SURFACE_BATCHES)
        for j, alpha in enumerate(SURFACE_ACCEPTANCES)
        for k, length in enumerate(SURFACE_LENGTHS)
    )


def batch_crossovers() -> Columns:
    """Speedup against batch and where it ends: at draft lengths that are kept, by drafter, and by context."""
    first, published = next(iter(CROSSOVER_DRAFTERS.items()))
    shortest, *_ = CROSSOVER_CONTEXTS
    kept = [
        row
        for length in KEPT_LENGTHS
        for row in _crossover_rows("draft length kept", first, published, shortest, (length,))
    ]
    best = [
        row
        for name, rates in CROSSOVER_DRAFTERS.items()
        for row in _crossover_rows("best draft length", name, rates, shortest, CROSSOVER_LENGTHS)
    ]
    longer = [
        row
        for context in CROSSOVER_CONTEXTS
        for row in _crossover_rows("context", first, published, context, CROSSOVER_LENGTHS)
    ]
    return as_columns([*kept, *best, *longer])


def _crossover_rows(panel: str, name: str, published: str, context: int, lengths: Sequence[int]) -> list[Row]:
    target = make_deployment(CROSSOVER_TARGET, make_machine(H100))
    drafter = make_drafter(name, target)
    room = min(largest_batch(target, drafter, context, float(max(lengths))), _MOST_BATCHES)
    found = search_batches(
        target, drafter, parse_rates(published), lengths, float(context), largest_batch=room
    )
    end = end_of(found, target, drafter, float(context))
    batches = np.unique(np.geomspace(1, room, _BATCH_POINTS).round().astype(int)).tolist()
    return [
        {
            "panel": panel,
            "drafter": name,
            "context": context,
            "batch": batch,
            "draft_length": found.draft_lengths[int(found.speedups[batch - 1].argmax())],
            "speedup": float(found.speedups[batch - 1].max()),
            "stops_paying_at": end.batch,
            "operator": end.operator,
        }
        for batch in batches
    ]


def acceptance_decay() -> Columns:
    """Published acceptance by drafted position (DSpark, arXiv 2607.05147, figure 2, read off)."""
    rows: list[Row] = []
    for task in DECAY_TASKS:
        for kind in DECAY_DRAFTERS:
            preset = acceptance_preset(f"{kind}-qwen3-4b-{task}")
            rates = preset.acceptance()
            length = len(rates.listed)
            profiles = zip(rates.conditional_profile(length), rates.survival_profile(length), strict=True)
            rows += [
                {
                    "drafter": preset.drafter,
                    "target": preset.target,
                    "task": task,
                    "position": position,
                    "acceptance": float(conditional),
                    "survival": float(survival),
                    "source": f"{preset.source}, {preset.where}",
                }
                for position, (conditional, survival) in enumerate(profiles, start=1)
            ]
    return as_columns(rows)


def cycle_breakdown() -> Columns:
    """Draft and verify of one cycle in plain decode steps, by drafter and batch."""
    rows: list[Row] = []
    target = make_deployment(EIGHT_B, make_machine(H100))
    for name in CYCLE_DRAFTERS:
        drafter = make_drafter(name, target)
        for batch in CYCLE_BATCHES:
            times = cycle_times(target, drafter, float(batch), CONTEXT, float(CYCLE_LENGTH))
            outcome = cycle(times, Acceptance.constant(CYCLE_ACCEPTANCE))
            step_s = float(outcome.target_step_s)
            rows.append(
                {
                    "drafter": name,
                    "batch": batch,
                    "draft_length": CYCLE_LENGTH,
                    "verify_width": float(outcome.verify_width),
                    "step_s": step_s,
                    "draft_steps": float(outcome.draft_s) / step_s,
                    "verify_steps": float(outcome.verify_s) / step_s,
                    "cycle_cost": float(outcome.cycle_cost),
                    "tokens_per_cycle": float(outcome.tokens_per_cycle),
                    "speedup": float(outcome.speedup),
                }
            )
    return as_columns(rows)


def pareto() -> Columns:
    """Tokens per second of a card against tokens per second of a user, batch by batch."""
    return as_columns(make_pareto(PARETO_QUESTION))
