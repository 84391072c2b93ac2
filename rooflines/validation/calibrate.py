"""From tables of measured kernels to calibrations: one for each device and software stack.

The newest version of each serving engine borrows what only another stack of the same device was measured
with, and says so; the calibration that a device is given by default also stands for its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rooflines.errors import CannotTellError
from rooflines.hardware.calibration import Calibration, OperatorConstants
from rooflines.hardware.calibration_files import preference
from rooflines.hardware.catalogue import load_hardware
from rooflines.validation.class_entries import class_entries
from rooflines.validation.class_forms import FITTED
from rooflines.validation.kernel_tables.rows import Group, KernelRows, KernelTable, LeftOut

Entry = tuple[str, str, str]
# Devices of one architecture class, which take the constants of the measured one for want of their own: the
# classes of the project's table of priors (same silicon, other memory, links or clocks).
STANDS_FOR: Final[Mapping[str, tuple[str, ...]]] = {
    "a100-sxm4-80gb": (
        "a100-sxm4-40gb",
        "a100-pcie-40gb",
        "a100-pcie-80gb",
        "a800-sxm4-80gb",
        "a800-pcie-80gb",
        "a30",
    ),
    "h100-sxm5-80gb": (
        "h100-pcie-80gb",
        "h100-nvl-94gb",
        "h200-nvl-141gb",
        "h800-sxm5",
        "h20-96gb",
        "gh200-96gb",
        "gh200-144gb",
    ),
    "l40s": ("l4", "l40", "a10", "a10g", "a40", "rtx-a6000"),
    "b200-sxm-180gb": ("b300-sxm",),
    "gb200": ("gb300",),
}
SERVING: Final = ("vllm", "sglang", "trtllm")
_LENDERS: Final = (*SERVING, "nccl")


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What tables gave.

    Attributes:
        calibrations: by device and stack.
        refused: what the rows could not separate, and what to add.
        left_out: rows not fitted to, with reasons.
    """

    calibrations: tuple[Calibration, ...]
    refused: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows and files of one class and format on one device and stack."""

    groups: tuple[KernelRows, ...]
    left_out: tuple[LeftOut, ...]
    files: tuple[str, ...]


def calibrate(
    tables: Sequence[KernelTable], created: str, sources: Sequence[str], device: str | None = None
) -> Calibrated:
    """Fit every class, format, device and stack of some tables.

    Args:
        tables: what was measured.
        created: ISO date that the calibrations bear.
        sources: where the tables are from.
        device: id of the one device that counts; None for all.

    Raises:
        CannotTellError: nothing can be fitted; the message says why and what to add.
    """
    found: dict[tuple[str, str], list[OperatorConstants]] = {}
    refused: list[str] = []
    for (profile_id, stack, _, _), rows in sorted(_together(tables).items()):
        if device in (None, profile_id):
            fitted = class_entries(rows.groups, rows.left_out, rows.files, load_hardware(profile_id))
            refused += fitted.refused
            if fitted.entries:
                found.setdefault((profile_id, stack), []).extend(fitted.entries)
    left_out = tuple(one for table in tables for one in table.left_out if device in (None, one.group.device))
    if not found:
        reasons = dict.fromkeys((*refused, *(f"{one.rows} row(s): {one.reason}" for one in left_out)))
        why = "; ".join(list(reasons)[:3]) or f"no rows of {device or 'a class that has a form'}"
        raise CannotTellError(f"nothing can be calibrated: {why}")
    own = tuple(
        Calibration(
            name=calibration_name(profile_id, stack),
            device=profile_id,
            stack=stack,
            created=created,
            sources=tuple(sources),
            operators=tuple(entries),
        )
        for (profile_id, stack), entries in found.items()
    )
    return Calibrated(complete(own), tuple(refused), left_out)


def calibration_name(device: str, stack: str) -> str:
    """``h100-sxm5-80gb.vllm-0.24.0``: how the file of a device and a stack is named."""
    return f"{device}.{stack.replace(' ', '-')}"


def complete(calibrations: Iterable[Calibration]) -> tuple[Calibration, ...]:
    """Let engines borrow what other stacks of the device were measured with, and one stand for its class."""
    by_device: dict[str, list[Calibration]] = {}
    for one in sorted(calibrations, key=lambda one: (one.device, *preference(one))):
        by_device.setdefault(one.device, []).append(one)
    done: list[Calibration] = []
    for device, listed in by_device.items():
        newest = {engine: _newest(engine, listed) for engine in SERVING}
        for one in listed:
            added: dict[str, object] = {}
            if one in newest.values():
                added["operators"] = (*one.operators, *_borrowed(one, listed))
            if one is listed[0] and device in STANDS_FOR:
                added["stands_for"] = STANDS_FOR[device]
            done.append(one.model_copy(update=added))
    return tuple(done)


def _newest(engine: str, listed: Sequence[Calibration]) -> Calibration | None:
    """The preferred calibration of an engine; those of its other kernels do not count."""
    own = [one for one in listed if one.stack.split(" ")[0] == engine and len(one.stack.split(" ")) <= 2]  # noqa: PLR2004 - engine and version
    return own[0] if own else None


def _borrowed(one: Calibration, listed: Sequence[Calibration]) -> list[OperatorConstants]:
    has = {_key(entry) for entry in one.operators}
    added: list[OperatorConstants] = []
    for other in listed:
        for entry in other.operators:
            # A host's timer, which adds microseconds to short kernels, is no serving engine's.
            if _key(entry) not in has and other.stack.split(" ")[0] in _LENDERS:
                has.add(_key(entry))
                added.append(entry)
    return added


def _key(entry: OperatorConstants) -> Entry:
    return entry.operator, entry.arithmetic, entry.storage


def _together(tables: Sequence[KernelTable]) -> dict[tuple[str, str, str, str], _Rows]:
    """Rows by device, stack, class and format, with the files that they are from."""
    rows: dict[tuple[str, str, str, str], list[KernelRows]] = {}
    left_out: dict[tuple[str, str, str, str], list[LeftOut]] = {}
    files: dict[tuple[str, str, str, str], list[str]] = {}
    for table in tables:
        for group in table.groups:
            if group.group.operator in FITTED:
                rows.setdefault(_place(group.group), []).append(group)
                files.setdefault(_place(group.group), []).append(table.file)
        for one in table.left_out:
            left_out.setdefault(_place(one.group), []).append(one)
    return {
        place: _Rows(tuple(found), tuple(left_out.get(place, ())), tuple(dict.fromkeys(files[place])))
        for place, found in rows.items()
    }


def _place(group: Group) -> tuple[str, str, str, str]:
    return group.device, group.stack, group.operator, group.dtype
