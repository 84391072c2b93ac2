"""Which constants answer for a group of rows, and between which ends they state that a time lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rooflines.estimates import Estimate
from rooflines.hardware.calibration import ANY, Calibration
from rooflines.hardware.calibration_files import (
    calibration_of,
    calibrations_of,
    load_calibration,
    transferable_calibration,
)
from rooflines.hardware.catalogue import load_hardware
from rooflines.timing.intervals import log_ends
from rooflines.timing.machine import Machine, calibrated_machine, default_machine, textbook_machine
from rooflines.timing.roofline import PassTime, operator_time
from rooflines.timing.uncertain import Software, elsewhere, pass_estimate
from rooflines.validation.calibrate import SERVING
from rooflines.validation.judge import WHOLE
from rooflines.validation.kernel_tables.rows import Group, KernelRows

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The machine that predicts a group.

    Attributes:
        machine: device and constants.
        calibration: where the constants are from; None for the textbook.
        own_stack: whether they were fitted to kernels of the group's own engine and version.
        basis: the same for people.
    """

    machine: Machine
    calibration: Calibration | None
    own_stack: bool
    basis: str


def choose(rows: KernelRows, calibration: str | Path = "auto") -> Chosen:
    """The machine for the rows of a group.

    Args:
        rows: of one group.
        calibration: ``auto`` takes the calibration of the group's stack, else of its engine, else of its
            device, else of its class, else the transferable defaults; one that has constants for the operator
            class goes first. ``none``, ``textbook``, a name or a file are taken as they are.

    Raises:
        UnknownNameError: no calibration has that name.
        FileFormatError: the file is none.
    """
    group, profile = rows.group, load_hardware(rows.group.device)
    if str(calibration) == "textbook":
        machine = textbook_machine(profile)
        return Chosen(machine, None, own_stack=False, basis=machine.basis)
    found = None
    if str(calibration) == "auto":
        found = _for_stack(rows)
    elif str(calibration) != "none":
        found = load_calibration(calibration)
    if found is None:
        machine = default_machine(profile)
        return Chosen(machine, transferable_calibration(), own_stack=False, basis=machine.basis)
    own = found.device == group.device and _same_stack(found.stack, group)
    basis = f"{found.name} ({found.stack})" + ("" if own else ", another stack")
    return Chosen(calibrated_machine(profile, found), found, own, basis)


def _for_stack(rows: KernelRows) -> Calibration | None:
    """The calibration of the device that is nearest to the stack of the rows and has their class."""
    own = [one for one in calibrations_of(rows.group.device) if _measured(one, rows)]
    if not own:
        return calibration_of(load_hardware(rows.group.device))
    engines = [_engine(one.stack) for one in own]  # in the catalogue's order of preference
    newest = sorted(own, key=lambda one: _version(one.stack), reverse=True)
    return min(newest, key=lambda one: (_distance(one.stack, rows.group), engines.index(_engine(one.stack))))


def _measured(calibration: Calibration, rows: KernelRows) -> bool:
    """Whether a calibration has constants of its own for every operator of the rows."""
    found = [calibration.find(one.kind, one.arithmetic, one.storage) for one in rows.operators]
    return all(one is not None and one.provenance.stack in ("", calibration.stack) for one in found)


def _distance(stack: str, group: Group) -> int:
    """0 for the same stack, 1 for another version of the engine, 2 for one of its other kernels, 3 beyond."""
    if stack == group.stack:
        return 0
    if _engine(stack) != group.engine:
        return 3
    return 1 if len(stack.split(" ")) <= 2 else 2  # noqa: PLR2004 - engine and version, no kernel beside


def _engine(stack: str) -> str:
    return stack.split(" ", maxsplit=1)[0]


def _version(stack: str) -> tuple[int, ...]:
    """Numbers in the name of a stack, so that 0.10 comes after 0.9."""
    return tuple(int(number) for number in re.findall(r"\d+", stack))


