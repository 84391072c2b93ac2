"""From what a run saw to what a file of measurements holds."""

from __future__ import annotations

import math
from typing import Final

from rooflines.measurement import schema
from rooflines.measurement.speculation.choices import DrafterChoice
from rooflines.measurement.speculation.loop import CycleRecord, Run, Sample, Wanted
from rooflines.measurement.speculation.prompts import Prompt

# Bits of the fraction, and exponent of the smallest normal number (IEEE 754; bf16 has the exponents of fp32).
_FORMATS: Final = {"fp32": (23, -126), "bf16": (7, -126), "fp16": (10, -14)}
# How many steps of the format may lie between two logits that passes of different widths put in either order.
# Hidden states are rounded in every layer, so it is more than the one step of the logits themselves: of 15
# divergences in 1463 tokens of SmolLM2-135M in bf16, 14 lay within one step and one at three.
NEAR_TIE_STEPS: Final = 4


def resolution(value: float, dtype: str) -> float:
    """Distance between neighbouring numbers of a format (``fp32``, ``bf16``, ``fp16``) near a value."""
    bits, smallest = _FORMATS[dtype]
    exponent = math.frexp(value)[1] - 1 if value else smallest
    return math.ldexp(1.0, max(exponent, smallest) - bits)


def speculation_run(
    run: Run, choice: DrafterChoice, prompt: Prompt, wanted: Wanted, dtype: str
) -> schema.SpeculationRun:
    """One run as a file holds it.

    Args:
        run: what was seen.
        choice: who drafted.
        prompt: what was continued.
        wanted: what was asked.
        dtype: of the arithmetic, for the rounding that divergences are compared with.
    """
    return schema.SpeculationRun(
        drafter=choice.family,
        parameters=dict(choice.parameters),
        prompt=prompt.name,
        prompt_kind=prompt.kind,
        draft_length=wanted.draft_length,
        temperature=wanted.sampling.temperature,
        forced_acceptance=wanted.forced_acceptance,
        cycles=tuple(_cycle(cycle) for cycle in run.cycles),
        plain_s=tuple(time.seconds for time in run.plain),
        plain_wall_s=tuple(time.wall_s for time in run.plain),
        samples=tuple(_sample(sample) for sample in run.samples),
        divergences=tuple(
            schema.Divergence(index=one.index, gap=one.gap, resolution=resolution(one.top_logit, dtype))
            for one in run.divergences
        ),
    )


def is_near_tie(divergence: schema.Divergence) -> bool:
    """Whether rounding alone explains that passes of different widths chose differently."""
    return divergence.gap <= NEAR_TIE_STEPS * divergence.resolution


def _cycle(cycle: CycleRecord) -> schema.Cycle:
    return schema.Cycle(
        draft_s=cycle.draft.seconds,
        verify_s=cycle.verify.seconds,
        other_s=cycle.other.seconds,
        wall_s=cycle.draft.wall_s + cycle.verify.wall_s + cycle.other.wall_s,
        drafted=cycle.drafted,
        accepted=cycle.accepted,
        emitted=cycle.emitted,
        verify_width=cycle.verify_width,
        context=cycle.context,
    )


def _sample(sample: Sample) -> schema.Sample:
    return schema.Sample(
        case=sample.case,
        batch=1,
        new_positions=sample.new_positions,
        context=sample.context,
        depth=sample.depth,
        cpu_s=(sample.time.cpu_s,),
        wall_s=(sample.time.wall_s,),
        device_s=() if sample.time.device_s is None else (sample.time.device_s,),
    )
