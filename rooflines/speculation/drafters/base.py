"""What every drafter answers: the time of one draft, the width to verify, and its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rooflines.costs.cost import Number


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft of a cycle.

    Attributes:
        seconds: time of the draft when nothing has to be caught up (s).
        catch_up_s: extra time in a cycle that follows a fully accepted one (s): the last drafted token never
            went through the drafter, so its KV is made in the next cycle's first step.
        verify_width: positions sent to the target per sequence.
        ancestors: sum of node depths of the verified tree, None for a chain.
    """

    seconds: Number
    catch_up_s: Number
    verify_width: Number
    ancestors: Number | None = None


class Drafter(Protocol):
    """A way to propose tokens; each family is one module of this folder."""

    @property
    def name(self) -> str:
        """What the plan calls it."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price one draft of `draft_length` tokens for `batch` sequences after `context` positions."""

    def weight_bytes(self) -> float:
        """Weights of its own on each device (bytes)."""

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """Cached state of its own on each device (bytes)."""

    def warnings(self) -> tuple[str, ...]:
        """What is odd about this choice, if anything."""
