"""Predicted against measured speedup of one case, in two layers, and what their difference is made of.

Measured: time of plain decoding over time of speculation for the same tokens. Predicted: eta = tau T_1 /
(T_draft + T_verify + T_overhead), with tau as the run reports it and times of one of two sources.

- *composition*: components timed in between the cycles of the same run. It tests that a cycle is the sum of
  its parts, and that what is reported is what happened.
- *roofline*: times from constants that were fitted to other measurements. It tests what is beneath.

The logarithm of predicted over measured splits exactly: ln of the ratio of tokens, of plain steps, and of
cycles, the last divided over its parts by the logarithmic mean (Ang 2005,
https://doi.org/10.1016/j.enpol.2003.10.010).
Both intervals come from one bootstrap over cycles, so that what slows both sides cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from rooflines.validation.check_cases import Case, Cycles, Floats
from rooflines.validation.check_roofline import Predicted

Verdict = Literal["agree", "disagree", "cannot tell"]
Part = Literal["tau", "baseline", "draft", "verify", "overhead"]
PARTS: Final[tuple[Part, ...]] = ("tau", "baseline", "draft", "verify", "overhead")
COMPOSITION: Final = "composition"
ROOFLINE: Final = "roofline"
RESAMPLES: Final = 1000
LEVEL: Final = 0.9
FEWEST_CYCLES: Final = 5


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 90 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, logs: Floats, count: int, other_sd: float = 0.0) -> Interval:
        """The first value, with the quantiles of the others around it.

        A bootstrap of few cycles is too narrow: its quantiles are those of a normal law where Student's
        are due, and its variance lacks a factor of n / (n - 1).

        Args:
            logs: of the value and of its draws, [1 + R].
            count: n, cycles that were drawn from.
            other_sd: standard deviation of another, independent error.
        """
        from scipy.special import ndtri, stdtrit

        freedom, upper = max(count - 1, 1), (1.0 + LEVEL) / 2.0
        wider = float(stdtrit(freedom, upper) / ndtri(upper)) * math.sqrt(1.0 + 1.0 / freedom)
        value, (low, high) = float(logs[0]), np.quantile(logs[1:], (1.0 - upper, upper))
        reach = float(ndtri(upper)) * other_sd
        below, above = (math.hypot(wider * float(part), reach) for part in (value - low, high - value))
        return cls(value, value - below, value + above)

    @property
    def exp(self) -> Interval:
        """The same of what the value is the logarithm of."""
        return Interval(math.exp(self.value), math.exp(self.low), math.exp(self.high))


@dataclass(frozen=True, slots=True)
class Layer:
    """One way of predicting, held against what was measured.

    Attributes:
        name: ``composition`` or ``roofline``.
        predicted: speedup.
        difference: ln(predicted / measured).
        causes: what each part adds to the difference; they sum to it.
        verdict: whether the two agree.
        basis: what the prediction rests on.
    """

    name: str
    predicted: Interval
    difference: Interval
    causes: Mapping[Part, float]
    verdict: Verdict
    basis: str

    @property
    def largest(self) -> Part:
        """The part that pulls most in the direction of the difference."""
        sign = 1.0 if self.difference.value >= 0 else -1.0
        return max(PARTS, key=lambda part: sign * self.causes[part])


def weights(count: int, seed: int = 0) -> Floats:
    """Draws of cycles with their counts, shape [1 + RESAMPLES, count]; row 0 has each once."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=RESAMPLES)
    return np.concatenate([np.ones((1, count)), drawn.astype(float)])


def measured_speedup(cycles: Cycles, drawn: Floats) -> Floats:
    """Measured speedup for each draw, shape [R]."""
    return np.asarray((drawn @ cycles.plain_s) / (drawn @ cycles.cycle_s))


def composition(case: Case, drawn: Floats, overhead_s: float, tolerance: float) -> Layer | None:
    """The speedup that components timed in the same run add up to; None where none were timed.

    Args:
        case: what was measured.
        drawn: of `weights`.
        overhead_s: time outside draft and verify of a usual cycle of the file (s).
        tolerance: largest ratio - 1 that passes.
    """
    cycles = case.cycles
    if not cycles.has_samples:
        return None
    return _layer(
        COMPOSITION,
        cycles,
        drawn,
        step_s=(drawn @ cycles.plain_s) / (drawn @ cycles.tokens),
        parts={
            "draft": drawn @ cycles.draft_sample_s,
            "verify": drawn @ cycles.step_sample_s,
            "overhead": overhead_s * drawn.sum(axis=1),
        },
        tolerance=tolerance,
        basis="components timed between the cycles; plain steps stand for themselves",
    )


