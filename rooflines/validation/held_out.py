"""Predictions of rows by constants that never saw their shape, with intervals that never saw it either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.profile import HardwareProfile
from rooflines.timing.machine import textbook_machine
from rooflines.validation.class_entries import Key, entry_key
from rooflines.validation.class_fits import held_out_s, predicted_s
from rooflines.validation.class_forms import FITTED
from rooflines.validation.judge import Judged, judge_times
from rooflines.validation.kernel_tables.rows import KernelRows, KernelTable
from rooflines.validation.new_shapes import next_shape_ends

Floats = NDArray[np.float64]
# The fewest rows of other shapes that can state ends.
_FEWEST_ROWS: Final = 8


def held_out_judged(tables: Iterable[KernelTable]) -> list[Judged]:
    """Every row that can be held out, beside its prediction.

    Constants are fitted class by class for one device and stack; rows of a class with too few shapes to hold
    one out are missing.

    Args:
        tables: measured kernels.
    """
    together: dict[tuple[str, str, Key], list[tuple[KernelRows, str]]] = {}
    for table in tables:
        for rows in table.groups:
            if rows.group.operator in FITTED:
                key = (rows.group.device, rows.group.stack, entry_key(rows.operators[0]))
                together.setdefault(key, []).append((rows, table.file))
    judged: list[Judged] = []
    for (device, _, _), parts in together.items():
        judged += _judge_class(
            [rows for rows, _ in parts], [file for _, file in parts], load_hardware(device)
        )
    return judged


def _judge_class(
    groups: Sequence[KernelRows], files: Sequence[str], profile: HardwareProfile
) -> list[Judged]:
    predicted = held_out_s(groups, profile)
    log = np.log(np.concatenate([rows.measured_s for rows in groups]) / np.concatenate(predicted))
    shape = np.concatenate([rows.shape for rows in groups])
    region = np.concatenate([rows.region for rows in groups])
    low, high = ends_of_others(log, shape, region)
    judged, first = [], 0
    for rows, seconds, file in zip(groups, predicted, files, strict=True):
        own = slice(first, first + len(seconds))
        first += len(seconds)
        kept = np.isfinite(seconds)
        if not kept.any():
            continue
        used, found = rows.rows(kept), seconds[kept]
        judged.append(
            judge_times(
                used,
                file,
                predicted_s=found,
                plain_s=predicted_s(used, textbook_machine(profile)),
                interval_s=(found * np.exp(low[own][kept]), found * np.exp(high[own][kept])),
                in_sample=np.zeros(len(found), dtype=bool),
                basis="held out by shape",
            )
        )
    return judged


def ends_of_others(log: Floats, shape: NDArray[np.str_], region: NDArray[np.str_]) -> tuple[Floats, Floats]:
    """Ends of ln(measured / predicted) out of the rows of other shapes in the region of each row (N each).

    Args:
        log: ln(measured / predicted) by constants that did not see the row's shape (N); NaN for none.
        shape: of each row (N), or whatever else was left out in turn.
        region: of each row (N).

    Returns:
        NaN where too few rows of other shapes lie in the region.
    """
    low, high = np.full(len(log), np.nan), np.full(len(log), np.nan)
    for name in np.unique(region):
        here = (region == name) & np.isfinite(log)
        for one in np.unique(shape[here]):
            own, others = here & (shape == one), here & (shape != one)
            if np.count_nonzero(others) >= _FEWEST_ROWS:
                low[own], high[own] = next_shape_ends(log[others], shape[others])
    return low, high
