"""Predicts a published speedup from facts alone: device, model, drafter, acceptance, batch.

    speedup = tau (T_target + h_plain + B T_prompt / N) / (T_cycle + h_cycle + tau B T_prompt / N)

T_target and T_cycle are the plain step and the cycle of draft and verify, h the host's time of the engine
where another source states it (`rooflines.engines.host`). The last term is in both where a source divides
tokens by the whole time of requests: every sequence of B brings a prompt per N generated tokens, whose
prefill the others wait for, and speculation does not speed it up (Amdahl).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from rooflines.costs.routing import SHARED_EXPERTS
from rooflines.costs.setting import Parallelism, Precision
from rooflines.dtypes import number_format
from rooflines.engines.host import STATE_COPIERS, TREE_KERNELS, HostTime, host_time, row_cost
from rooflines.errors import InputError, RooflinesError, UnknownNameError
from rooflines.models.readers import read_model
from rooflines.serving.memory import memory_fit
from rooflines.speculation.acceptance_text import parse_rates
from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import CycleTimes, cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.validation.published.parts import Parts, PassErrors, pass_errors
from rooflines.validation.published.rows import Claim, Unused
from rooflines.validation.published.sources import calibration_name

# Assumptions where a source is silent, the same for all rows.
PROMPT: Final = 512
OUTPUT: Final = 1024
CONTEXT: Final = float(PROMPT + OUTPUT // 2)
DEGREES: Final = (1, 2, 4, 8)
ASSUMPTIONS: Final = (
    f"context {CONTEXT:g}, that of requests with {PROMPT} tokens in and {OUTPUT:,} out, half way",
    "number formats of the checkpoint unless the row or the model's name says otherwise",
    "the smallest tensor parallelism of 1, 2, 4 and 8 that fits in memory",
    "one sequence where no batch is stated",
    "EAGLE, DFlash and DSpark heads of the published config, or of their family's usual shape",
    f"positions of a sequence choose experts alike by {SHARED_EXPERTS.correlation:g}, sequences on their own",
    "kernels as measured with the row's engine on that device, where anybody has",
    "host time of the engine only where another source than the row's states it",
)

MachineOf = Callable[[str, str], Machine]  # (profile id, calibration or "auto")


@dataclass(frozen=True, slots=True)
class Predicted:
    """A claim beside its prediction.

    Attributes:
        claim: as published.
        parts: what the step and the cycle are made of.
        low: lower end of the 90 % interval of the speedup.
        high: upper end.
        bare_speedup: predicted without host time and prompts.
        tensor: tensor parallelism.
        host: where the host's time comes from; None where none was added.
        basis: what the times rest on.
    """

    claim: Claim
    parts: Parts
    low: float
    high: float
    bare_speedup: float
    tensor: int
    host: HostTime | None
    basis: str

    @property
    def speedup(self) -> float:
        """Predicted."""
        return self.parts.speedup

    @property
    def cycle_cost(self) -> float:
        """Cycle cost of the prediction, host time and prompts included."""
        return self.parts.cycle_cost

    @property
    def error(self) -> float:
        """Relative error of the speedup."""
        return self.speedup / self.claim.speedup - 1.0

    @property
    def measured_cycle_cost(self) -> float:
        """Cycle cost that the claim implies: tau / speedup."""
        return self.claim.tokens_per_cycle / self.claim.speedup


@dataclass(frozen=True, slots=True)
class _Served:
    """What claims of one configuration share, however many tokens their cycles yield.

    Attributes:
        target: as it is served.
        times: of a step and of a cycle.
        prompt_s: prefill that falls on one plain step (s).
        errors: of the passes, by cause.
    """

    target: Deployment
    times: CycleTimes
    prompt_s: float
    errors: PassErrors


def predict_claims(claims: list[Claim], machine_of: MachineOf) -> tuple[list[Predicted], list[Unused]]:
    """Predict every claim; those that cannot be priced come back with the reason."""
    machines = cache(machine_of)
    served = cache(lambda claim: _serve(claim, machines))
    predicted = cache(lambda claim: _predict(claim, served(_configuration(claim))))
    found: list[Predicted] = []
    unused: list[Unused] = []
    for claim in claims:
        try:
            found.append(replace(predicted(_priced(claim)), claim=claim))
        except RooflinesError as error:
            unused.append(Unused(claim.file, claim.line, claim.source, str(error)))
    return found, unused


def predict_claim(claim: Claim, machine_of: MachineOf) -> Predicted:
    """Predict one claim.

    Raises:
        RooflinesError: it cannot be priced: nothing fits, or the drafter does not suit the target.
    """
    return _predict(claim, _serve(_configuration(claim), machine_of))


def _priced(claim: Claim) -> Claim:
    """What a prediction depends on: claims that differ in the rest alone share one."""
    return replace(claim, file="", line=0, url="", table="", task="", speedup=1.0, notes=())


def _configuration(claim: Claim) -> Claim:
    """What times of passes depend on: claims that differ in acceptance alone share them."""
    return replace(_priced(claim), source="", acceptance="", tokens_per_cycle=1.0)


def _serve(claim: Claim, machine_of: MachineOf) -> _Served:
    calibration = calibration_name(claim.device, claim.known.engine)
    target, drafter = _deployment(claim, machine_of(claim.device, calibration))
    context = CONTEXT if claim.context is None else claim.context
    times = cycle_times(target, drafter, float(claim.batch), context, float(claim.proposal.draft_length))
    return _Served(target, times, _prompt_s(claim, target), pass_errors(times, target.machine))


def _predict(claim: Claim, served: _Served) -> Predicted:
    target, times = served.target, served.times
    rates = parse_rates(claim.acceptance)
    bare = cycle(times, rates)
    stated = _host(claim, target.parallelism.tensor)
    host = DEVICE_ALONE if stated is None else stated.time
    step_s, draft_s, verify_s = _launched_s(times, rates, host)
    unpacked_s = step_s * _row_cost(claim, float(np.asarray(bare.verify_width)))
    parts = Parts(
        tokens_per_cycle=float(np.asarray(bare.tokens_per_cycle)),
        step_s=step_s,
        draft_s=draft_s,
        verify_s=max(verify_s, unpacked_s) + _tree_s(times, claim, target) + _copied_s(times, claim),
        plain_host_s=float(host.plain_s),
        cycle_host_s=float(np.asarray(host.outside_s(claim.batch, claim.proposal.draft_length))),
        prompt_s=served.prompt_s,
        launched=host.layer_s > 0,
        unpacked=unpacked_s > verify_s,
    )
    low, high = parts.estimate(served.errors).interval()
    return Predicted(
        claim=claim,
        parts=parts,
        low=float(np.asarray(low)),
        high=float(np.asarray(high)),
        bare_speedup=float(np.asarray(bare.speedup)),
        tensor=target.parallelism.tensor,
        host=stated,
        basis=target.machine.basis,
    )


def _deployment(claim: Claim, machine: Machine) -> tuple[Deployment, Drafter]:
    """The target as it is served, and its drafter, over as many devices as stated or needed."""
    model = read_model(claim.model)
    context = CONTEXT if claim.context is None else claim.context
    degrees = DEGREES if claim.devices is None else (claim.devices,)
    for tensor in degrees:
        target = Deployment(model, machine, Precision(claim.weights), Parallelism(tensor))
        drafter = make_drafter(claim.proposal.text, target)
        fit = memory_fit(target, drafter, float(claim.batch), context, float(claim.proposal.draft_length))
        if bool(np.all(fit.fits)) or claim.devices is not None:
            return target, drafter
    raise InputError(f"{claim.model} does not fit on {DEGREES[-1]} x {claim.device}")


def _host(claim: Claim, ranks: int) -> HostTime | None:
    try:
        return host_time(claim.known.engine, claim.source, claim.proposal.kind, claim.device, ranks)
    except UnknownNameError:
        return None


def _launched_s(times: CycleTimes, rates: Rates, host: CycleHost) -> tuple[float, float, float]:
    """Step, draft and verify (s), each pass as the host launches it; what runs outside them is left out."""
    launched = replace(
        times,
        target=host.launched(times.target),
        draft=host.drawn(times.draft),
        verify=host.launched(times.verify),
    )
    outcome = cycle(launched, rates)
    return (
        float(np.asarray(outcome.target_step_s)),
        float(np.asarray(outcome.draft_s)),
        float(np.asarray(outcome.verify_s)),
    )


def _row_cost(claim: Claim, verify_width: float) -> float:
    """What unpacking weights for every row makes of a verify pass, in plain steps."""
    if claim.weights is None:
        return 1.0
    return row_cost(claim.known.engine, number_format(claim.weights).element_bits, claim.batch * verify_width)


def _tree_s(times: CycleTimes, claim: Claim, target: Deployment) -> float:
    """Floors of the further attention kernels that a tree takes in the verify pass and in each level (s)."""
    kernels = 1 if claim.known.masked_trees else TREE_KERNELS.get(claim.known.engine, 1)
    if times.draft.tree is None or kernels == 1 or not isinstance(times.verify, PassTime):
        return 0.0
    attention = [one.operator for one in times.verify.operators if one.operator.kind == "decode_attention"]
    floors = [(target.machine.constants(one).overhead_s, one.count) for one in attention]
    verify_s = sum(floor * count for floor, count in floors)
    levels = float(np.asarray(times.draft_length)) - 1.0
    draft_s = levels * max((floor for floor, _ in floors), default=0.0)
    return (kernels - 1) * (verify_s + draft_s)


def _copied_s(times: CycleTimes, claim: Claim) -> float:
    """States of recurrent layers, read and written once more as of the last accepted position (s)."""
    if claim.known.engine not in STATE_COPIERS or not isinstance(times.target, PassTime):
        return 0.0
    # A plain step reads and writes each state once, as the copy does.
    recurrent = (one for one in times.target.operators if one.operator.kind == "recurrent")
    return sum(float(np.asarray(one.memory_s)) for one in recurrent)


def _prompt_s(claim: Claim, target: Deployment) -> float:
    """Prefill that falls on one plain step: the batch brings one prompt per sequence and output (s)."""
    if not claim.known.whole_requests:
        return 0.0
    return claim.batch * float(np.asarray(target.prefill(1.0, float(PROMPT)).seconds)) / OUTPUT