def roofline(
    case: Case,
    drawn: Floats,
    predicted: Predicted,
    *,
    speed: float,
    overhead_s: float,
    tolerance: float,
    basis: str,
) -> Layer:
    """The speedup that the calibration predicts, given tau and which widths were verified.

    Args:
        case: what was measured.
        drawn: of `weights`.
        predicted: times of its cycles.
        speed: how much slower than calibrated the machine ran; it cancels where every part is calibrated.
        overhead_s: time outside draft and verify of a usual cycle of the file (s).
        tolerance: largest ratio - 1 that passes.
        basis: of the calibration.
    """
    cycles, draft = case.cycles, predicted.draft_s
    if draft is None:
        own = cycles.draft_sample_s if cycles.has_samples else cycles.draft_s
        basis = f"{basis}; draft time as timed in the run"
        draft_s = drawn @ own
    else:
        draft_s = drawn @ (draft * speed)
    return _layer(
        ROOFLINE,
        cycles,
        drawn,
        step_s=(drawn @ predicted.plain_s) / (drawn @ cycles.tokens) * speed,
        parts={
            "draft": draft_s,
            "verify": drawn @ predicted.verify_s * speed,
            "overhead": overhead_s * drawn.sum(axis=1),
        },
        tolerance=tolerance,
        basis=basis,
        pass_sd=predicted.log_sd,
        calibrated=("verify",) if draft is None else ("verify", "draft"),
    )


def _layer(
    name: str,
    cycles: Cycles,
    drawn: Floats,
    *,
    step_s: Floats,
    parts: Mapping[Part, Floats],
    tolerance: float,
    basis: str,
    pass_sd: float = 0.0,
    calibrated: tuple[Part, ...] = (),
) -> Layer:
    """Compare; all arrays are of shape [R], sums over the cycles of a draw.

    The errors of a calibration, `pass_sd` of the logarithm of the plain step and of each part in
    `calibrated`, are taken as independent; a part counts by its share of the cycle.
    """
    cycle_s = sum(parts.values(), start=np.zeros(len(drawn)))
    speedup = (drawn @ cycles.reported) * step_s / cycle_s
    difference = np.log(speedup / measured_speedup(cycles, drawn))
    measured: Mapping[Part, float] = {
        "draft": float(cycles.draft_s.sum()),
        "verify": float(cycles.verify_s.sum()),
        "overhead": float(cycles.other_s.sum()),
    }
    expected: Mapping[Part, float] = {part: float(values[0]) for part, values in parts.items()}
    seen_step = cycles.plain_s.sum() / cycles.tokens.sum()
    causes: dict[Part, float] = {
        "tau": math.log(cycles.reported.sum() / cycles.tokens.sum()),
        "baseline": math.log(step_s[0] / seen_step),
        **shares(measured, expected),
    }
    weight = [1.0, *(expected[part] / sum(expected.values()) for part in calibrated)]
    count, model_sd = len(cycles), pass_sd * math.hypot(*weight)
    told = Interval.of(difference, count, model_sd)
    predicted = Interval.of(np.log(speedup), count, model_sd).exp
    return Layer(name, predicted, told, causes, judge(told, tolerance, count), basis)


def shares(measured: Mapping[Part, float], expected: Mapping[Part, float]) -> dict[Part, float]:
    """ln(sum of measured / sum of expected), divided over the parts; the shares sum to it exactly."""
    over, under = sum(measured.values()), sum(expected.values())
    mean = over if math.isclose(over, under, rel_tol=1e-12) else (over - under) / math.log(over / under)
    return {part: (measured[part] - expected[part]) / mean for part in measured}


def judge(difference: Interval, tolerance: float, count: int) -> Verdict:
    """Whether two speedups agree, given ln of their ratio.

    Noise above the tolerance can tell nothing, unless even its near end lies beyond the tolerance. Below it,
    the difference itself decides.

    Args:
        difference: ln of the ratio.
        tolerance: largest ratio - 1 that passes.
        count: cycles that were measured; a handful cannot even say how noisy they are.
    """
    if count < FEWEST_CYCLES:
        return "cannot tell"
    limit = math.log1p(tolerance)
    noise = (difference.high - difference.low) / 2.0
    nearest = min(abs(difference.low), abs(difference.high)) if difference.low * difference.high > 0 else 0.0
    if noise > limit and nearest <= limit:
        return "cannot tell"
    return "disagree" if abs(difference.value) > limit else "agree"
