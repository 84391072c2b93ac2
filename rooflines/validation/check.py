"""The check of a file of speculation: does what was measured follow from what is known?

A case fails where either layer of `rooflines.validation.check_layers` disagrees, where a rule of
`rooflines.validation.check_rules` is broken by more than the tolerance, or where it became slower than an
accepted run by more than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.errors import InputError
from rooflines.hardware.calibration import Calibration
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.schema import SpeculationFile
from rooflines.speculation.closed_form import constant_acceptance, walltime_improvement
from rooflines.validation.check_cases import Case, Floats, cases_of
from rooflines.validation.check_layers import (
    Interval,
    Layer,
    Part,
    Verdict,
    composition,
    judge,
    measured_speedup,
    roofline,
    shares,
    weights,
)
from rooflines.validation.check_roofline import Predicted, Roofline, machine_speed
from rooflines.validation.check_rules import Finding, implausible, overused

DEFAULT_TOLERANCE: Final = 0.15
EXIT_CODES: Final[Mapping[Verdict, int]] = {"agree": 0, "disagree": 1, "cannot tell": 3}
# Later verdicts outweigh earlier ones.
_ORDER: Final[tuple[Verdict, ...]] = ("agree", "cannot tell", "disagree")


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a case since an accepted run.

    Attributes:
        accepted: speedup of then.
        difference: ln(accepted / measured): above 0 it is slower now.
        causes: what each part adds to the difference, in shares of a plain step.
        verdict: disagree where it is slower by more than the tolerance.
        faster: whether it is faster by more than the tolerance.
    """

    accepted: Interval
    difference: Interval
    causes: Mapping[Part, float]
    verdict: Verdict
    faster: bool

    @property
    def largest(self) -> Part:
        """The part that slowed it down most."""
        return max(self.causes, key=lambda part: self.causes[part])


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """One case, judged.

    Attributes:
        name: of the case.
        draft_length: gamma.
        cycles: how many were measured.
        tokens_per_cycle: tau, as plain decoding counts it.
        measured: speedup.
        layers: predictions, as far as they could be made.
        leviathan: what theorem 3.8 makes of the run's acceptance and cost ratio; None where it says nothing.
        findings: what is implausible.
        change: since the accepted run; None without one.
        verdict: of all these together.
        fault: the part at fault; None where nothing is.
    """

    name: str
    draft_length: int
    cycles: int
    tokens_per_cycle: float
    measured: Interval
    layers: tuple[Layer, ...]
    leviathan: float | None
    findings: tuple[Finding, ...]
    change: Change | None
    verdict: Verdict
    fault: Part | None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A file, judged.

    Attributes:
        source: name of the file.
        tolerance: largest ratio - 1 that passes.
        cases: of the file.
        notes: what the verdict rests on and what was not checked.
    """

    source: str
    tolerance: float
    cases: tuple[CaseCheck, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of the cases."""
        return max((case.verdict for case in self.cases), key=_ORDER.index)

    @property
    def exit_code(self) -> int:
        """0 agree, 1 disagree, 3 cannot tell."""
        return EXIT_CODES[self.verdict]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a file is held against besides itself.

    Attributes:
        profile: of the machine.
        calibration: fitted to other measurements of it.
    """

    profile: HardwareProfile
    calibration: Calibration


def check_speculation(
    file: SpeculationFile,
    source: str,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    reference: Reference | None = None,
    baseline: SpeculationFile | None = None,
) -> CheckReport:
    """Judge every case of a file.

    Args:
        file: runs of the speculative loop; nothing of it was fitted.
        source: its name.
        tolerance: largest ratio - 1 between predicted and measured speedup that passes.
        reference: adds the roofline layer; None checks the composition alone.
        baseline: an accepted run to compare with.

    Raises:
        InputError: a tolerance that is not above 0, or a baseline that shares no case with the file.
        RooflinesError: the model of the file is not understood.
    """
    if not 0 < tolerance < math.inf:
        raise InputError(f"tolerance is {tolerance}: it must be above 0, such as 15%")
    cases = cases_of(file)
    roof = _roofline(file, reference)
    predicted = [None if roof is None else roof.predict(case) for case in cases]
    speeds = _speeds(cases, predicted)
    overhead_s = float(np.median(np.concatenate([case.cycles.other_s for case in cases])))
    then = {case.name: case for case in cases_of(baseline)} if baseline else {}
    if baseline and not {case.name for case in cases} & set(then):
        raise InputError(
            f"the baseline shares no case with {source}: it has {'; '.join(then)}; measure the same "
            "drafters, draft lengths and kinds of prompt"
        )
    judged = []
    for case, known, speed in zip(cases, predicted, speeds, strict=True):
        drawn = weights(len(case.cycles))
        layers = [composition(case, drawn, overhead_s, tolerance)]
        if roof is not None and known is not None:
            layers.append(
                roofline(
                    case,
                    drawn,
                    known,
                    speed=speed,
                    overhead_s=overhead_s,
                    tolerance=tolerance,
                    basis=roof.machine.basis,
                )
            )
        measured = Interval.of(np.log(measured_speedup(case.cycles, drawn)), len(case.cycles)).exp
        findings = implausible(case, measured, tolerance)
        if roof is not None:
            findings = (*findings, *overused(case, roof.model, roof.machine.profile))
        change = _change(case, then.get(case.name), tolerance)
        judged.append(_judged(case, measured, [one for one in layers if one], findings, change))
    return CheckReport(source, tolerance, tuple(judged), _notes(file, cases, roof, then))


def _roofline(file: SpeculationFile, reference: Reference | None) -> Roofline | None:
    if reference is None:
        return None
    return Roofline.of(file.inputs, reference.profile, reference.calibration)


def _speeds(cases: Sequence[Case], predicted: Sequence[Predicted | None]) -> tuple[float, ...]:
    """How much slower than calibrated the machine ran during each case."""
    votes = []
    for case, known in zip(cases, predicted, strict=True):
        if known is None:
            return (1.0,) * len(cases)
        cycles = case.cycles
        passes = cycles.step_sample_s if cycles.has_samples else cycles.verify_s
        own = {
            "plain": float(cycles.plain_s.sum() / known.plain_s.sum()),
            "passes": float(passes.sum() / known.verify_s.sum()),
        }
        if known.draft_s is not None:
            drafts = cycles.draft_sample_s if cycles.has_samples else cycles.draft_s
            own["draft"] = float(drafts.sum() / known.draft_s.sum())
        votes.append(own)
    return machine_speed(votes)


def _judged(
    case: Case,
    measured: Interval,
    layers: Sequence[Layer],
    findings: tuple[Finding, ...],
    change: Change | None,
) -> CaseCheck:
    faults = [finding for finding in findings if finding.severity == "fault"]
    verdicts: list[Verdict] = [layer.verdict for layer in layers] or ["cannot tell"]
    verdicts += ["disagree"] if faults else []
    verdicts += [change.verdict] if change else []
    verdict = max(verdicts, key=_ORDER.index)
    return CaseCheck(
        name=case.name,
        draft_length=case.draft_length,
        cycles=len(case.cycles),
        tokens_per_cycle=float(case.cycles.tokens.sum() / len(case.cycles)),
        measured=measured,
        layers=tuple(layers),
        leviathan=_leviathan(case),
        findings=findings,
        change=change,
        verdict=verdict,
        fault=_fault(layers, faults, change),
    )


def _fault(layers: Sequence[Layer], faults: Sequence[Finding], change: Change | None) -> Part | None:
    """The part at fault, by the calibration, which knows what each should cost, else by the run itself."""
    for layer in reversed(layers):
        if layer.verdict == "disagree":
            return layer.largest
    if faults:
        return faults[0].part
    if change and change.verdict == "disagree":
        return change.largest
    return None


def _leviathan(case: Case) -> float | None:
    """Theorem 3.8 from the run's own numbers: alpha that gives its tau, c of its drafts, verify for free."""
    cycles = case.cycles
    tau = float(cycles.reported.mean())
    if not 1.0 <= tau <= case.draft_length + 1.0:
        return None
    alpha = constant_acceptance(tau, case.draft_length)
    step_s = cycles.plain_s.sum() / cycles.tokens.sum()
    ratio = float(cycles.draft_s.mean() / case.draft_length / step_s)
    return float(walltime_improvement(alpha, case.draft_length, ratio))


