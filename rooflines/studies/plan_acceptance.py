"""Which acceptance belongs to which drafter of a plan: one for all, or ``NAME=TEXT`` for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
        source: the file that it was read from, in words; empty where it was given.
    """

    text: str
    rates: Rates
    source: str = ""

    @property
    def by_depth(self) -> Acceptance:
        """One rate a position: the best guesses."""
        return self.rates.chain() if isinstance(self.rates, BranchAcceptance) else self.rates


def assign_acceptance(
    given: str | Sequence[str], drafters: Sequence[str], sources: Sequence[str] = ()
) -> tuple[GivenAcceptance, ...]:
    """The acceptance of each drafter, in their order.

    Args:
        given: texts as in `parse_acceptance`. ``NAME=TEXT`` holds for the drafters of that name, which is
            what was typed for one of them or its kind alone; a text without a name holds for all others.
        drafters: as typed.
        sources: where each text comes from, in words; empty where it was given, and for all of them none.

    Raises:
        InputError: a drafter has none, or two; a name that no drafter has.
    """
    texts = (given,) if isinstance(given, str) else tuple(given)
    named = [
        (*split_name(text, drafters), source)
        for text, source in zip(texts, sources or [""] * len(texts), strict=True)
    ]
    return tuple(_of(drafter, named) for drafter in drafters)


def printed_for(files: Sequence[str], drafters: Sequence[str]) -> list[tuple[str, str]]:
    """What engines printed, as acceptance to assign, and where it stands in words.

    Args:
        files: paths, or ``NAME=PATH`` for the drafters of that name.
        drafters: as typed.

    Raises:
        InputError: a file without a name for several drafters, or a name that no drafter has.
        FileFormatError: a file that says nothing of accepted drafts.
    """
    from rooflines.measurement.readers.catalogue import printed_acceptance

    found = []
    for text in files:
        name, path = (None, text) if Path(text).expanduser().exists() else split_name(text, drafters)
        if name is None and len(drafters) > 1:
            names = ", ".join(f"{kind_of(drafter)}={path}" for drafter in drafters)
            raise InputError(
                f"{path} holds the acceptance of one drafter, and {len(drafters)} are compared: say whose it "
                f"is ({names}), and give each of the others its own"
            )
        printed = printed_acceptance(Path(path).expanduser())
        found.append((f"{name}={printed.text}" if name else printed.text, printed.source))
    return found


def split_name(text: str, drafters: Sequence[str]) -> tuple[str | None, str]:
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


def _of(drafter: str, named: Sequence[tuple[str | None, str, str]]) -> GivenAcceptance:
    """What holds for a drafter: by its whole text, else by its kind, else for all."""
    for name in (drafter, kind_of(drafter), None):
        found = [(text, source) for known, text, source in named if known == name]
        if len(found) > 1:
            what = f"drafter {drafter!r}" if name else "all drafters without one of their own"
            raise InputError(f"acceptance of {what} is given twice: {found[0][0]!r} and {found[1][0]!r}")
        for text, source in found:
            return GivenAcceptance(text, parse_rates(text), source)
    raise InputError(
        f"drafter {drafter!r} has no acceptance: give --acceptance {kind_of(drafter)}=..., or one for all"
    )
