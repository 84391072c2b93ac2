"""Measured times as tidy tables: medians with their spread, and how a pass grows with its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.errors import InputError
from rooflines.measurement.probe import sustained
from rooflines.measurement.schema import DecodeFile, MachineFile, Sample, StepsFile

Columns = dict[str, list[object]]

_UNITS: Final = {"read": "B/s", "copy": "B/s", "gemm": "FLOP/s", "launch": "s"}


@dataclass(frozen=True, slots=True)
class Curve:
    """Times of passes of growing width, all else equal.

    Attributes:
        batch: sequences.
        context: positions cached before.
        positions: new positions per sequence, rising.
        median_s: of each (s).
        low_s: first quartile (s).
        high_s: third quartile (s).
    """

    batch: int
    context: int
    positions: tuple[int, ...]
    median_s: tuple[float, ...]
    low_s: tuple[float, ...]
    high_s: tuple[float, ...]


def sample_table(file: DecodeFile) -> Columns:
    """One row a case, in the order of the file: medians, spread, and each pass relative to one position."""
    samples = file.samples
    quartiles = [np.quantile(one.seconds, (0.25, 0.5, 0.75)) for one in samples]
    singles = {_setting(one): float(np.median(one.seconds)) for one in samples if one.new_positions == 1}
    return {
        "case": [one.case for one in samples],
        "batch": [one.batch for one in samples],
        "new_positions": [one.new_positions for one in samples],
        "context": [one.context for one in samples],
        "depth": [one.depth for one in samples],
        "times": [len(one.seconds) for one in samples],
        "median_s": [float(middle) for _, middle, _ in quartiles],
        "iqr_s": [float(high - low) for low, _, high in quartiles],
        "wall_median_s": [float(np.median(one.wall_s)) for one in samples],
        "relative_to_one_position": [
            float(middle) / singles[_setting(one)] if _setting(one) in singles else None
            for one, (_, middle, _) in zip(samples, quartiles, strict=True)
        ],
    }


def machine_table(file: MachineFile) -> Columns:
    """One row a probe: what it sustains and how much that spreads."""
    rates = [sustained(one) for one in file.samples]
    return {
        "quantity": [one.quantity for one in file.samples],
        "dtype": [one.dtype for one in file.samples],
        "shape": ["x".join(map(str, one.shape)) for one in file.samples],
        "unit": [_UNITS[one.quantity] for one in file.samples],
        "median": [value for value, _ in rates],
        "iqr_share": [spread for _, spread in rates],
        "times": [len(one.seconds) for one in file.samples],
    }


def step_table(file: StepsFile) -> Columns:
    """One row a cell of a table that another tool measured."""
    return {
        "batch": [one.batch for one in file.steps],
        "new_positions": [one.new_positions for one in file.steps],
        "context": [one.context for one in file.steps],
        "times": [len(one.seconds) for one in file.steps],
        "median_s": [float(np.median(one.seconds)) for one in file.steps],
    }


def curves(file: DecodeFile, least: int = 3) -> tuple[Curve, ...]:
    """Whole passes by width, one curve a batch and context that has `least` widths.

    Raises:
        InputError: no such curve was measured.
    """
    whole = max(one.depth for one in file.samples)
    groups: dict[tuple[int, int], list[Sample]] = {}
    for one in file.samples:
        if one.case == "step" and one.depth == whole:
            groups.setdefault((one.batch, one.context), []).append(one)
    found = [_curve(key, group) for key, group in sorted(groups.items()) if len(group) >= least]
    if not found:
        raise InputError(f"no step was measured with {least} widths or more: measure more --positions")
    return tuple(found)


def _setting(sample: Sample) -> tuple[str, int, int, int]:
    return (sample.case, sample.batch, sample.context, sample.depth)


def _curve(key: tuple[int, int], samples: Sequence[Sample]) -> Curve:
    ordered = sorted(samples, key=lambda one: one.new_positions)
    quartiles = np.array([np.quantile(one.seconds, (0.25, 0.5, 0.75)) for one in ordered])
    return Curve(
        batch=key[0],
        context=key[1],
        positions=tuple(one.new_positions for one in ordered),
        median_s=tuple(quartiles[:, 1].tolist()),
        low_s=tuple(quartiles[:, 0].tolist()),
        high_s=tuple(quartiles[:, 2].tolist()),
    )
