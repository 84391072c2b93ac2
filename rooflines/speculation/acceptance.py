"""How often drafted tokens are accepted, and how many tokens a cycle therefore emits.

Every definition of an "acceptance rate" in use ends here, as conditional rates per position: c_k is the
probability that drafted position k is accepted, given that all before it were. Then

    a_j = c_1 c_2 ... c_j            (prefix survival)
    tau = 1 + a_1 + ... + a_gamma    (tokens per cycle; the 1 is the target's own token)

which for constant c_k = alpha is (1 - alpha^(gamma + 1)) / (1 - alpha), Leviathan, Kalman and Matias 2023,
equation 1 (https://arxiv.org/abs/2211.17192). The form with c_k is equation 1 with equation 8 of DSpark
(https://arxiv.org/abs/2607.05147).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError

# Rates per position are summed one by one. No drafter comes near this length, so a longer one is a slip of
# the keyboard, which would otherwise keep the caller waiting for hours.
LONGEST_SUMMED: Final = 4096
# Keeps a growing decay finite: any rate above 1 / this is 1 once multiplied with it.
_LARGEST_GROWTH: Final = 1e300


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Conditional acceptance by drafted position; position 1 is the first drafted token.

    Beyond the listed positions the last rate goes on, times `decay` for each further position (at most 1).
    What lies beyond `measured_length` is extrapolated, and `is_extrapolated` says so.

    Attributes:
        listed: c_1, c_2, ...: floats, or arrays that broadcast with each other and with draft lengths.
        decay: factor from one unlisted position to the next; 1 keeps the last rate.
        measured_length: positions that evidence backs; None where the rates are an assumption that holds for
            any length, such as a constant alpha.
    """

    listed: tuple[Number, ...]
    decay: Number = 1.0
    measured_length: int | None = None

    def __post_init__(self) -> None:
        if not self.listed:
            raise InputError("acceptance is empty: give a rate for at least the first drafted position")
        for position, rate in enumerate(self.listed, start=1):
            require_probability(rate, f"acceptance at position {position}")
        if not np.all(np.isfinite(self.decay)) or np.any(np.asarray(self.decay) < 0):
            raise InputError(f"decay of acceptance is {self.decay}: give a finite factor of 0 or more")
        if self.measured_length is not None and self.measured_length < 1:
            raise InputError(f"measured length is {self.measured_length}: give 1 or more, or None")

    @classmethod
    def constant(cls, alpha: Number, measured_length: int | None = None) -> Self:
        """The same rate at every position: Leviathan's alpha (Corollary 3.6), i.i.d. over positions.

        Args:
            alpha: a float or an array of any shape, within 0..1.
            measured_length: draft length up to which it was measured, None for an assumption.
        """
        return cls((alpha,), measured_length=measured_length)

    @classmethod
    def conditional_rates(cls, rates: NDArray[np.float64] | tuple[float, ...] | list[float]) -> Self:
        """One rate a position, measured up to the number of rates given.

        Args:
            rates: shape (positions,), each within 0..1.
        """
        listed = tuple(float(rate) for rate in rates)
        return cls(listed, measured_length=max(1, len(listed)))

    @classmethod
    def decaying(cls, alpha: Number, decay: Number, measured_length: int | None = None) -> Self:
        """c_k = min(1, alpha decay^(k - 1)): acceptance that falls along the draft ("suffix decay").

        Two parameters follow measured accepted lengths where a constant does not: DSpark describes
        the fall, `acceptance_fit` finds the parameters.
        """
        return cls((alpha,), decay=decay, measured_length=measured_length)

    @property
    def is_constant(self) -> bool:
        """Whether one rate holds at every position."""
        return len(self.listed) == 1 and bool(np.all(np.asarray(self.decay) == 1.0))

    def is_extrapolated(self, draft_length: Number) -> NDArray[np.bool_]:
        """Whether a draft of that length relies on positions nobody measured; shape of `draft_length`."""
        lengths = whole_number(draft_length, "draft length")
        if self.measured_length is None:
            return np.zeros(lengths.shape, dtype=bool)
        return np.asarray(lengths > self.measured_length)

    def conditional(self, position: Number) -> Number:
        """The rate c_k at each of the positions given (1 or more), by broadcasting."""
        positions = whole_number(position, "position", least=1)
        beyond = np.maximum(positions - len(self.listed), 0.0)
        with np.errstate(over="ignore"):
            growth = np.minimum(np.asarray(self.decay) ** beyond, _LARGEST_GROWTH)
        rate = np.minimum(np.asarray(self.listed[-1]) * growth, 1.0)
        for index, listed in enumerate(self.listed[:-1], start=1):
            rate = np.where(positions == index, listed, rate)
        return _plain(rate)

    def survival(self, position: Number) -> Number:
        """a_k, the probability that position k and all before it are accepted, by broadcasting; a_0 is 1.

        At position = draft length it is the probability that the whole draft is accepted.
        """
        positions = whole_number(position, "position")
        if self.is_constant:
            return _plain(np.asarray(self.listed[0], dtype=float) ** positions)
        survival: NDArray[np.float64] = np.ones(np.broadcast_shapes(positions.shape, self._shape))
        for index, rate in self._walk(positions):
            survival = np.where(positions >= index, survival * rate, survival)
        return _plain(survival)

    def conditional_profile(self, draft_length: int) -> NDArray[np.float64]:
        """All of c_1 .. c_gamma; shape (..., draft_length), leading axes those of the rates."""
        return self._along(draft_length)

    def survival_profile(self, draft_length: int) -> NDArray[np.float64]:
        """All of a_1 .. a_gamma; shape (..., draft_length), leading axes those of the rates."""
        return np.asarray(np.cumprod(self._along(draft_length), axis=-1), dtype=float)

    def length_probabilities(self, draft_length: int) -> NDArray[np.float64]:
        """Probability that a cycle accepts 0, 1, .. gamma drafted tokens; shape (..., draft_length + 1)."""
        survival = self.survival_profile(draft_length)
        edge = np.ones((*survival.shape[:-1], 1))
        at_least = np.concatenate([edge, survival, np.zeros_like(edge)], axis=-1)
        return np.asarray(-np.diff(at_least, axis=-1), dtype=float)

    def accepted_per_cycle(self, draft_length: Number) -> Number:
        """Drafted tokens accepted per cycle, tau - 1, by broadcasting rates with draft lengths."""
        lengths = whole_number(draft_length, "draft length")
        if self.is_constant:
            return _plain(_geometric_sum(np.asarray(self.listed[0], dtype=float), lengths))
        shape = np.broadcast_shapes(lengths.shape, self._shape)
        survival: NDArray[np.float64] = np.ones(self._shape)
        total: NDArray[np.float64] = np.zeros(shape)
        for index, rate in self._walk(lengths):
            survival = survival * rate
            total += np.where(lengths >= index, survival, 0.0)
        return _plain(total)

    def tokens_per_cycle(self, draft_length: Number) -> Number:
        """tau: tokens emitted per cycle, the target's own token included, by broadcasting; 1 for length 0.

        Constant rates use the closed form (no loop over positions), others one pass per position.

        Raises:
            InputError: a draft length is negative or not whole.
        """
        return 1.0 + self.accepted_per_cycle(draft_length)

    @property
    def _shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(np.shape(rate) for rate in self.listed), np.shape(self.decay))

    def _along(self, draft_length: int) -> NDArray[np.float64]:
        length = int(whole_number(draft_length, "draft length"))
        rates = [np.broadcast_to(rate, self._shape) for _, rate in self._walk(np.asarray(length))]
        return np.stack(rates, axis=-1) if rates else np.ones((*self._shape, 0))

    def _walk(self, lengths: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Positions 1, 2, .. up to the largest length, each with its rate."""
        rate = np.asarray(self.listed[0], dtype=float)
        for index in range(1, longest_summed(lengths) + 1):
            if index <= len(self.listed):
                rate = np.asarray(self.listed[index - 1], dtype=float)
            else:
                rate = np.minimum(rate * self.decay, 1.0)
            yield index, rate


def require_probability(value: Number, what: str) -> None:
    """Refuse what lies outside 0..1 or is no number.

    Raises:
        InputError: with `what` as the subject of the message.
    """
    given = np.asarray(value, dtype=float)
    outside = ~((given >= 0.0) & (given <= 1.0))
    if np.any(outside):
        raise InputError(f"{what} is {given[outside].flat[0]:g}: a probability lies within 0..1")


def whole_number(value: Number, what: str, least: int = 0) -> NDArray[np.float64]:
    """The value as floats, refused unless whole and at least `least`.

    Raises:
        InputError: with `what` as the subject of the message.
    """
    given = np.asarray(value, dtype=float)
    wrong = ~((given >= least) & np.isfinite(given) & (given == np.floor(given)))
    if np.any(wrong):
        raise InputError(f"{what} is {given[wrong].flat[0]:g}: give a whole number of {least} or more")
    return given


def longest_summed(lengths: NDArray[np.float64]) -> int:
    """The longest of the lengths, refused where a sum over positions would not end in reasonable time.

    Raises:
        InputError: a length beyond `LONGEST_SUMMED`.
    """
    longest = int(np.max(lengths, initial=0.0))
    if longest > LONGEST_SUMMED:
        raise InputError(
            f"draft length {longest} is beyond {LONGEST_SUMMED}, the longest that is summed by position: "
            "give a shorter one"
        )
    return longest


def _geometric_sum(ratio: NDArray[np.float64], terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of ratio^j over j = 1 .. terms, accurate up to ratio = 1.

    1 - ratio^terms loses all digits near 1, -expm1(terms log ratio) keeps them.
    """
    inside = np.where((ratio > 0.0) & (ratio < 1.0), ratio, 0.5)
    summed = -inside * np.expm1(terms * np.log(inside)) / (1.0 - inside)
    return np.where(ratio == 1.0, terms, np.where(ratio == 0.0, 0.0, summed))


def _plain(value: NDArray[np.float64]) -> Number:
    return float(value) if value.ndim == 0 else value
