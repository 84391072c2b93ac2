"""What a calibration says of the cycles of a case: plain steps, verify passes and drafts, in seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from rooflines.hardware.calibration import Calibration
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.schema import Inputs
from rooflines.models.spec import ModelSpec
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine, calibrated_machine, default_machine
from rooflines.timing.step_times import StepTable, StepTimer
from rooflines.validation.check_cases import Case, Floats
from rooflines.validation.decode_fit import WHOLE_PASSES
from rooflines.validation.measured_model import first_layers, int4_storage, measured_model, quantised_copy

# Residuals that a table of measured step times has: it states none, so its cells' own spread is assumed.
_TABLE_SD: Final = 0.03
_TAIL: Final = 0.95
# Parts that drift together differ by no more than this (ln): calibrations miss by about as much.
_SAME_SPEED: Final = 0.08


@dataclass(frozen=True, slots=True)
class Predicted:
    """Seconds of a case's cycles as the calibration has them, all of shape [C].

    Attributes:
        plain_s: plain decoding of the tokens of each cycle (s).
        verify_s: the verify pass (s).
        draft_s: the draft (s); None where no calibration says what the drafter runs.
        log_sd: standard deviation of ln(true / predicted) of one pass.
    """

    plain_s: Floats
    verify_s: Floats
    draft_s: Floats | None
    log_sd: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """A calibrated target with what it drafts with.

    Attributes:
        inputs: of the file that is checked.
        model: that was measured.
        machine: with its constants.
        target: what times its passes: the fitted form, or the measured table.
        log_sd: standard deviation of ln(true / predicted) of one pass.
    """

    inputs: Inputs
    model: ModelSpec
    machine: Machine
    target: StepTimer
    log_sd: float

    @classmethod
    def of(cls, inputs: Inputs, profile: HardwareProfile, calibration: Calibration) -> Roofline:
        """The model of a file on a calibrated machine.

        Raises:
            RooflinesError: the file does not say what model it measured, or the profile lacks a peak.
        """
        model = measured_model(inputs)
        if calibration.steps and not calibration.operators:
            basis = f"measured step times T(n) with {calibration.stack} ({calibration.name})"
            machine = replace(default_machine(profile), rests=basis)
            return cls(inputs, model, machine, StepTable.of(calibration.steps), _TABLE_SD)
        machine = calibrated_machine(profile, calibration)
        return cls(inputs, model, machine, Deployment(model, machine), _residual_sd(calibration))

    @property
    def is_table(self) -> bool:
        """Whether passes come from a measured table, which knows nothing of other models."""
        return isinstance(self.target, StepTable)

    def predict(self, case: Case) -> Predicted:
        """Times of the cycles of a case.

        Raises:
            InputError: a table that does not reach as wide as the case verified.
        """
        cycles = case.cycles
        plain = self._plain(cycles.context, cycles.tokens)
        verify = self.target.verify(1.0, cycles.context, cycles.width).seconds
        return Predicted(plain, np.asarray(verify), self._draft(case), self.log_sd)

    def _plain(self, context: Floats, tokens: Floats) -> Floats:
        # Steps of a cycle stand at consecutive contexts; time is linear in it, so the middle stands for all.
        middle = context + np.maximum(tokens - 1.0, 0.0) / 2.0
        return np.asarray(self.target.decode(1.0, middle).seconds) * tokens

    def _draft(self, case: Case) -> Floats | None:
        model = self._drafting(case)
        if model is None or self.is_table:
            return None
        cycles = case.cycles
        middle = cycles.context + np.maximum(cycles.drafted - 1.0, 0.0) / 2.0
        step = Deployment(model, self.machine).decode(1.0, middle).seconds
        return np.asarray(step) * cycles.drafted

    def _drafting(self, case: Case) -> ModelSpec | None:
        """The model that drafts, where it is made of the target and the calibration has its format."""
        if case.drafter == "early-exit":
            layers = case.parameters.get("layers")
            return first_layers(self.model, layers) if isinstance(layers, int) else None
        if case.drafter != "int4" or self.machine.calibration is None:
            return None
        storage = int4_storage(self.inputs)
        measured = {
            entry.storage for entry in self.machine.calibration.operators if entry.operator == "linear"
        }
        return quantised_copy(self.model, storage) if storage in measured else None


def _residual_sd(calibration: Calibration) -> float:
    """Of passes through all layers that the fit left out, from their 5 % and 95 % quantiles."""
    sigmas = 2.0 * NormalDist().inv_cdf(_TAIL)
    spans = [
        (one.log_q95 - one.log_q05) / sigmas
        for entry in calibration.operators
        for one in entry.residuals
        if one.region == WHOLE_PASSES and entry.operator == "linear"
    ]
    return max(spans, default=_TABLE_SD)


def machine_speed(votes: Sequence[Mapping[str, float]]) -> tuple[float, ...]:
    """How much slower than calibrated the machine ran during each case.

    Drift slows everything alike; a fault slows one part, in one case or in all. So each part has one vote on
    the speed of the file, its median over the cases, and the middle vote counts. Parts that vote otherwise
    are not heard on single cases; of the others, the one nearest to the speed of the file says how fast a
    case ran.

    Args:
        votes: by case, measured over calibrated time of each of its parts (plain steps, passes timed apart,
            drafts).
    """
    logs = [{part: math.log(value) for part, value in one.items()} for one in votes]
    parts = sorted({part for one in logs for part in one})
    medians = {part: float(np.median([one[part] for one in logs if part in one])) for part in parts}
    common = _nearest(list(medians.values()), float(np.median(list(medians.values()))))
    heard = {part for part, median in medians.items() if abs(median - common) <= _SAME_SPEED}
    speeds = [[value for part, value in one.items() if part in heard] for one in logs]
    return tuple(math.exp(_nearest(own, common)) if own else math.exp(common) for own in speeds)


def _nearest(values: Sequence[float], wanted: float) -> float:
    """The value nearest to one wanted; of two equally near, the one nearer to no drift at all."""
    return min(values, key=lambda value: (round(abs(value - wanted), 9), abs(value)))
