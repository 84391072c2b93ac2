"""Prompt and output lengths: a constant or a distribution, as weighted values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError

Array = NDArray[np.float64]

# A distribution is carried as the values at the middles of equally likely slices: 256 of them keep the mean
# of a lognormal with sigma 1 within 1 %.
_SLICES: Final = 256
# Beyond any model's positions; a longer one is a slip of the keyboard.
LONGEST: Final = 10**8
_WIDEST_SIGMA: Final = 3.0
_SHAPES: Final = "1024, uniform:100..2000, exponential:MEAN or lognormal:MEDIAN,SIGMA"
_WHOLE: Final = re.compile(r"\d+")
_UNIFORM: Final = re.compile(r"uniform:(\d+)\.\.(\d+)")
_EXPONENTIAL: Final = re.compile(r"exponential:(\d+(?:\.\d+)?)")
_LOGNORMAL: Final = re.compile(r"lognormal:(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths in tokens and how often each occurs.

    Attributes:
        values: shape (K,), 0 or more.
        weights: shape (K,), positive; they sum to 1.
    """

    values: Array
    weights: Array

    def __post_init__(self) -> None:
        if self.values.shape != self.weights.shape or self.values.ndim != 1 or not self.values.size:
            raise InputError("lengths need one weight a value, and at least one value")
        if not np.all(np.isfinite(self.values)) or self.values.min() < 0 or self.values.max() > LONGEST:
            raise InputError(f"lengths must lie within 0..{LONGEST} tokens")
        if not np.all(self.weights > 0) or not np.isclose(self.weights.sum(), 1.0):
            raise InputError("weights of lengths must be positive and sum to 1")

    @property
    def mean(self) -> float:
        """Mean length (tokens)."""
        return float(self.values @ self.weights)


def parse_lengths(text: str, what: str) -> Lengths:
    """Read ``1024``, ``uniform:100..2000``, ``exponential:500`` or ``lognormal:800,0.6``.

    Args:
        text: as typed; the parameters of a lognormal are its median and the deviation of its logarithm.
        what: for the message.

    Raises:
        InputError: none of these, or numbers that no request can have.
    """
    values = _values(text.strip().lower())
    if values is None:
        raise InputError(f"{what} {text!r} is not understood: write {_SHAPES}")
    rounded = np.maximum(np.round(values), 1.0)
    if not np.all(np.isfinite(values)) or rounded.max() > LONGEST or values.max() < 1:
        raise InputError(f"{what} {text!r} must give lengths within 1..{LONGEST} tokens")
    return Lengths(rounded, np.full(rounded.size, 1.0 / rounded.size))


def _values(text: str) -> Array | None:
    middles = (np.arange(_SLICES) + 0.5) / _SLICES
    if _WHOLE.fullmatch(text):
        return np.array([float(text)])
    if match := _UNIFORM.fullmatch(text):
        low, high = float(match[1]), float(match[2])
        return low + (high - low) * middles if low <= high else None
    if match := _EXPONENTIAL.fullmatch(text):
        return -float(match[1]) * np.log1p(-middles)
    if (match := _LOGNORMAL.fullmatch(text)) and float(match[2]) <= _WIDEST_SIGMA:
        normal = np.array([NormalDist().inv_cdf(middle) for middle in middles])
        return float(match[1]) * np.exp(float(match[2]) * normal)
    return None


def summarised(values: Array, weights: Array, most: int) -> tuple[Array, Array]:
    """At most `most` values of equal weight that keep the mean: means of slices of the sorted values.

    Args:
        values: shape (K,).
        weights: shape (K,), sum 1.
        most: number of slices.
    """
    if values.size <= most:
        return values, weights
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    slices = np.minimum((ends - weights[order] / 2) * most, most - 1).astype(np.int64)
    mass = np.bincount(slices, weights[order], minlength=most)
    total = np.bincount(slices, weights[order] * values[order], minlength=most)
    kept = mass > 0
    return total[kept] / mass[kept], mass[kept] / mass.sum()
