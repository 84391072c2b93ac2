"""Rows that one device cannot have taken so long for, since another of the same silicon did not.

Two devices of one silicon differ in clocks, units and memory, which their datasheets state. Where the rows of
one shape take far longer on one of them than those ratios allow, under the same software, something else ran
or something slowed it down: another kernel, a missing tuned table, a clock. Which of it is not told; the
rows are named, and neither fitted to nor judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.profile import HardwareProfile
from rooflines.validation.kernel_tables.rows import Floats, Group, KernelRows, LeftOut
from rooflines.validation.kernel_tables.traps import plain_roofline_s

# Devices of one silicon (the profiles' sources), each with its own memory, clocks and links.
SILICON: Final[Sequence[frozenset[str]]] = (
    frozenset(
        {
            "a100-pcie-40gb",
            "a100-pcie-80gb",
            "a100-sxm4-40gb",
            "a100-sxm4-80gb",
            "a30",
            "a800-pcie-80gb",
            "a800-sxm4-80gb",
        }
    ),
    frozenset(
        {
            "gh200-144gb",
            "gh200-96gb",
            "h100-nvl-94gb",
            "h100-pcie-80gb",
            "h100-sxm5-80gb",
            "h20-96gb",
            "h200-nvl-141gb",
            "h200-sxm-141gb",
            "h800-sxm5",
        }
    ),
    frozenset({"b200-sxm-180gb", "gb200"}),
    frozenset({"b300-sxm", "gb300"}),
)
# Of 231 pairs of shapes that H100 and H200, or B200 and GB200, have in common under one software (tables of
# AIConfigurator 0.12.0), 229 are within 1.34 times the ratio of the datasheets, either way; two are 1.65 and
# 1.69 times beyond it.
MARGIN: Final = 1.5
# Fewer sizes of a shape could be outliers.
_FEWEST_SIZES: Final = 3


def without_odd_shapes(groups: Iterable[KernelRows]) -> tuple[tuple[KernelRows, ...], tuple[LeftOut, ...]]:
    """Leave out shapes that took more than `MARGIN` times what every sister device says they should.

    Only single kernels are compared: all-reduces follow the links between devices, not the silicon.

    Args:
        groups: of one table.

    Returns:
        The groups that are left, and what was left out of them.
    """
    listed = tuple(groups)
    profile = cache(load_hardware)  # shapes are many, devices few
    kept: list[KernelRows] = []
    left_out: list[LeftOut] = []
    for rows in listed:
        others = tuple(_sisters(rows, listed))
        odd = np.zeros(len(rows.shape), dtype=np.bool_)
        for shape in np.unique(rows.shape) if others else ():
            found = _excess(rows, others, str(shape), profile)
            if found is not None and found[0] > MARGIN:
                own = rows.shape == shape
                odd |= own
                left_out.append(LeftOut(rows.group, _reason(*found), tuple(rows.line[own].tolist())))
        if not odd.all():
            kept.append(rows.rows(~odd) if odd.any() else rows)
    return tuple(kept), tuple(left_out)


def _reason(excess: float, sister: str) -> str:
    return (
        f"{excess:.1f} times as long as on {sister} beyond what the datasheets of the two allow: "
        "another kernel or clock"
    )


def _sisters(rows: KernelRows, groups: Sequence[KernelRows]) -> Iterator[KernelRows]:
    """The same group on other devices of the silicon."""
    own = rows.group.device
    silicon = next((one for one in SILICON if own in one), frozenset[str]())
    if len(rows.operators) > 1 or rows.group.operator == "collective":
        return
    for other in groups:
        device = other.group.device
        if device != own and device in silicon and _anywhere(other.group) == _anywhere(rows.group):
            yield other


def _anywhere(group: Group) -> Group:
    return replace(group, device="")


def _excess(
    rows: KernelRows, others: Iterable[KernelRows], shape: str, profile: Callable[[str], HardwareProfile]
) -> tuple[float, str] | None:
    """How many times longer a shape took than the nearest sister says, and which that is."""
    sizes, measured_s, plain_s = _by_size(rows, shape, profile(rows.group.device))
    found: list[tuple[float, str]] = []
    for other in others:
        other_sizes, other_s, other_plain_s = _by_size(other, shape, profile(other.group.device))
        _, here, there = np.intersect1d(sizes, other_sizes, return_indices=True)
        if len(here) >= _FEWEST_SIZES:
            allowed = np.maximum(plain_s[here] / other_plain_s[there], 1.0)
            excess = float(np.median(measured_s[here] / other_s[there] / allowed))
            found.append((excess, other.group.device))
    return min(found, default=None)


def _by_size(rows: KernelRows, shape: str, profile: HardwareProfile) -> tuple[Floats, Floats, Floats]:
    """Sizes of one shape, with the median time and plain roofline of each (s)."""
    own = rows.shape == shape
    plain_s = np.maximum(*plain_roofline_s(rows.operators[0], profile))
    sizes = np.unique(rows.size[own])
    at = [own & (rows.size == size) for size in sizes]
    return (
        sizes,
        np.array([np.median(rows.measured_s[chosen]) for chosen in at]),
        np.array([np.median(np.broadcast_to(plain_s, own.shape)[chosen]) for chosen in at]),
    )
