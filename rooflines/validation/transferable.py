"""The constants that a device gets which nobody measured: medians over the measured ones.

How wrong they are is told by leaving each device out in turn and predicting its rows with the medians of the
others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from statistics import median
from typing import Final

import numpy as np

from rooflines.errors import CannotTellError
from rooflines.hardware.calibration import ANY, Calibration, OperatorClass, OperatorConstants, Provenance
from rooflines.hardware.calibration_files import TRANSFERABLE
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.constants import DEFAULT_SHARPNESS, Constants
from rooflines.validation.calibrate import SERVING
from rooflines.validation.class_entries import entry_key
from rooflines.validation.class_fits import predicted_s, with_constants
from rooflines.validation.class_forms import FITTED
from rooflines.validation.kernel_tables.rows import KernelRows, KernelTable
from rooflines.validation.residuals import residuals

Key = tuple[str, str, str]
# A median of one device is that device.
FEWEST_DEVICES: Final = 2
# Elementwise kernels take 0.94-1.34 us in a CUDA graph and 1.6-2.6 us in a stream (A100, L40, GH200); tables
# with a host's timer, such as Vidur's, say 8 us.
_SMALL_OVERHEAD_S: Final = 2.5e-6


def transferable(calibrations: Iterable[Calibration], tables: Sequence[KernelTable]) -> Calibration:
    """Medians over devices of the constants of each class and format that two devices or more have.

    Args:
        calibrations: of devices and stacks.
        tables: the rows that they were fitted to, to judge the medians by.

    Raises:
        CannotTellError: 16-bit products of two devices are not among them.
    """
    listed = tuple(calibrations)
    entries = []
    for key, own in sorted(_by_device(listed).items()):
        form = Counter(entry.form for found in own.values() for entry in found).most_common(1)[0][0]
        alike = {device: [entry for entry in found if entry.form == form] for device, found in own.items()}
        kept = {device: _median(found) for device, found in alike.items() if found}
        if len(kept) >= FEWEST_DEVICES:
            entries.append(_entry(key, form, kept, _rows(key, own, tables)))
    if ("linear", "bf16") not in {(entry.operator, entry.storage) for entry in entries}:
        raise CannotTellError(
            "medians need 16-bit products of two devices with one form: add tables of another"
        )
    return Calibration(
        name=TRANSFERABLE,
        device=ANY,
        stack="several stacks",
        created=max(one.created for one in listed),
        sources=listed[0].sources,
        operators=(*entries, *_judged(entries)),
    )


def _by_device(calibrations: Sequence[Calibration]) -> dict[Key, dict[str, list[OperatorConstants]]]:
    """Entries by class and format, then by device; what was borrowed counts where it was measured."""
    found: dict[Key, dict[str, list[OperatorConstants]]] = {}
    for one in calibrations:
        if not one.stack.startswith(SERVING):
            continue
        linked = load_hardware(one.device).interconnect_per_direction is not None
        for entry in one.operators:
            # What goes over PCIe follows its topology, and no median.
            if entry.provenance.stack != one.stack or (entry.operator == "collective" and not linked):
                continue
            key = (entry.operator, entry.arithmetic, entry.storage)
            found.setdefault(key, {}).setdefault(one.device, []).append(entry)
    return found


def _median(entries: Sequence[OperatorConstants]) -> Constants:
    return _medians([entry.constants for entry in entries])


def _medians(constants: Sequence[Constants]) -> Constants:
    values = {
        field.name: median(getattr(one, field.name) for one in constants) for field in fields(Constants)
    }
    return Constants(**values)


def _rows(
    key: Key, own: Mapping[str, Sequence[OperatorConstants]], tables: Sequence[KernelTable]
) -> dict[str, list[KernelRows]]:
    """Rows of a class and format by device, of the stacks that count."""
    stacks = {device: {entry.provenance.stack for entry in found} for device, found in own.items()}
    rows: dict[str, list[KernelRows]] = {}
    for table in tables:
        for group in table.groups:
            device = group.group.device
            if (
                group.group.operator in FITTED
                and entry_key(group.operators[0]) == key
                and group.group.stack in stacks.get(device, ())
            ):
                rows.setdefault(device, []).append(group)
    return rows


def _entry(
    key: Key, form: str, kept: Mapping[str, Constants], rows: Mapping[str, Sequence[KernelRows]]
) -> OperatorConstants:
    devices, regions, measured, others_s, all_s = [], [], [], [], []
    every = _medians(list(kept.values()))
    for device, groups in rows.items():
        profile = load_hardware(device)
        others = _medians([one for name, one in kept.items() if name != device])
        for group in groups:
            devices.append(np.full(len(group.region), device))
            regions.append(group.region)
            measured.append(group.measured_s)
            others_s.append(predicted_s(group, with_constants(profile, others)))
            all_s.append(predicted_s(group, with_constants(profile, every)))
    return OperatorConstants.model_validate(
        {
            "operator": key[0],
            "arithmetic": key[1],
            "storage": key[2],
            "form": form,
            "constants": every,
            "provenance": Provenance(
                basis="transferable",
                stack="several stacks",
                rows=int(sum(len(one) for one in measured)),
                shapes=len(kept),
                note=f"medians over {', '.join(sorted(kept))}; errors of devices left out in turn",
            ),
            "residuals": residuals(
                np.concatenate(devices),
                np.concatenate(regions),
                np.concatenate(measured),
                np.concatenate(others_s),
                np.concatenate(all_s),
            ),
        }
    )


def _judged(entries: Sequence[OperatorConstants]) -> list[OperatorConstants]:
    """Classes that no table of a serving engine has: shares of 16-bit products, and a launch."""
    products = next(one for one in entries if (one.operator, one.storage) == ("linear", "bf16"))
    constants = Constants(
        bandwidth_efficiency=products.constants.bandwidth_efficiency,
        compute_efficiency=products.constants.compute_efficiency,
        overhead_s=_SMALL_OVERHEAD_S,
        sharpness=DEFAULT_SHARPNESS,
    )
    classes: tuple[OperatorClass, ...] = ("recurrent", "small")
    return [
        OperatorConstants(
            operator=operator,
            arithmetic=ANY,
            storage=ANY,
            form="smooth maximum and floor",
            constants=constants,
            provenance=Provenance(
                basis="judged", note="shares of 16-bit products, and the launch of a kernel"
            ),
        )
        for operator in classes
    ]
