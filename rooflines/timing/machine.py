"""A machine: a hardware profile and the constants that its kernels attain.

Three kinds: *textbook* (the datasheet, all efficiencies 1), *default* (transferable constants for devices
that nobody measured here) and *calibrated*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rooflines.costs.cost import Operator
from rooflines.errors import ProfileError
from rooflines.hardware.calibration import CLASSES, Calibration
from rooflines.hardware.constants import (
    DEFAULT_LINEAR_OVERHEAD_S,
    DEFAULT_SHARPNESS,
    TEXTBOOK,
    Constants,
)
from rooflines.hardware.profile import HardwareProfile

# Medians of the AIConfigurator 0.12.0 tables over their GPUs (https://pypi.org/project/aiconfigurator-core/):
# shares of bandwidth and peak where a device has no prior of its own, by arithmetic.
_GENERIC: Final = {"bf16": (0.825, 0.77), "fp16": (0.825, 0.77), "fp8": (0.77, 0.49), "fp4": (0.70, 0.44)}
_GENERIC_OTHER: Final = (0.825, 0.77)
# Decode attention: KV bytes / (e_b BW) + t0, e_b 0.81-0.94 and t0 9-13 us (bf16 KV beyond the last cache).
_DECODE_ATTENTION: Final = (0.86, 10e-6)
# fp8 KV reaches a smaller share on Hopper (0.48-0.78) than elsewhere (0.85-0.90).
_DECODE_ATTENTION_FP8_HOPPER: Final = 0.65
# Prefill attention: e_f 0.55-0.72 / (1 + s0 / n), s0 500-2600 tokens, t0 10-17 us.
_PREFILL_ATTENTION: Final = (0.63, 1000.0, 12e-6)
# MoE layer: e_b 0.86-0.92, e_f 0.20-0.31, t0 20-37 us for router, permutation and two grouped products.
_MOE: Final = (0.89, 0.25, 28e-6)
# Custom all-reduce inside a node: 2.5-8 us, 0.43-0.79 of one direction of the link.
_COLLECTIVE: Final = (0.6, 4e-6)
# Over PCIe there is no custom kernel: NCCL's 12-24 us, and 0.05-0.5 of the link depending on its topology.
_COLLECTIVE_PCIE: Final = (0.3, 20e-6)
# Elementwise kernels: 0.94-1.34 us in a CUDA graph, 1.6-2.6 us in a stream (A100, L40, GH200).
_SMALL_OVERHEAD_S: Final = 2.5e-6


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, or a group of equal devices, that can time operators.

    Attributes:
        profile: datasheet facts.
        constants: constants of an operator on this device.
        basis: what the constants rest on, for the reader of a result.
        overhead_s: host time per pass that overlaps nothing (s).
        calibration: where constants and their errors are stated; None for the textbook and the defaults.
    """

    profile: HardwareProfile
    constants: Callable[[Operator], Constants]
    basis: str
    overhead_s: float = 0.0
    calibration: Calibration | None = None

    def link_bytes_per_s(self) -> float:
        """Bandwidth of one direction of the link between devices (bytes/s).

        Raises:
            ProfileError: the profile states none.
        """
        link = self.profile.interconnect_per_direction or self.profile.pcie_per_direction
        if link is None:
            raise ProfileError(
                f"{self.profile.id} states no interconnect bandwidth, so several devices cannot be timed: "
                "use tensor parallelism 1, or a profile of your own that states it"
            )
        return link.value.si


def textbook_machine(profile: HardwareProfile, overhead_s: float = 0.0) -> Machine:
    """Datasheet numbers and a hard maximum: what roofline plots draw."""
    return Machine(
        profile, lambda _: TEXTBOOK, "textbook roofline (datasheet peaks, hard maximum)", overhead_s
    )


def default_machine(profile: HardwareProfile, overhead_s: float = 0.0) -> Machine:
    """Transferable constants by operator class; the result is marked as not calibrated."""
    table: dict[tuple[str, str, str], Constants] = {}

    def constants(operator: Operator) -> Constants:
        key = (operator.kind, operator.arithmetic, operator.storage)
        if key not in table:
            table[key] = _default_constants(profile, operator)
        return table[key]

    return Machine(
        profile, constants, "transferable default constants (not calibrated on this device)", overhead_s
    )


def calibrated_machine(
    profile: HardwareProfile, calibration: Calibration, overhead_s: float | None = None
) -> Machine:
    """Constants that were fitted to measured kernels; operators without some get transferable ones.

    Args:
        profile: the device, or one of the same class.
        calibration: what was fitted.
        overhead_s: host time per pass (s); None for that of the calibration.
    """
    default = default_machine(profile)
    table: dict[tuple[str, str, str], Constants | None] = {}

    def constants(operator: Operator) -> Constants:
        key = (operator.kind, operator.arithmetic, operator.storage)
        if key not in table:
            found = calibration.find(*key)
            table[key] = None if found is None else found.constants
        return table[key] or default.constants(operator)

    host_s = calibration.host_overhead_s if overhead_s is None else overhead_s
    return Machine(profile, constants, _basis(profile, calibration), host_s, calibration)


def _basis(profile: HardwareProfile, calibration: Calibration) -> str:
    """What a calibration rests on, and which classes it says nothing of."""
    bases = {entry.provenance.basis for entry in calibration.operators}
    if bases <= {"judged", "class"}:
        rests = f"constants from {calibration.stack} ({calibration.name}): {profile.id} is not measured"
    elif calibration.device == profile.id:
        rests = f"calibrated with {calibration.stack} ({calibration.name})"
    else:
        rests = (
            f"constants of {calibration.device}, a device of the same class, with {calibration.stack} "
            f"({calibration.name}): {profile.id} itself is not measured"
        )
    lacking = [name for name in CLASSES if name not in {entry.operator for entry in calibration.operators}]
    if not lacking:
        return rests
    return f"{rests}; transferable defaults for {', '.join(name.replace('_', ' ') for name in lacking)}"


def _default_constants(profile: HardwareProfile, operator: Operator) -> Constants:
    e_b, e_f = _linear_efficiencies(operator)
    match operator.kind:
        case "linear":
            return Constants(e_b, e_f, DEFAULT_LINEAR_OVERHEAD_S, DEFAULT_SHARPNESS)
        case "decode_attention":
            share, overhead = _DECODE_ATTENTION
            if operator.storage.startswith("fp8") and "Hopper" in (profile.architecture or ""):
                share = _DECODE_ATTENTION_FP8_HOPPER
            return Constants(share, e_f, overhead, DEFAULT_SHARPNESS)
        case "prefill_attention":
            share, saturation, overhead = _PREFILL_ATTENTION
            return Constants(e_b, share, overhead, DEFAULT_SHARPNESS, saturation)
        case "moe":
            share, compute, overhead = _MOE
            return Constants(share, compute, overhead, DEFAULT_SHARPNESS)
        case "collective":
            share, overhead = _COLLECTIVE if profile.interconnect_per_direction else _COLLECTIVE_PCIE
            return Constants(share, 1.0, overhead, 1.0)
        case "recurrent" | "small":
            return Constants(e_b, e_f, _SMALL_OVERHEAD_S, DEFAULT_SHARPNESS)


def _linear_efficiencies(operator: Operator) -> tuple[float, float]:
    return _GENERIC.get(operator.arithmetic, _GENERIC_OTHER)
