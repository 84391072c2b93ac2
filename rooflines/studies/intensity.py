"""Where the time of a pass goes: cost, intensity, attainable rate and time of every operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rooflines.costs.cost import MEMORY_KINDS, Cost
from rooflines.errors import InputError
from rooflines.hardware.profile import HardwareProfile
from rooflines.rows import as_columns, as_rows
from rooflines.timing.deployment import Deployment
from rooflines.timing.roofline import OperatorTime, PassTime, attainable_flop_per_s
from rooflines.timing.uncertain import pass_estimate
from rooflines.units import format_quantity

SCHEMA_VERSION: Final = 1
_BYTES: Final = (*MEMORY_KINDS, "network_bytes")


@dataclass(frozen=True, slots=True)
class IntensityStudy:
    """A pass, operator by operator, with a total at the end.

    Attributes:
        text: the answer in words.
        basis: what the times rest on.
        columns: a row an operator, a column a quantity (SI units in the names).
    """

    text: str
    basis: str
    columns: dict[str, list[object]]

    def document(self, question: dict[str, Any]) -> dict[str, Any]:
        """The result as JSON takes it."""
        *rows, total = as_rows(self.columns)
        return {
            "schema_version": SCHEMA_VERSION,
            "question": question,
            "answer": {"text": self.text},
            "basis": self.basis,
            "rows": rows,
            "total": total,
        }


def time_phase(
    deployment: Deployment, phase: str, batch: float, context: float, new_tokens: float | None
) -> PassTime:
    """Time one pass.

    Args:
        deployment: what is run, on what.
        phase: ``decode``, ``prefill`` or ``verify``.
        batch: B.
        context: S, cached before the pass; a prefill of unstated length has S new positions and no cache.
        new_tokens: n; draft length + 1 in a verify.

    Raises:
        InputError: an unknown phase, or a verify without a width.
    """
    if phase == "decode":
        if new_tokens not in (None, 1):
            raise InputError(f"a decode has 1 new token, not {new_tokens:g}: use --phase verify or prefill")
        return deployment.decode(batch, context)
    if phase == "prefill":
        return deployment.prefill(batch, *((context, 0.0) if new_tokens is None else (new_tokens, context)))
    if phase == "verify":
        if new_tokens is None:
            raise InputError("a verify needs its width: give --draft-length G (or --new-tokens G+1)")
        return deployment.verify(batch, context, new_tokens)
    raise InputError(f"unknown phase {phase!r}: use decode, prefill or verify")


def study_intensity(
    deployment: Deployment, phase: str, batch: float, context: float, new_tokens: float | None = None
) -> IntensityStudy:
    """Price one pass and lay it out operator by operator.

    Raises:
        RooflinesError: see `time_phase`, and whatever the costs and the profile refuse.
    """
    timed = time_phase(deployment, phase, batch, context, new_tokens)
    rows = [_row(time, deployment, float(timed.seconds)) for time in timed.operators]
    rows.append(_total(timed, deployment, _interval_s(timed, deployment)))
    return IntensityStudy(_words(timed, deployment, phase), deployment.basis, as_columns(rows))


def _row(time: OperatorTime, deployment: Deployment, whole_s: float) -> dict[str, object]:
    operator = time.operator
    cost = operator.cost * operator.count
    return {
        "operator": operator.name,
        "count": operator.count,
        "arithmetic": operator.arithmetic if float(cost.matmul_flops) else None,
        **_quantities(cost),
        "attainable_flop_per_s": _attainable(cost, operator.arithmetic, deployment),
        "time_s": float(time.seconds),
        **_ends(_interval_s(PassTime((time,), 0.0, time.seconds), deployment)),
        "share": float(time.seconds) / whole_s,
        "bound": str(time.bound),
    }


def _total(
    timed: PassTime, deployment: Deployment, interval_s: tuple[float, float] | None
) -> dict[str, object]:
    cost = timed.cost
    main = max(timed.operators, key=lambda time: float(time.operator.cost.matmul_flops) * time.operator.count)
    return {
        "operator": "total",
        "count": None,
        "arithmetic": main.operator.arithmetic,
        **_quantities(cost),
        "attainable_flop_per_s": _attainable(cost, main.operator.arithmetic, deployment),
        "time_s": float(timed.seconds),
        **_ends(interval_s),
        "share": 1.0,
        "bound": str(timed.bound),
    }


def _interval_s(timed: PassTime, deployment: Deployment) -> tuple[float, float] | None:
    """Ends of the 90 % interval of a time (s); None where nothing states its errors."""
    estimate = pass_estimate(timed, deployment.machine, "pass")
    if not estimate.errors:
        return None
    low, high = estimate.interval()
    return float(low), float(high)


def _ends(interval_s: tuple[float, float] | None) -> dict[str, object]:
    low, high = interval_s or (None, None)
    return {"time_low_s": low, "time_high_s": high}


def _quantities(cost: Cost) -> dict[str, object]:
    named: dict[str, object] = {"flops": float(cost.matmul_flops)}
    named |= {kind: float(getattr(cost, kind)) for kind in _BYTES}
    moved = float(cost.bytes_moved)
    named["intensity_flop_per_byte"] = float(cost.intensity_flop_per_byte) if moved else None
    return named


def _attainable(cost: Cost, arithmetic: str, deployment: Deployment) -> float | None:
    if not float(cost.matmul_flops):
        return None
    profile = deployment.machine.profile
    return float(
        attainable_flop_per_s(
            float(cost.intensity_flop_per_byte),
            profile.peak_flop_per_s(arithmetic),
            profile.bandwidth_bytes_per_s,
        )
    )


def _words(timed: PassTime, deployment: Deployment, phase: str) -> str:
    profile = deployment.machine.profile
    intensity = float(timed.cost.intensity_flop_per_byte)
    ends = _interval_s(timed, deployment)
    between = "" if ends is None else f" ({' to '.join(format_quantity(end, 's', 3) for end in ends)})"
    waits = {"memory": "memory bandwidth", "compute": "arithmetic", "network": "the network"}
    bound = waits.get(str(timed.bound), "per-kernel overhead")
    return (
        f"A {phase} pass of {deployment.model.name} on {profile.name} takes "
        f"{format_quantity(float(timed.seconds), 's', 4)}{between} and is bound by {bound}: it does "
        f"{intensity:.3g} FLOP per byte{_ridges(timed, profile)}."
    )


def _ridges(timed: PassTime, profile: HardwareProfile) -> str:
    """The ridge point of every arithmetic that multiplies matrices, that of most FLOPs first."""
    flops: dict[str, float] = {}
    for time in timed.operators:
        operator = time.operator
        done = float(operator.cost.matmul_flops) * operator.count
        flops[operator.arithmetic] = flops.get(operator.arithmetic, 0.0) + done
    used = sorted((one for one, done in flops.items() if done), key=lambda one: -flops[one])
    ridges = [f"{profile.ridge_point(arithmetic):.3g} for {arithmetic}" for arithmetic in used]
    return f", against {'a ridge point' if len(ridges) == 1 else 'ridge points'} of {' and '.join(ridges)}"
