"""A machine: a hardware profile and the constants that its kernels attain.

Three kinds: *textbook* (the datasheet, all efficiencies 1), *default* (transferable constants for devices
that nobody measured here; what a profile measured on the machine itself sustains) and *calibrated*.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from typing import Final

from rooflines.costs.cost import Operator
from rooflines.errors import FileFormatError, InputError, ProfileError
from rooflines.hardware.calibration import CLASSES, Calibration, OperatorConstants
from rooflines.hardware.calibration_files import transferable_calibration
from rooflines.hardware.constants import DEFAULT_SHARPNESS, TEXTBOOK, Constants
from rooflines.hardware.profile import HardwareProfile

# Over PCIe there is no custom kernel: NCCL's 12-24 us, and 0.05-0.5 of the link depending on its topology.
_COLLECTIVE_PCIE: Final = Constants(0.3, 1.0, 20e-6, 1.0)
# Operator classes whose names say too little to a reader.
_IN_WORDS: Final = {
    "small": "embedding and sampling",
    "moe": "mixtures of experts",
    "recurrent": "recurrent layers",
    "linear": "linear layers",
    "collective": "collectives",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, or a group of equal devices, that can time operators.

    Attributes:
        profile: datasheet facts.
        constants: constants of an operator on this device.
        rests: what the constants rest on, for the reader of a result.
        overhead_s: host time per pass that overlaps nothing (s).
        calibration: where constants and their errors are stated; None for the textbook.
        lacking: operator classes that the calibration has no constants of.
    """

    profile: HardwareProfile
    constants: Callable[[Operator], Constants]
    rests: str
    overhead_s: float = 0.0
    calibration: Calibration | None = None
    lacking: tuple[str, ...] = ()

    @property
    def basis(self) -> str:
        """What times of any pass rest on."""
        return self.basis_for(self.lacking)

    def basis_for(self, classes: Container[str]) -> str:
        """What times of passes rest on that have operators of these classes alone."""
        found = [_IN_WORDS.get(name, name.replace("_", " ")) for name in self.lacking if name in classes]
        return f"{self.rests}; transferable defaults for {', '.join(found)}" if found else self.rests

    def errors_of(self, operator: Operator) -> OperatorConstants | None:
        """The entry whose residuals tell how wrong the time of an operator is; None for the textbook.

        Constants without residuals of their own, and those of another device of the class, are no better than
        the medians over devices.
        """
        if self.calibration is None:
            return None
        key = (operator.kind, operator.arithmetic, operator.storage)
        own = self.calibration.find(*key) if self.calibration.device == self.profile.id else None
        return own if own is not None and own.residuals else transferable_entry(*key)

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
    """Medians over the measured devices, by operator class; the result is marked as not calibrated.

    A profile that was measured on the machine itself states what kernels sustain, so nothing is taken off it.
    """
    if profile.memory_bandwidth is not None and profile.memory_bandwidth.basis == "measured":
        return _sustained_machine(profile, overhead_s)

    def constants(operator: Operator) -> Constants:
        if operator.kind == "collective" and profile.interconnect_per_direction is None:
            return _COLLECTIVE_PCIE
        return transferable_entry(operator.kind, operator.arithmetic, operator.storage).constants

    return Machine(
        profile,
        constants,
        "transferable default constants (not calibrated on this device)",
        overhead_s,
        transferable_calibration(),
    )


def _sustained_machine(profile: HardwareProfile, overhead_s: float) -> Machine:
    """What a profile measured on the machine itself says: efficiencies are 1 by definition.

    On a CPU one core both loads and computes, so memory and arithmetic add (p = 1).
    """
    sustained = Constants(sharpness=1.0 if profile.kind == "cpu" else DEFAULT_SHARPNESS)
    basis = "rates that this machine sustains (measured), of kernels without overhead: not calibrated"
    return Machine(profile, lambda _: sustained, basis, overhead_s)


@cache
def transferable_entry(operator: str, arithmetic: str, storage: str) -> OperatorConstants:
    """The medians over measured devices that an operator gets; those of 16 bits for formats without any.

    Raises:
        FileFormatError: the shipped medians lack the class.
    """
    medians = transferable_calibration()
    found = medians.find(operator, arithmetic, storage) or medians.find(operator, "bf16", "bf16")
    if found is None:
        raise FileFormatError(f"calibration {medians.name} has no constants for {operator}")
    return found


def calibrated_machine(
    profile: HardwareProfile, calibration: Calibration, overhead_s: float | None = None
) -> Machine:
    """Constants that were fitted to measured kernels; operators without some get transferable ones.

    Args:
        profile: the device, or one of the same class.
        calibration: what was fitted.
        overhead_s: host time per pass (s); None for that of the calibration.

    Raises:
        InputError: a calibration without constants: a table of step times of one model.
    """
    if calibration.steps and not calibration.operators:
        raise InputError(
            f"calibration {calibration.name} holds step times of one model and no constants: give it to "
            "rooflines plan as --steps, or to rooflines check; to predict others, fit constants (rooflines "
            "calibrate)"
        )
    default = default_machine(profile)
    table: dict[tuple[str, str, str], Constants | None] = {}

    # Links are what devices of one class differ in most.
    other_link = calibration.device != profile.id and profile.interconnect_per_direction is None

    def constants(operator: Operator) -> Constants:
        key = (operator.kind, operator.arithmetic, operator.storage)
        if key not in table and operator.kind == "collective" and other_link:
            table[key] = None
        if key not in table:
            found = calibration.find(*key)
            table[key] = None if found is None else found.constants
        return table[key] or default.constants(operator)

    host_s = calibration.host_overhead_s if overhead_s is None else overhead_s
    known = {entry.operator for entry in calibration.operators}
    lacking = tuple(name for name in CLASSES if name not in known)
    return Machine(profile, constants, _rests(profile, calibration), host_s, calibration, lacking)


def _rests(profile: HardwareProfile, calibration: Calibration) -> str:
    """What a calibration rests on."""
    bases = {entry.provenance.basis for entry in calibration.operators}
    if bases <= {"judged", "class"}:
        return f"constants from {calibration.stack} ({calibration.name}): {profile.id} is not measured"
    if calibration.device == profile.id:
        return f"calibrated with {calibration.stack} ({calibration.name})"
    return (
        f"constants of {calibration.device}, a device of the same class, with {calibration.stack} "
        f"({calibration.name}): {profile.id} itself is not measured"
    )
