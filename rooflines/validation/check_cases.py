"""A file of speculation as cases: runs of one drafter, draft length and kind of prompt, cycle by cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rooflines.measurement.schema import Sample, SpeculationFile, SpeculationRun

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cycles:
    """C cycles, with what was timed beside them; all of shape [C].

    Attributes:
        draft_s: drafting (s).
        verify_s: the target's pass over the draft (s).
        other_s: the rest (s).
        plain_s: plain decoding of the tokens that the cycle emitted (s).
        tokens: tokens that plain decoding took for that.
        reported: tokens that the cycle says it yields, its own included.
        drafted: tokens proposed.
        width: positions verified.
        context: cached before the verify pass.
        step_sample_s: a pass of the target of that width, timed for its own sake (s); NaN where none was.
        draft_sample_s: a draft of that many tokens, from steps timed for their own sake (s); NaN likewise.
        plain_sample_s: a pass of one position, timed for its own sake (s); NaN likewise.
    """

    draft_s: Floats
    verify_s: Floats
    other_s: Floats
    plain_s: Floats
    tokens: Floats
    reported: Floats
    drafted: Floats
    width: Floats
    context: Floats
    step_sample_s: Floats
    draft_sample_s: Floats
    plain_sample_s: Floats

    def __len__(self) -> int:
        return len(self.draft_s)

    @property
    def cycle_s(self) -> Floats:
        """Time of each cycle (s)."""
        return self.draft_s + self.verify_s + self.other_s

    @property
    def has_samples(self) -> bool:
        """Whether components were timed beside every cycle."""
        return bool(np.all(np.isfinite(self.step_sample_s)) and np.all(np.isfinite(self.draft_sample_s)))

    @property
    def has_plain_samples(self) -> bool:
        """Whether a pass of one position was timed beside every cycle."""
        return bool(np.all(np.isfinite(self.plain_sample_s)))


@dataclass(frozen=True, slots=True)
class Case:
    """What is checked as one.

    Attributes:
        drafter: family.
        parameters: of the drafter.
        draft_length: gamma.
        prompt_kind: sort of prompts.
        temperature: of sampling.
        forced_acceptance: None where tokens earned it.
        runs: as recorded.
        cycles: of all runs.
    """

    drafter: str
    parameters: Mapping[str, object]
    draft_length: int
    prompt_kind: str
    temperature: float
    forced_acceptance: float | None
    runs: tuple[SpeculationRun, ...]
    cycles: Cycles

    @property
    def name(self) -> str:
        """What reports call it; equal names are equal cases of two files."""
        given = "".join(f" {key}={value}" for key, value in self.parameters.items())
        forced = "" if self.forced_acceptance is None else f" forced={self.forced_acceptance:g}"
        warm = f" temperature={self.temperature:g}" if self.temperature else ""
        return f"{self.drafter}{given}{forced}{warm} | draft {self.draft_length} | {self.prompt_kind}"


def cases_of(file: SpeculationFile) -> tuple[Case, ...]:
    """The cases of a file, in the order of their first runs."""
    grouped: dict[str, list[SpeculationRun]] = {}
    for run in file.runs:
        grouped.setdefault(_key(run), []).append(run)
    return tuple(_case(runs) for runs in grouped.values())


def _key(run: SpeculationRun) -> str:
    asked = (run.drafter, sorted(run.parameters.items()), run.draft_length, run.prompt_kind)
    return repr((asked, run.temperature, run.forced_acceptance))


def _case(runs: Sequence[SpeculationRun]) -> Case:
    first = runs[0]
    return Case(
        drafter=first.drafter,
        parameters=first.parameters,
        draft_length=first.draft_length,
        prompt_kind=first.prompt_kind,
        temperature=first.temperature,
        forced_acceptance=first.forced_acceptance,
        runs=tuple(runs),
        cycles=_joined([_cycles(run) for run in runs]),
    )


def _joined(parts: Iterable[Cycles]) -> Cycles:
    every = list(parts)
    names = [field.name for field in fields(Cycles)]
    return Cycles(*(np.concatenate([getattr(part, name) for part in every]) for name in names))


def _cycles(run: SpeculationRun) -> Cycles:
    def column(name: str) -> Floats:
        return np.array([getattr(cycle, name) for cycle in run.cycles], dtype=float)

    plain = np.asarray(run.plain_s)
    emitted = np.array([cycle.emitted for cycle in run.cycles])
    # Counts that contradict each other are a finding; plain steps are then spread evenly over the cycles.
    fits = emitted.sum() == len(plain)
    chunks = np.split(plain, np.cumsum(emitted)[:-1]) if fits else np.array_split(plain, len(emitted))
    width, drafted = column("verify_width"), column("drafted")
    step = _beside(run.samples, "step", width, pairs=lambda sample, cycle: sample.new_positions == cycle)
    once = _beside(run.samples, "draft", width, pairs=lambda _sample, _cycle: True)
    yields = [sample.new_positions for sample in run.samples if sample.case == "draft"]
    calls = np.maximum(np.ceil(drafted / max(yields)), 1.0) if yields else drafted
    return Cycles(
        draft_s=column("draft_s"),
        verify_s=column("verify_s"),
        other_s=column("other_s"),
        plain_s=np.array([chunk.sum() for chunk in chunks]),
        tokens=np.array([float(len(chunk)) for chunk in chunks]),
        reported=column("accepted") + 1.0,
        drafted=drafted,
        width=width,
        context=column("context"),
        step_sample_s=step,
        draft_sample_s=once * calls,
        plain_sample_s=_beside(run.samples, "plain", width, pairs=lambda _sample, _cycle: True),
    )


def _beside(
    samples: Sequence[Sample], case: str, widths: Floats, pairs: Callable[[Sample, float], bool]
) -> Floats:
    """The sample that belongs to each cycle: its own where there is one each, else the mean."""
    found = [sample for sample in samples if sample.case == case]
    if not found:
        return np.full(len(widths), np.nan)
    times = np.array([np.mean(sample.seconds) for sample in found])
    one_each = len(found) == len(widths) and all(map(pairs, found, widths))
    if one_each:
        return times
    if case != "step":
        return np.full(len(widths), times.mean())
    known = np.array([sample.new_positions for sample in found], dtype=float)
    distinct = np.unique(known)
    means = np.array([times[known == width].mean() for width in distinct])
    return np.asarray(np.interp(widths, distinct, means, left=np.nan, right=np.nan), dtype=float)
