"""A predicted value with what is uncertain about it, kept apart by cause so that shared causes cancel.

A prediction is wrong by factors: log(true) = log(value) + sum of independent errors, each of a *named* cause
with a standard deviation. Two predictions that share a cause (the same kernel, the same device) share its
error, so their ratio is better known than either: sensitivities to a cause subtract, and a cause that acts
alike on both sides of a speedup drops out of it. Errors are propagated to first order in the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError

Number = float | NDArray[np.float64]
LEVEL: Final = 0.9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A positive value whose logarithm has named, independent, normal errors; fields broadcast.

    Attributes:
        value: the prediction (its median).
        errors: cause -> standard deviation of log(true / value) that it brings, with the sign of the
            direction in which it acts: two estimates that share a cause move together.
        basis: what the value rests on.
    """

    value: Number
    errors: Mapping[str, Number] = field(default_factory=dict)
    basis: str = ""

    def __add__(self, other: Estimate) -> Estimate:
        """The sum: each error counts by its share of the sum."""
        return total((self, other), basis=_joined(self.basis, other.basis))

    def __mul__(self, other: Estimate | Number) -> Estimate:
        """The product; a plain number is exact."""
        if not isinstance(other, Estimate):
            return Estimate(self.value * other, self.errors, self.basis)
        errors = _merged(self.errors, other.errors, np.add)
        return Estimate(self.value * other.value, errors, _joined(self.basis, other.basis))

    def __truediv__(self, other: Estimate | Number) -> Estimate:
        """The ratio: a cause that acts alike on both sides drops out."""
        if not isinstance(other, Estimate):
            return Estimate(self.value / other, self.errors, self.basis)
        errors = _merged(self.errors, other.errors, np.subtract)
        return Estimate(self.value / other.value, errors, _joined(self.basis, other.basis))

    def reciprocal(self) -> Estimate:
        """1 over the value: the same causes, acting the other way."""
        return Estimate(1.0 / self.value, {cause: -sd for cause, sd in self.errors.items()}, self.basis)

    @property
    def log_sd(self) -> Number:
        """Standard deviation of log(true / value): all causes together."""
        square: Number = 0.0
        for sd in self.errors.values():
            square = square + sd * sd
        root = np.sqrt(square)
        return float(root) if np.ndim(root) == 0 else root

    def interval(self, level: float = LEVEL) -> tuple[Number, Number]:
        """Lowest and highest value that `level` of the cases should stay between.

        Raises:
            InputError: a level that is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"level {level}: it must be between 0 and 1, such as 0.9")
        reach = NormalDist().inv_cdf((1.0 + level) / 2.0) * self.log_sd
        return self.value * np.exp(-reach), self.value * np.exp(reach)


def total(parts: Iterable[Estimate], basis: str = "") -> Estimate:
    """The sum of estimates: each error counts by its part's share of the sum.

    Args:
        parts: values of one unit; none gives an exact 0.
        basis: what the sum rests on.
    """
    terms = tuple(parts)
    value: Number = 0.0
    absolute: dict[str, Number] = {}
    for term in terms:
        value = value + term.value
        for cause, sd in term.errors.items():
            absolute[cause] = absolute.get(cause, 0.0) + term.value * sd
    positive = np.asarray(value) > 0
    divisor = np.where(positive, value, 1.0)
    return Estimate(value, {cause: part / divisor for cause, part in absolute.items()}, basis)


def _merged(
    one: Mapping[str, Number], other: Mapping[str, Number], join: Callable[[Number, Number], Number]
) -> dict[str, Number]:
    return {cause: join(one.get(cause, 0.0), other.get(cause, 0.0)) for cause in {**one, **other}}


def _joined(one: str, other: str) -> str:
    return one if one == other or not other else other if not one else f"{one}; {other}"
