"""Rules that no true run breaks: what is implausible is flagged, whatever was predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from rooflines.costs.passes import decode_pass, verify_pass
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.schema import SpeculationRun
from rooflines.measurement.speculation.record import is_near_tie
from rooflines.models.spec import ModelSpec
from rooflines.speculation.acceptance import Acceptance
from rooflines.validation.check_cases import Case
from rooflines.validation.check_layers import FEWEST_CYCLES, Interval, Part

Severity = Literal["fault", "warning"]
# Drafters that were measured are kept between 0.02 (early exit) and 0.98 (a 4-bit copy of the target, under
# llama.cpp) of the time. Tokens that are all kept, or all lost, are odd where such a drafter would show it in
# one of a hundred checks only.
_PLAUSIBLE: Final = 0.98
_CHANCE: Final = 0.01
# Standard deviations that chance does not reach in one check of a hundred cases.
_SIGMAS: Final = 3.0
# A verify pass that is cheaper than a plain step by less than this is noise.
_NOISE: Final = 0.03


@dataclass(frozen=True, slots=True)
class Finding:
    """Something implausible.

    Attributes:
        rule: its name.
        severity: a ``fault`` changes the speedup by more than the tolerance; a ``warning`` does not, or not
            by an amount that is known.
        part: what it concerns.
        text: what was seen and what it means.
    """

    rule: str
    severity: Severity
    part: Part
    text: str


def implausible(case: Case, measured: Interval, tolerance: float) -> tuple[Finding, ...]:
    """Everything implausible about a case.

    Args:
        case: what was measured.
        measured: its speedup.
        tolerance: largest ratio - 1 that passes.
    """
    found = [finding for run in case.runs for finding in _arms(run, tolerance)]
    found += _above_tau(case, measured)
    found += _dear_baseline(case, tolerance)
    found += _certain_acceptance(case)
    found += _decreed_acceptance(case, tolerance)
    return tuple(found)


def _arms(run: SpeculationRun, tolerance: float) -> Iterator[Finding]:
    """The two arms must have decoded the same tokens, and all counts of them must be one number."""
    first, last = run.cycles[0], run.cycles[-1]
    counts = {
        "accepted + 1": sum(cycle.accepted + 1 for cycle in run.cycles),
        "emitted": sum(cycle.emitted for cycle in run.cycles),
        "growth of the context": last.context + last.emitted - first.context,
        "plain steps": len(run.plain_s),
    }
    low, high = min(counts.values()), max(counts.values())
    if low != high:
        told = ", ".join(f"{count} by {name}" for name, count in counts.items())
        severity: Severity = "fault" if low <= 0 or high / low > 1.0 + tolerance else "warning"
        yield Finding(
            "unequal arms",
            severity,
            "tau",
            f"{run.prompt}: tokens are counted differently ({told}): the reported acceptance is not what "
            "happened",
        )
    wide = [cycle for cycle in run.cycles if cycle.verify_width != cycle.drafted + 1]
    if wide:
        one = wide[0]
        yield Finding(
            "unequal arms",
            "warning",
            "verify",
            f"{run.prompt}: {len(wide)} cycles verify another width than they drafted, such as "
            f"{one.verify_width} positions for {one.drafted} tokens: one more than drafted is needed",
        )
    far = [one for one in run.divergences if not is_near_tie(one)]
    if far:
        yield Finding(
            "unequal arms",
            "warning",
            "baseline",
            f"{run.prompt}: plain decoding would have chosen {len(far)} tokens otherwise, by more than "
            "rounding: the arms do not run one model",
        )


def _above_tau(case: Case, measured: Interval) -> Iterator[Finding]:
    tau = float(case.cycles.tokens.sum() / len(case.cycles))
    if measured.low > tau:
        yield Finding(
            "speedup above tau",
            "fault",
            "baseline",
            f"speedup {measured.value:.3g} exceeds {tau:.3g} tokens per cycle: a cycle takes at least one "
            "pass, so plain decoding was slowed down",
        )


def _dear_baseline(case: Case, tolerance: float) -> Iterator[Finding]:
    """A pass of several positions does all that a plain step does, and one of a single position does it."""
    cycles = case.cycles
    single = np.where(cycles.width == 1, cycles.step_sample_s, cycles.plain_sample_s)
    for what, pass_s, noise in (
        ("several positions", np.where(cycles.width > 1, cycles.step_sample_s, np.nan), _NOISE),
        # Timed right after plain steps, it finds the caches as they left them: a few percent are no fault.
        ("one position", single, tolerance),
    ):
        timed = np.isfinite(pass_s)
        excess = cycles.plain_s[timed] / cycles.tokens[timed] / pass_s[timed] - 1.0
        if len(excess) < FEWEST_CYCLES:
            continue
        mean, error = float(excess.mean()), float(excess.std()) / math.sqrt(len(excess))
        if mean > max(noise, _SIGMAS * error):
            yield Finding(
                "verify below plain",
                "fault" if mean > tolerance else "warning",
                "baseline",
                f"a plain step takes {mean:.0%} longer than a pass of {what}: plain decoding was slowed "
                "down, or runs other kernels",
            )


def _certain_acceptance(case: Case) -> Iterator[Finding]:
    """All drafted tokens kept, or none, more often than chance allows: p^n < 1 %, so of 228 tries on.

    A token is tried where all before it were kept, so that of n lost drafts n tokens were tried.
    """
    kept = float((case.cycles.reported - 1.0).sum())
    drafted = float(case.cycles.drafted.sum())
    tried = drafted if kept else float((case.cycles.drafted > 0).sum())
    certain = case.forced_acceptance is None and kept in (0.0, drafted)
    if certain and _PLAUSIBLE**tried < _CHANCE:
        rate = _PLAUSIBLE if kept else 1.0 - _PLAUSIBLE
        yield Finding(
            "certain acceptance",
            "warning",
            "tau",
            f"acceptance is exactly {kept / drafted:g} of {tried:.0f} tokens tried, which a rate of "
            f"{rate:.2g} gives with a chance of {_PLAUSIBLE**tried:.1g}: drafts are compared with "
            "themselves, or with nothing",
        )


def _decreed_acceptance(case: Case, tolerance: float) -> Iterator[Finding]:
    """Tokens kept by decree must be kept as often as was decreed."""
    decreed, cycles = case.forced_acceptance, case.cycles
    if decreed is None:
        return
    kept = float((cycles.reported - 1.0).sum())
    tried = kept + float((cycles.reported - 1.0 < cycles.drafted).sum())
    if not tried:
        return
    seen = kept / tried
    spread = math.sqrt(max(decreed * (1.0 - decreed), 1.0 / tried) / tried)
    if abs(seen - decreed) <= _SIGMAS * spread:
        return
    told, true = (
        float(np.asarray(Acceptance.constant(alpha).tokens_per_cycle(case.draft_length)))
        for alpha in (decreed, seen)
    )
    far = abs(math.log(told / true)) > math.log1p(tolerance)
    yield Finding(
        "acceptance not as decreed",
        "fault" if far else "warning",
        "tau",
        f"{seen:.0%} of tokens were kept where {decreed:.0%} was decreed: {true:.3g} tokens per cycle "
        f"instead of {told:.3g}",
    )


def overused(case: Case, model: ModelSpec, profile: HardwareProfile) -> Iterator[Finding]:
    """No pass moves bytes, or multiplies, faster than the machine can.

    Weights that fit the last cache may well be read faster than memory allows, so they are let off.
    """
    cycles = case.cycles
    context, width = float(cycles.context.mean()), float(cycles.width.mean())
    plain = decode_pass(model, 1.0, context).cost
    cache = profile.last_level_cache_bytes or 0.0
    step_s = float(cycles.plain_s.sum() / cycles.tokens.sum())
    used = float(plain.bytes_moved) / step_s / profile.bandwidth_bytes_per_s
    if used > 1.0 and float(plain.weight_bytes) > cache:
        yield Finding(
            "utilisation above 1",
            "warning",
            "baseline",
            f"a plain step would move {used:.3g} times what {profile.id} can: it does not read all weights, "
            "or the profile is of another machine",
        )
    verify = verify_pass(model, 1.0, context, width)
    verify_s = float(cycles.verify_s.mean())
    by_dtype: dict[str, float] = {}
    for operator in verify.operators:
        flops = float(operator.cost.matmul_flops) * operator.count
        by_dtype[operator.arithmetic] = by_dtype.get(operator.arithmetic, 0.0) + flops
    busy = sum(flops / profile.peak_flop_per_s(dtype) for dtype, flops in by_dtype.items() if flops)
    if busy / verify_s > 1.0:
        yield Finding(
            "utilisation above 1",
            "warning",
            "verify",
            f"a verify pass would multiply {busy / verify_s:.3g} times as fast as {profile.id} can: it does "
            "not verify all positions, or the profile is of another machine",
        )