def _same_stack(stack: str, group: Group) -> bool:
    """Whether a calibration is of the group's stack; a table without versions names the engine alone."""
    return stack == group.stack or (not group.version and _engine(stack) == group.engine)


def in_sample(rows: KernelRows, chosen: Chosen) -> NDArray[np.bool_]:
    """Whether constants were fitted to the shape of each row (N).

    Layers of the own stack are, since their times are sums of the products that constants were fitted to.
    """
    none = np.zeros(len(rows.measured_s), dtype=bool)
    if chosen.calibration is None or not chosen.own_stack:
        return none
    if rows.group.operator == "layer":
        return ~none
    operator = rows.operators[0]
    entry = chosen.calibration.find(operator.kind, operator.arithmetic, operator.storage)
    if entry is None or entry.provenance.stack not in ("", chosen.calibration.stack):
        return none
    if not entry.provenance.shape_names:
        return np.full(len(none), bool(entry.provenance.rows))
    return np.isin(rows.shape, entry.provenance.shape_names)


def interval_s(rows: KernelRows, chosen: Chosen) -> tuple[Floats, Floats]:
    """Ends of the 90 % interval of each row (N each) (s), out of the residuals that the constants state.

    A calibration of another stack adds the error that constants of one had on another's kernels; one that was
    fitted to the shape of a row is not widened for having seen few shapes.

    Returns:
        NaN where nothing is stated.
    """
    if len(rows.operators) > 1:
        whole = estimate(rows, chosen)
        ends = whole.interval() if whole.errors else (np.nan, np.nan)
        low, high = np.broadcast_arrays(*ends, rows.measured_s)[:2]
        return low, high
    (operator,) = rows.operators
    seconds = np.broadcast_to(operator_time(operator, chosen.machine).seconds, np.shape(rows.measured_s))
    low, high = _log_ends(rows, chosen, (operator.kind, operator.arithmetic, operator.storage))
    _, log_sd = elsewhere(operator.kind, operator.storage, _software(rows.group, chosen))
    centre, reach = (low + high) / 2.0, np.hypot((high - low) / 2.0, NormalDist().inv_cdf(0.95) * log_sd)
    return seconds * np.exp(centre - reach), seconds * np.exp(centre + reach)


def estimate(rows: KernelRows, chosen: Chosen) -> Estimate:
    """Times of rows of several kernels (N) (s) with their errors by cause, as of a pass called `WHOLE`."""
    times = tuple(operator_time(operator, chosen.machine) for operator in rows.operators)
    seconds = sum((one.seconds for one in times), start=np.zeros(len(rows.measured_s)))
    return pass_estimate(
        PassTime(times, 0.0, seconds),
        chosen.machine,
        WHOLE,
        software=_software(rows.group, chosen),
        new_shapes=np.where(in_sample(rows, chosen), 0.0, 1.0),
    )


def _software(group: Group, chosen: Chosen) -> Software:
    """What ran the rows, beside what the constants were fitted to; medians are over several stacks."""
    if chosen.own_stack or chosen.calibration is None or chosen.calibration.device == ANY:
        return "same"
    return "engine" if group.engine in SERVING else "libraries"


def _log_ends(rows: KernelRows, chosen: Chosen, key: tuple[str, str, str]) -> tuple[Floats, Floats]:
    """Ends of ln(measured / predicted) for each row (N each)."""
    low, high = np.full(len(rows.region), np.nan), np.full(len(rows.region), np.nan)
    if chosen.calibration is None:
        return low, high
    entry = chosen.calibration.find(*key)
    if entry is None or not entry.residuals:
        # Constants without errors of their own are no better than the medians over devices.
        entry = transferable_calibration().find(*key)
    if entry is None:
        return low, high
    seen = in_sample(rows, chosen)
    for name in np.unique(rows.region):
        here = rows.region == name
        for known in (True, False):
            ends = log_ends(entry, str(name), new_shape=not known)
            if ends is not None:
                low[here & (seen == known)], high[here & (seen == known)] = ends
    return low, high