def _change(case: Case, then: Case | None, tolerance: float) -> Change | None:
    """The same case of an accepted run.

    The same prompts yield the same tokens per cycle, so tau is compared as it is; what a cycle costs in plain
    steps is bootstrapped, in each run apart.
    """
    if then is None:
        return None
    draws = [weights(len(one.cycles), seed) for seed, one in enumerate((case, then))]
    now_cost, then_cost = (_cycle_cost(one, drawn) for one, drawn in zip((case, then), draws, strict=True))
    count = min(len(case.cycles), len(then.cycles))
    logs = math.log(_tau(then) / _tau(case)) + np.log(now_cost / then_cost)
    difference = Interval.of(logs, count)
    verdict = judge(difference, tolerance, count)
    faster = verdict == "disagree" and difference.value < 0
    causes: dict[Part, float] = {
        "tau": math.log(_tau(then) / _tau(case)),
        **shares(_in_steps(case), _in_steps(then)),
    }
    accepted = Interval.of(np.log(measured_speedup(then.cycles, draws[1])), len(then.cycles)).exp
    return Change(accepted, difference, causes, "agree" if faster else verdict, faster)


def _tau(case: Case) -> float:
    return float(case.cycles.tokens.mean())


def _cycle_cost(case: Case, drawn: Floats) -> Floats:
    """kappa, a mean cycle in plain steps of the same run, for each draw, shape [R]."""
    cycles = case.cycles
    step_s = (drawn @ cycles.plain_s) / (drawn @ cycles.tokens)
    return np.asarray((drawn @ cycles.cycle_s) / drawn.sum(axis=1) / step_s)


def _in_steps(case: Case) -> dict[Part, float]:
    """Parts of a mean cycle in plain steps of the same run, which drift does not change."""
    cycles = case.cycles
    step_s = float(cycles.plain_s.sum() / cycles.tokens.sum())
    return {
        "draft": float(cycles.draft_s.mean()) / step_s,
        "verify": float(cycles.verify_s.mean()) / step_s,
        "overhead": float(cycles.other_s.mean()) / step_s,
    }


def _notes(
    file: SpeculationFile, cases: Sequence[Case], roof: Roofline | None, then: Mapping[str, Case]
) -> tuple[str, ...]:
    notes = []
    if not file.stability.stable:
        notes.append(f"The machine did not hold still: {file.stability.advice}.")
    if roof is None:
        beside = all(case.cycles.has_plain_samples for case in cases)
        shows = (
            "against passes of one position timed beside it"
            if beside
            else "only where a verify pass becomes cheaper than a plain step"
        )
        notes.append(
            "No calibration was given: only the composition is checked, and a slower baseline shows "
            f"{shows}. Add --calibration."
        )
    bare = [case.name for case in cases if not case.cycles.has_samples]
    if bare:
        notes.append(f"No components were timed beside {'; '.join(bare)}: their composition is not checked.")
    gone = [name for name in then if name not in {case.name for case in cases}]
    if gone:
        notes.append(f"In the baseline only: {'; '.join(gone)}.")
    return tuple(notes)
