"""Step times that were measured, or added up from a few coefficients, in place of a roofline.

T(n), the time of a pass of n positions, is a property of kernels as much as of bandwidth: where it does not
even rise with n, no formula fits and the table itself must be used. What answers `decode` and `verify` can
time a cycle, whatever it rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.hardware.calibration import StepTime

Floats = NDArray[np.float64]
MEASURED: Final = "measured"
ADDED: Final = "additive"


class Timed(Protocol):
    """How long a pass takes, and what it waits for."""

    @property
    def seconds(self) -> Number:
        """Time of the pass (s)."""

    @property
    def bound(self) -> str | NDArray[np.str_]:
        """What most of it waits for, or what its time rests on where that is not known."""


class StepTimer(Protocol):
    """What a cycle needs to know of its target."""

    def decode(self, batch: Number, context: Number) -> Timed:
        """Time of one plain decode step."""

    def verify(
        self, batch: Number, context: Number, verify_width: Number, ancestors: Number | None = None
    ) -> Timed:
        """Time of a verify pass of `verify_width` positions per sequence."""


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """Time of one pass, whose parts are not known.

    Attributes:
        seconds: of the pass (s).
        bound: what the time rests on.
    """

    seconds: Number
    bound: str


@dataclass(frozen=True, slots=True)
class AdditiveSteps:
    """T = fixed + per position + per byte of cached keys and values, the linear verify model.

    Attributes:
        fixed_s: of every pass, its weights included (s).
        per_position_s: each new position of each sequence adds (s).
        per_kv_byte_s: each byte of the cache adds (s).
        kv_bytes_per_position: keys and values of one cached position (bytes).
    """

    fixed_s: float
    per_position_s: float
    per_kv_byte_s: float
    kv_bytes_per_position: float

    def __post_init__(self) -> None:
        parts = (self.fixed_s, self.per_position_s, self.per_kv_byte_s, self.kv_bytes_per_position)
        if not all(np.isfinite(part) and part >= 0 for part in parts) or self.fixed_s == 0:
            raise InputError(
                f"coefficients of step times are {parts}: they must be finite, 0 or more, and the fixed part "
                "above 0"
            )

    def decode(self, batch: Number, context: Number) -> StepSeconds:
        """Time of one plain decode step."""
        return self.verify(batch, context, 1.0)

    def verify(
        self,
        batch: Number,
        context: Number,
        verify_width: Number,
        ancestors: Number | None = None,  # noqa: ARG002 - a tree's mask costs this model nothing
    ) -> StepSeconds:
        """Time of a pass of `verify_width` positions per sequence."""
        cached = self.per_kv_byte_s * self.kv_bytes_per_position * batch * context
        return StepSeconds(self.fixed_s + self.per_position_s * batch * verify_width + cached, ADDED)


@dataclass(frozen=True, slots=True)
class StepTable:
    """A measured table T(batch, new positions, context).

    Linear between measured widths and batches, refused beyond them. Contexts add a constant time per cached
    position, fitted to cells that differ in their context alone.

    Attributes:
        curves: batch -> (widths, seconds at context 0), widths rising.
        per_cached_position_s: each cached position of each sequence adds (s); None where all cells have one
            context, and any other is answered as if it were that one.
    """

    curves: Mapping[int, tuple[Floats, Floats]]
    per_cached_position_s: float | None

    @classmethod
    def of(cls, cells: Iterable[StepTime]) -> StepTable:
        """Build a table.

        Args:
            cells: in any order; several of one batch, width and context are averaged.

        Raises:
            InputError: no cells at all.
        """
        rows = np.array([(c.batch, c.new_positions, c.context, c.time_s) for c in cells], dtype=float)
        if not rows.size:
            raise InputError("a table of step times has no cells: give one pass at least")
        batch, width, context, seconds = rows.T
        slope = _context_slope(rows)
        bare = seconds - (slope or 0.0) * batch * context
        curves = {}
        for size in np.unique(batch):
            widths = np.unique(width[batch == size])
            means = [bare[(batch == size) & (width == one)].mean() for one in widths]
            curves[int(size)] = (widths, np.array(means))
        return cls(curves, slope)

    @property
    def largest_batch(self) -> int:
        """The largest batch that was measured."""
        return max(self.curves)

    def decode(self, batch: Number, context: Number) -> StepSeconds:
        """Time of one plain decode step."""
        return self.verify(batch, context, 1.0)

    def verify(
        self,
        batch: Number,
        context: Number,
        verify_width: Number,
        ancestors: Number | None = None,  # noqa: ARG002 - a measured pass has the mask it was measured with
    ) -> StepSeconds:
        """Time of a pass of `verify_width` positions per sequence.

        Raises:
            InputError: a batch or a width beyond those that were measured.
        """
        sizes = np.array(sorted(self.curves), dtype=float)
        given_batch, given_width = (np.asarray(value, dtype=float) for value in (batch, verify_width))
        _inside("batch", given_batch, sizes)
        shape = np.broadcast_shapes(np.shape(batch), np.shape(context), np.shape(verify_width))
        below = np.searchsorted(sizes, given_batch, side="right") - 1
        above = np.minimum(below + (given_batch > sizes[below]), len(sizes) - 1)
        low, high = (self._at(sizes, place, given_width) for place in (below, above))
        span = sizes[above] - sizes[below]
        share = np.divide(given_batch - sizes[below], span, out=np.zeros(np.shape(span)), where=span > 0)
        seconds = low + share * (high - low) + (self.per_cached_position_s or 0.0) * given_batch * context
        whole = np.broadcast_to(seconds, shape)
        return StepSeconds(float(whole) if whole.ndim == 0 else whole.copy(), MEASURED)

    def _at(self, sizes: Floats, place: NDArray[np.intp], width: Floats) -> Floats:
        """The curve of the batch at each place, at each width."""
        places, widths = np.broadcast_arrays(place, width)
        seconds = np.zeros(places.shape)
        for index in np.unique(places):
            known, times = self.curves[int(sizes[index])]
            chosen = places == index
            _inside(f"verify width at batch {sizes[index]:g}", widths[chosen], known)
            seconds[chosen] = np.interp(widths[chosen], known, times)
        return seconds


def _context_slope(rows: Floats) -> float | None:
    """Seconds per cached position of a sequence: least squares over cells that differ in context alone."""
    cached, seconds = rows[:, 0] * rows[:, 2], rows[:, 3]
    above = below = 0.0
    for key in np.unique(rows[:, :2], axis=0):
        alike = np.all(rows[:, :2] == key, axis=1)
        x = cached[alike] - cached[alike].mean()
        above += float(x @ (seconds[alike] - seconds[alike].mean()))
        below += float(x @ x)
    return max(above / below, 0.0) if below > 0 else None


def _inside(what: str, given: Floats, measured: Floats) -> None:
    low, high = measured.min(), measured.max()
    if given.size and not (given.min() >= low and given.max() <= high):
        wrong = given.min() if given.min() < low else given.max()
        known = f"from {low:g} to {high:g}" if high > low else f"for {low:g} alone"
        raise InputError(
            f"{what} = {wrong:g} was not measured: steps are known {known}; measure it, or use constants "
            "that were fitted"
        )
