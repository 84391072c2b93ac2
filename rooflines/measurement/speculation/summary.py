"""A file of speculation at a glance: measured ratios of each run, and whether the two decoders agree."""

from __future__ import annotations

from collections.abc import Sequence

from rooflines.measurement.schema import SpeculationFile, SpeculationRun
from rooflines.measurement.speculation.record import NEAR_TIE_STEPS, is_near_tie
from rooflines.rows import as_columns


def measured_speedup(run: SpeculationRun) -> float:
    """Time of plain decoding / time of speculative decoding of the same tokens, both of this run."""
    cycles_s = sum(cycle.draft_s + cycle.verify_s + cycle.other_s for cycle in run.cycles)
    return sum(run.plain_s) / cycles_s


def table(runs: Sequence[SpeculationRun]) -> dict[str, list[object]]:
    """Columns of a table with a row a run; costs are in plain decode steps of the same run."""
    return as_columns(map(_row, runs))


def agreement(file: SpeculationFile) -> str:
    """Whether speculation said what plain decoding says, and what explains it where it did not."""
    compared = [run for run in file.runs if run.forced_acceptance is None and not run.temperature]
    if not compared:
        return "Speculative and plain decoding are not compared: tokens were sampled, or forced."
    apart = [one for run in compared for one in run.divergences]
    tokens = sum(len(run.plain_s) for run in compared)
    if not apart:
        return f"Speculative and plain decoding agree in all {tokens} tokens of {len(compared)} greedy runs."
    split = sum(bool(run.divergences) for run in compared)
    ties = sum(map(is_near_tie, apart))
    text = (
        f"Speculative and plain decoding differ in {len(apart)} of {tokens} tokens, in {split} of "
        f"{len(compared)} greedy runs. In {ties} of these the two best logits are within {NEAR_TIE_STEPS} "
        f"roundings of {file.inputs.dtype}: passes of different widths round differently."
    )
    if ties == len(apart):
        return text
    return f"{text} {len(apart) - ties} are farther apart than rounding explains: look for a fault."


def _row(run: SpeculationRun) -> dict[str, object]:
    step_s = sum(run.plain_s) / len(run.plain_s)
    cycles, tokens = len(run.cycles), sum(cycle.emitted for cycle in run.cycles)
    drafted = sum(cycle.drafted for cycle in run.cycles)
    draft_s, verify_s, other_s = (
        sum(getattr(cycle, part) for cycle in run.cycles) for part in ("draft_s", "verify_s", "other_s")
    )
    parameters = "".join(f" {key}={value}" for key, value in run.parameters.items())
    forced = "" if run.forced_acceptance is None else f" forced={run.forced_acceptance:g}"
    return {
        "drafter": f"{run.drafter}{parameters}{forced}",
        "prompt": run.prompt,
        "draft_length": run.draft_length,
        "tokens": tokens,
        "tokens_per_cycle": tokens / cycles,
        "accepted_share": sum(cycle.accepted for cycle in run.cycles) / drafted if drafted else None,
        "cost_ratio": draft_s / drafted / step_s if drafted else None,
        "verify_cost": verify_s / cycles / step_s,
        "other_cost": other_s / cycles / step_s,
        "speedup": measured_speedup(run),
        "divergences": len(run.divergences),
    }
