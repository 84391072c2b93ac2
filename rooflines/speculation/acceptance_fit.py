"""Acceptance from accepted lengths measured at several draft lengths.

Engines print one accepted length a run. One run fixes one number, a constant alpha; runs at several draft
lengths show how acceptance falls along the draft, and c_k = min(1, alpha r^(k - 1)) follows that with two.
On published curves over draft lengths 1..8 it stays within 6.5 % where a constant misses by up to 15 %
(SemiAnalysis InferenceX golden acceptance lengths, https://github.com/SemiAnalysisAI/InferenceX).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance, whole_number

AcceptanceForm: TypeAlias = Literal["constant", "decaying"]

# Acceptance that rises along the draft was seen to reach 1.11 from one position to the next at most (DSpark,
# https://arxiv.org/abs/2607.05147, figure 2, EAGLE-3 on chat).
_LARGEST_DECAY: Final = 1.25
_GRID: Final = 33
_ZOOMS: Final = 14
_ZOOM: Final = 4.0  # the next grid spans 8 cells of the last, the best point in the middle


@dataclass(frozen=True, slots=True)
class AcceptanceFit:
    """A fitted acceptance and how well it fits.

    Attributes:
        acceptance: rates whose `measured_length` is the longest draft that was measured.
        alpha: acceptance of the first position.
        decay: r; 1 for the constant form.
        relative_errors: fitted / measured tokens per cycle - 1, in the order given.
    """

    acceptance: Acceptance
    alpha: float
    decay: float
    relative_errors: tuple[float, ...]

    @property
    def worst_relative_error(self) -> float:
        """The largest of the relative errors, without its sign."""
        return max(abs(error) for error in self.relative_errors)


def fit_acceptance(
    draft_lengths: Sequence[int], accepted_lengths: Sequence[float], form: AcceptanceForm
) -> AcceptanceFit:
    """Fit rates to tokens per cycle by least squares of relative errors.

    Args:
        draft_lengths: gamma of each run, 1 or more.
        accepted_lengths: tau of each run, the target's own token included; within 1..gamma + 1. It may
            fall as gamma grows, as measured ones sometimes do.
        form: ``constant`` (alpha) or ``decaying`` (alpha and r).

    Raises:
        InputError: no runs, an impossible length, or fewer than two draft lengths for the decaying form.
    """
    lengths = whole_number(np.asarray(draft_lengths, dtype=float), "draft length", least=1)
    measured = np.asarray(accepted_lengths, dtype=float)
    if lengths.size == 0 or lengths.shape != measured.shape:
        raise InputError(f"give one accepted length a draft length, not {measured.size} for {lengths.size}")
    for tau, gamma in zip(measured.tolist(), lengths.tolist(), strict=True):
        require_possible_length(tau, gamma)
    if form == "decaying" and len(set(lengths.tolist())) < 2:  # noqa: PLR2004 - two unknowns
        raise InputError("one draft length fixes a constant alpha only: measure a second, or fit 'constant'")

    def squares(alpha: NDArray[np.float64], decay: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.sum(_errors(alpha, decay, lengths, measured) ** 2, axis=-1))

    alpha, decay = _minimise(squares, decays=(0.0, _LARGEST_DECAY) if form == "decaying" else (1.0, 1.0))
    errors = _errors(np.asarray(alpha), np.asarray(decay), lengths, measured)
    longest = int(np.max(lengths))
    return AcceptanceFit(_as_acceptance(alpha, decay, longest), alpha, decay, tuple(errors.tolist()))


def require_possible_length(tokens_per_cycle: float, draft_length: float) -> None:
    """Refuse an accepted length that no draft of that length can have.

    Raises:
        InputError: outside 1..gamma + 1, or no number.
    """
    if not 1.0 <= tokens_per_cycle <= draft_length + 1.0:
        raise InputError(
            f"accepted length {tokens_per_cycle:g} at draft length {draft_length:g} is impossible: with the "
            f"target's own token it lies within 1..{draft_length + 1:g}"
        )


def _as_acceptance(alpha: float, decay: float, longest: int) -> Acceptance:
    """Beyond what was measured, rates go on falling but not rising: that would end at certainty."""
    fitted = Acceptance.decaying(alpha, decay, longest)
    return fitted if decay <= 1.0 else Acceptance.conditional_rates(fitted.conditional_profile(longest))


def _errors(
    alpha: NDArray[np.float64],
    decay: NDArray[np.float64],
    lengths: NDArray[np.float64],
    measured: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Relative errors; shape of the parameters, then one axis for the runs."""
    fitted = Acceptance.decaying(alpha[..., None], decay[..., None]).tokens_per_cycle(lengths)
    return np.asarray(fitted / measured - 1.0)


def _minimise(
    objective: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    decays: tuple[float, float],
) -> tuple[float, float]:
    """Lowest point over alpha in 0..1 and the decays, on grids that close in: sure-footed, and no solver."""
    bounds = ((0.0, 1.0), decays)
    spans = list(bounds)
    for _ in range(_ZOOMS):
        axes = [np.linspace(low, high, _GRID if high > low else 1) for low, high in spans]
        alpha, decay = np.meshgrid(*axes, indexing="ij")
        lowest = np.unravel_index(np.argmin(objective(alpha, decay)), alpha.shape)
        best = (float(alpha[lowest]), float(decay[lowest]))
        spans = [
            (
                max(bound[0], centre - (high - low) / (2 * _ZOOM)),
                min(bound[1], centre + (high - low) / (2 * _ZOOM)),
            )
            for bound, centre, (low, high) in zip(bounds, best, spans, strict=True)
        ]
    return best
