"""Draft length by load: one length, the best at each batch, or a ladder of batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import LONGEST_SUMMED

_WHOLE: Final = re.compile(r"\d{1,6}")
_RANGE: Final = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_STEP: Final = re.compile(r"(\d{1,6})@(\d{1,6})")
_EXAMPLES: Final = "4 (always 4), 0..8 (the best at each batch) or 4@16,2@64,0 (4 up to batch 16, ...)"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which draft lengths may be used at a batch.

    Attributes:
        lengths: gammas to choose from; 0 is plain decoding.
        until: largest batch of each length, in the order of `lengths`; None where the best of all lengths is
            taken at every batch.
    """

    lengths: tuple[int, ...]
    until: tuple[float, ...] | None = None

    @classmethod
    def fixed(cls, length: int) -> Self:
        """The same length at every batch."""
        return cls((length,))

    def limited_to(self, possible: Sequence[int]) -> Schedule:
        """The schedule of a drafter that can only draft some lengths.

        Raises:
            InputError: a ladder asks for a length that it cannot draft.
        """
        if self.until is None:
            return Schedule(tuple(possible))
        missing = [length for length in self.lengths if length not in possible]
        if missing:
            raise InputError(f"draft length {missing[0]} of the ladder is not one that the drafter can draft")
        return self

    def allowed(self, batches: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each length (columns) may be used at each batch (rows)."""
        if self.until is None:
            return np.ones((batches.size, len(self.lengths)), dtype=bool)
        step = np.searchsorted(np.asarray(self.until), batches, side="left")
        return np.asarray(step[:, None] == np.arange(len(self.lengths))[None, :])


PLAIN: Final = Schedule((0,))


def parse_schedule(text: str) -> Schedule:
    """Read ``4``, ``0..8``, ``0,2,4`` or ``4@16,2@64,0``.

    Raises:
        InputError: none of these, a falling range, or batches that do not rise.
    """
    parts = [part.strip() for part in text.split(",")]
    if any("@" in part for part in parts):
        return _ladder(parts, text)
    lengths: set[int] = set()
    for part in parts:
        if match := _RANGE.fullmatch(part):
            low, high = int(match[1]), int(match[2])
        elif _WHOLE.fullmatch(part):
            low = high = int(part)
        else:
            raise InputError(f"draft length {text!r} is not understood: write {_EXAMPLES}")
        if not low <= high <= LONGEST_SUMMED:
            raise InputError(f"draft length {text!r}: a range must rise, to {LONGEST_SUMMED} at most")
        lengths.update(range(low, high + 1))
    return Schedule(tuple(sorted(lengths)))


def _ladder(parts: list[str], text: str) -> Schedule:
    matches = [_STEP.fullmatch(part) for part in parts[:-1]]
    if not _WHOLE.fullmatch(parts[-1]) or None in matches:
        raise InputError(
            f"draft length {text!r} is not understood: every part but the last is LENGTH@BATCH, as in "
            "4@16,2@64,0"
        )
    lengths = [int(match[1]) for match in matches if match] + [int(parts[-1])]
    until = [float(match[2]) for match in matches if match]
    if any(later <= earlier for earlier, later in pairwise(until)) or until[0] < 1:
        raise InputError(f"draft length {text!r}: the batches after @ must rise, from 1 or more")
    if max(lengths) > LONGEST_SUMMED:
        raise InputError(f"draft length {text!r}: {LONGEST_SUMMED} at most")
    return Schedule(tuple(lengths), (*until, np.inf))
