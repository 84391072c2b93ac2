"""Which acceptance belongs to which drafter of a plan: one for all, or ``NAME=TEXT`` for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_rates
from rooflines.speculation.branches import BranchAcceptance, Rates
from rooflines.speculation.drafters.registry import kind_of


@dataclass(frozen=True, slots=True)
class GivenAcceptance:
    """An acceptance as it was given.

    Attributes:
        text: without the name of the drafter.
        rates: what it says.
    """

    text: str
    rates: Rates

    @property
    def by_depth(self) -> Acceptance:
        """One rate a position: the best guesses."""
        return self.rates.chain() if isinstance(self.rates, BranchAcceptance) else self.rates


def assign_acceptance(given: str | Sequence[str], drafters: Sequence[str]) -> tuple[GivenAcceptance, ...]:
    """The acceptance of each drafter, in their order.

    Args:
        given: texts as in `parse_acceptance`. ``NAME=TEXT`` holds for the drafters of that name, which is
            what was typed for one of them or its kind alone; a text without a name holds for all others.
        drafters: as typed.

    Raises:
        InputError: a drafter has none, or two; a name that no drafter has.
    """
    texts = (given,) if isinstance(given, str) else tuple(given)
    named = [_split(text, drafters) for text in texts]
    return tuple(_of(drafter, named) for drafter in drafters)


def _split(text: str, drafters: Sequence[str]) -> tuple[str | None, str]:
    """The name in front of a text, the longest that fits, and the rest."""
    names = sorted({*drafters, *(kind_of(drafter) for drafter in drafters)}, key=len, reverse=True)
    for name in names:
        if text.strip().startswith(f"{name}="):
            return name, text.strip()[len(name) + 1 :]
    if "=" in text:
        raise InputError(
            f"acceptance {text!r} names no drafter of this plan: write NAME=... with one of "
            f"{', '.join(sorted(names))}"
        )
    return None, text


def _of(drafter: str, named: Sequence[tuple[str | None, str]]) -> GivenAcceptance:
    """What holds for a drafter: by its whole text, else by its kind, else for all."""
    for name in (drafter, kind_of(drafter), None):
        found = [text for known, text in named if known == name]
        if len(found) > 1:
            what = f"drafter {drafter!r}" if name else "all drafters without one of their own"
            raise InputError(f"acceptance of {what} is given twice: {found[0]!r} and {found[1]!r}")
        if found:
            return GivenAcceptance(found[0], parse_rates(found[0]))
    raise InputError(
        f"drafter {drafter!r} has no acceptance: give --acceptance {kind_of(drafter)}=..., or one for all"
    )
