"""Goodput: the highest arrival rate at which requests get what they were promised.

(TurboSpec, arXiv 2406.14066, calls accepted tokens per second goodput; here it is requests per second that
meet the objective, as DistServe, arXiv 2401.09670, has it.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rooflines.errors import InputError
from rooflines.serving.engine import StepCurve
from rooflines.serving.steady import OpenState, closed_state, open_state

# A rate is bisected to a millionth of the saturation rate.
_HALVINGS: Final = 20
_IDLE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Objective:
    """What was promised.

    Attributes:
        tpot_s: time per output token that may not be exceeded (s); None where none was promised.
        ttft_s: time to first token likewise (s).
        share: share of tokens, and of requests, that must be within.
    """

    tpot_s: float | None = None
    ttft_s: float | None = None
    share: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise InputError(f"share {self.share:g}: it must lie between 0 and 1, such as 0.95")
        for name, value in (("TPOT", self.tpot_s), ("TTFT", self.ttft_s)):
            if value is not None and not value > 0:
                raise InputError(f"the promised {name} is {value:g} s: it must be above 0")

    @property
    def promises(self) -> bool:
        """Whether anything was promised."""
        return self.tpot_s is not None or self.ttft_s is not None

    def kept_by_tpot(self, state: OpenState) -> bool:
        """Whether tokens come in time."""
        return self.tpot_s is None or state.tpot_quantile_s(self.share) <= self.tpot_s

    def kept_by_ttft(self, ttft_s: float) -> bool:
        """Whether a time to first token at `share` is in time."""
        return self.ttft_s is None or ttft_s <= self.ttft_s

    def kept_by(self, state: OpenState) -> bool:
        """Whether a state keeps all promises."""
        return self.kept_by_tpot(state) and self.kept_by_ttft(state.ttft_quantile_s(self.share))


def goodput_per_s(curve: StepCurve, decode_tokens: float, objective: Objective) -> float:
    """The highest rate at which one engine keeps the objective (requests/s).

    0 where even a lone request breaks it. Without a promise it is the saturation rate, which can be
    approached but not held.
    """
    full = closed_state(curve, decode_tokens, float(curve.max_sequences))
    if not objective.promises:
        return full.rate_per_s

    def keeps(rate: float) -> bool:
        state = open_state(curve, decode_tokens, rate, full)
        return state is not None and objective.kept_by(state)

    return highest(keeps, full.rate_per_s)


def highest(keeps: Callable[[float], bool], limit: float) -> float:
    """The highest rate below `limit` for which ``keeps(rate)`` holds, bisected; 0 where it never does."""
    if not keeps(limit * _IDLE):
        return 0.0
    low, high = limit * _IDLE, limit
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def engines_needed(rate_per_s: float, each_per_s: float) -> int | None:
    """Fewest engines that share a load evenly within what each carries; None where none can.

    An engine at its limit is taken as full: the load of each must stay below it.
    """
    if each_per_s <= 0:
        return None
    return math.floor(rate_per_s / each_per_s * (1.0 + 1e-9)) + 1
