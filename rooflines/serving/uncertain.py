"""Between which ends the answers of an engine lie, given how wrong its times may be.

Passes are wrong by named causes (rooflines.timing.uncertain), and serving adds what no pass holds: all steps
of an engine are taken to be wrong by one factor, that of its working batch, all that prompts add to them by
another, and waits for the first token by a third. The factors share causes, since the kernels are the same
ones. Rates and times follow from them through the steady state, which is solved again at the most probable
factors that bring an answer to an end of its interval (first-order reliability method: Hasofer and Lind,
Exact and invariant second-moment code format, J. Eng. Mech. Div. 100, 1974). So an end near saturation is as
far away as the queue makes it, and the upper one may be an overload.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.estimates import LEVEL, Estimate, total
from rooflines.serving.benchmark import WAVES, benchmark_state
from rooflines.serving.engine import Engine, StepCurve
from rooflines.serving.fleet import Fleet
from rooflines.serving.steady import ClosedState
from rooflines.serving.workload import Workload
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.uncertain import draft_estimate
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.step_times import Timed
from rooflines.timing.uncertain import pass_estimate

Array = NDArray[np.float64]
Errors = Mapping[str, float]

# What engines take beside the passes, as standard deviations of ln(measured / predicted), so that 90 % of the
# 873 usable rows of AIConfigurator's silicon_sample.csv (https://github.com/ai-dynamo/aiconfigurator) lie
# inside, predicted as closed systems without anything known of their hosts. Leaving out each of the 33
# sources in turn gives 0.13 to 0.16 and holds 89 % of the rows left out. Engines of other makers and versions
# than those of the constants are among them. Shared by all steps of an engine, with drafts or without, so
# that it drops out of their ratio.
SERVED_LOG_SD: Final = 0.15
# Waits of clients for the first token, but those for a place in the engine: 0.58 to 0.73, and 90 %.
# They are longer than predicted by 1.25 times in the median. With hosts known (rooflines.serving.host), 0.40
# would do.
FIRST_TOKEN_LOG_SD: Final = 0.68
# Batches at which errors are worked out; they change slowly, or from one region of sizes to the next.
_PROBES: Final = 16
# How much faster times are made to see what an answer depends on: faster never overflows.
_FASTER: Final = 0.97


@dataclass(frozen=True, slots=True)
class EngineErrors:
    """Errors of the times of one engine by cause: standard deviations of ln(truth / time).

    Attributes:
        batches: shape (P,), rising, at which errors are stated; they hold up to the next one.
        lengths: shape (G,), draft lengths, the shortest first; only 0 where nothing drafts.
        plain: of a plain decode step, shape (P, 1).
        step: of a cycle of each draft length, shape (P, G); that of length 0 is the plain step.
        prompt: of the passes over prompts.
    """

    batches: Array
    lengths: Array
    plain: Estimate
    step: Estimate
    prompt: Estimate

    def of_passes(self, batch: float, draft_length: float) -> tuple[Errors, Errors]:
        """Errors of the passes of steps and of prompts, of an engine with that mean batch."""
        row = int(_rows(self.batches, batch))
        column = int(np.searchsorted(self.lengths, draft_length))
        shape = (self.batches.size, self.lengths.size)
        step = {
            cause: float(np.broadcast_to(log_sd, shape)[row, column])
            for cause, log_sd in self.step.errors.items()
        }
        return step, {cause: float(log_sd) for cause, log_sd in self.prompt.errors.items()}

    def served(self, batch: float, draft_length: float) -> tuple[Errors, Errors, Errors]:
        """Errors of steps, of prompts and of waits for the first token, as an engine is measured."""
        step, prompt = self.of_passes(batch, draft_length)
        waits = {"waits for the first token": FIRST_TOKEN_LOG_SD}
        return {**step, "engine": SERVED_LOG_SD}, {**prompt, "engine": SERVED_LOG_SD}, waits

    def speedup_log_sd(self, batches: Array) -> Array:
        """Standard deviation of ln(truth / speedup) of each draft length (columns) at batches (rows)."""
        log_sd = np.asarray((self.step / self.plain).log_sd)
        shape = (self.batches.size, self.lengths.size)
        return np.asarray(np.broadcast_to(log_sd, shape)[_rows(self.batches, batches)])


def engine_errors(engine: Engine, workload: Workload, most: int) -> EngineErrors | None:
    """How wrong the times of an engine may be; None where nothing states it, as for the textbook.

    Acceptance and host times are taken as given. A drafter's pass over a prompt is as wrong as the target's.

    Args:
        engine: as it is served.
        workload: what it serves.
        most: sequences that run at once.
    """
    machine, context = engine.target.machine, workload.mean_context
    if machine.calibration is None:
        return None
    batches = np.unique(np.geomspace(1, most, _PROBES).round())
    lengths = np.asarray(engine.schedule.lengths, dtype=float)
    order = np.argsort(lengths)
    decode = engine.cycle_host.plain(engine.target.decode(batches[:, None], context))
    plain = _pass_estimate(decode, machine, "decode")
    cached = math.floor(workload.prefix_hit * workload.mean_prompt)
    chunk = min(max(workload.mean_prompt - cached, 1.0), float(engine.batched_tokens))
    prefill = engine.target.prefill(1.0, chunk, float(cached))
    return EngineErrors(
        batches,
        lengths[order],
        plain,
        _step_estimate(engine, plain, batches[:, None], context, lengths[order][None, :]),
        _pass_estimate(prefill, machine, "prefill"),
    )


def _step_estimate(
    engine: Engine, plain: Estimate, batches: Array, context: float, lengths: Array
) -> Estimate:
    """A draft-and-verify cycle over batches (rows) and draft lengths (columns); the plain step without."""
    if engine.drafter is None or engine.acceptance is None:
        return plain
    machine = engine.target.machine
    times = cycle_times(engine.target, engine.drafter, batches, context, lengths, host=engine.cycle_host)
    outcome = cycle(times, engine.acceptance)
    whole = total(
        (
            _pass_estimate(times.verify, machine, "verify"),
            Estimate(outcome.draft_s, draft_estimate(times.draft, machine).errors),
            Estimate(outcome.overhead_s),
        )
    )
    # Of length 0 the verify pass is a plain step by another name.
    causes = {**plain.errors, **whole.errors}
    errors = {
        cause: np.where(lengths > 0, whole.errors.get(cause, 0.0), plain.errors.get(cause, 0.0))
        for cause in causes
    }
    return Estimate(whole.value, errors, machine.basis)


def _pass_estimate(time: Timed, machine: Machine, name: str) -> Estimate:
    """A pass with its errors; one that is known as a whole is taken as exact."""
    if not isinstance(time, PassTime):
        return Estimate(time.seconds)
    return pass_estimate(time, machine, name)


def _rows(stated: Array, batches: Array | float) -> NDArray[np.intp]:
    return np.maximum(np.searchsorted(stated, np.maximum(batches, 1.0), side="right") - 1, 0)


def slowed(fleet: Fleet, step: float, prompt: float) -> Fleet:
    """Engines whose steps take `step` times as long, and what prompts add to them `prompt` times."""
    pool = None if fleet.pool is None else replace(fleet.pool, prompt_s=fleet.pool.prompt_s * prompt)
    return replace(fleet, curve=slowed_curve(fleet.curve, step, prompt), pool=pool)


def slowed_curve(curve: StepCurve, step: float, prompt: float) -> StepCurve:
    """`slowed` of one engine."""
    return replace(curve, step_s=curve.step_s * step, prompt_extra_s=curve.prompt_extra_s * prompt)


def turning_factors(
    answer: Callable[[Sequence[float]], float], errors: Sequence[Errors]
) -> tuple[list[float], list[float]]:
    """The most probable factors on times at which an answer is at the low and at the high end.

    Args:
        answer: to factors, one for each of `errors`; at 1 it is the answer itself.
        errors: of each time, by cause; a cause that several have in common acts on all of them at once.
    """
    middle = answer([1.0] * len(errors))
    slopes = [
        answer([_FASTER if other == index else 1.0 for other in range(len(errors))]) - middle
        for index in range(len(errors))
    ]
    causes = sorted({cause for one in errors for cause in one})
    shares = np.array([[one.get(cause, 0.0) for cause in causes] for one in errors])
    # An answer that does not move (none is carried, say) is lower the longer everything takes.
    towards = (-np.asarray(slopes) if any(slopes) else np.full(len(errors), -1.0)) @ shares
    reach = float(np.linalg.norm(towards))
    quantile = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)
    logs = quantile * (shares @ towards) / reach if reach > 0 else np.zeros(len(errors))
    low, high = ([float(factor) for factor in np.exp(sign * logs)] for sign in (-1.0, 1.0))
    return low, high


def ends(answer: Callable[[Sequence[float]], float], errors: Sequence[Errors]) -> tuple[float, float]:
    """Between which ends 90 % of the cases of an answer should lie; arguments as `turning_factors`."""
    middle = answer([1.0] * len(errors))
    low, high = (answer(factors) for factors in turning_factors(answer, errors))
    return min(low, middle), max(high, middle)


@dataclass(frozen=True, slots=True)
class ClientEnds:
    """Ends of what a benchmark client measures, low and high.

    Attributes:
        tpot_s: time per output token after the first (s).
        ttft_s: time to first token (s).
        rate_per_s: requests completed (requests/s).
    """

    tpot_s: tuple[float, float]
    ttft_s: tuple[float, float]
    rate_per_s: tuple[float, float]


def client_ends(
    curve: StepCurve, workload: Workload, sequences: float, errors: tuple[Errors, Errors, Errors]
) -> ClientEnds:
    """Between which ends what `benchmark_state` predicts should lie.

    Waits for a place in the engine are as long as it is slow, and no longer; the host's time is as given.

    Args:
        curve: the engine.
        workload: what the client asks for.
        sequences: requests at once.
        errors: of steps, of prompts and of waits for the first token.
    """
    decode_tokens, equal = workload.decode_tokens, workload.equal_lengths

    @cache
    def measured(step: float, prompt: float) -> ClosedState:
        slower = slowed_curve(curve, step, prompt)
        return benchmark_state(slower, decode_tokens, sequences, WAVES, equal_lengths=equal)

    def first_token_s(factors: Sequence[float]) -> float:
        found = measured(*factors[:2])
        place_s = max(sequences - curve.max_sequences, 0.0) / found.rate_per_s
        known_s = min(place_s + curve.host.request_s, found.ttft_s)
        return known_s + (found.ttft_s - known_s) * factors[2]

    return ClientEnds(
        ends(lambda factors: measured(*factors).tpot_s, errors[:2]),
        ends(first_token_s, errors),
        ends(lambda factors: measured(*factors).rate_per_s, errors[:2]),
    )
