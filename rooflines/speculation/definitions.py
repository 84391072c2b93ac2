"""The definitions of acceptance in use, each turned into conditional rates per position.

Papers and engines call ten different things an "acceptance rate". A definition must therefore be named; only
a bare number has a meaning of its own (a constant alpha). `acceptance_text` reads them as written.

Position 1 is the first drafted token. A definition that gives one number at one draft length (accepted
length, accepted per drafted, ...) becomes the constant alpha that yields it there; several accepted lengths
become the fitted alpha r^(k - 1). What lies beyond the measured draft length is marked as extrapolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from rooflines.errors import InputError, UnknownNameError
from rooflines.speculation.acceptance import Acceptance, require_probability
from rooflines.speculation.acceptance_fit import fit_acceptance, require_possible_length
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.closed_form import constant_acceptance

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Definition:
    """One meaning of "acceptance".

    Attributes:
        name: as written before the colon.
        values: what comes after it, for help texts.
        meaning: in one line.
        used_by: who publishes or prints it.
        needs_draft_length: whether values carry ``@DRAFT_LENGTH``.
        nested: whether values come in rows, separated by ``;``.
    """

    name: str
    values: str
    meaning: str
    used_by: str
    convert: Callable[[Rows, Sequence[int]], Acceptance]
    needs_draft_length: bool = False
    nested: bool = False


def from_survival(survival: Sequence[float]) -> Acceptance:
    """Conditional rates from prefix survival a_1, a_2, ...: c_k = a_k / a_(k-1).

    Raises:
        InputError: survival rises along the draft, which no prefix can.
    """
    for position, share in enumerate(survival, start=1):
        require_probability(share, f"survival at position {position}")
    for position, (before, after) in enumerate(pairwise(survival), start=2):
        if after > before:
            raise InputError(
                f"survival rises from {before:g} to {after:g} at position {position}: a prefix cannot "
                "survive more often than a shorter one (given all before were accepted: 'conditional')"
            )
    above = [1.0, *survival[:-1]]
    rates = [after / before if before > 0 else 0.0 for before, after in zip(above, survival, strict=True)]
    return Acceptance.conditional_rates(rates)


def from_accepted_length(tokens_per_cycle: float, draft_length: int) -> Acceptance:
    """The constant rate that yields tau (the target's own token included) at that draft length."""
    require_possible_length(tokens_per_cycle, draft_length)
    alpha = float(constant_acceptance(tokens_per_cycle, draft_length))
    return Acceptance.constant(alpha, measured_length=draft_length)


def from_histogram(counts: Sequence[float]) -> Acceptance:
    """Rates from how many cycles accepted 0, 1, 2, ... gamma drafted tokens.

    Raises:
        InputError: fewer than two entries (so gamma = 0), a negative count, or no cycle at all.
    """
    cycles = np.asarray(counts, dtype=float)
    if cycles.size < 2:  # noqa: PLR2004 - counts for 0 and for 1 accepted token
        raise InputError(
            "a histogram has one count for each of 0, 1, .. draft length accepted tokens: give 2 or more"
        )
    if not np.all(np.isfinite(cycles)) or np.any(cycles < 0) or not np.any(cycles > 0):
        raise InputError("a histogram counts cycles: give numbers of 0 or more, not all 0")
    at_least = np.cumsum(cycles[::-1])[::-1]
    return from_survival((at_least[1:] / at_least[0]).tolist())


def _constant(rows: Rows, _: Sequence[int]) -> Acceptance:
    return Acceptance.constant(_single(rows, "constant"))


def _conditional(rows: Rows, _: Sequence[int]) -> Acceptance:
    return Acceptance.conditional_rates(list(rows[0]))


def _survival(rows: Rows, _: Sequence[int]) -> Acceptance:
    return from_survival(rows[0])


def _accepted_length(rows: Rows, draft_lengths: Sequence[int]) -> Acceptance:
    if len(rows[0]) == 1:
        return from_accepted_length(rows[0][0], draft_lengths[0])
    return fit_acceptance(draft_lengths, rows[0], "decaying").acceptance


def _accepted_drafts(rows: Rows, draft_lengths: Sequence[int]) -> Acceptance:
    return _accepted_length([[1.0 + value for value in rows[0]]], draft_lengths)


def _accepted_per_drafted(rows: Rows, draft_lengths: Sequence[int]) -> Acceptance:
    for value in rows[0]:
        require_probability(value, "accepted per drafted")
    lengths = [1.0 + value * gamma for value, gamma in zip(rows[0], draft_lengths, strict=True)]
    return _accepted_length([lengths], draft_lengths)


def _tau_per_width(rows: Rows, draft_lengths: Sequence[int]) -> Acceptance:
    for value in rows[0]:
        require_probability(value, "tau per width")
    lengths = [value * (gamma + 1) for value, gamma in zip(rows[0], draft_lengths, strict=True)]
    return _accepted_length([lengths], draft_lengths)


def _medusa(rows: Rows, _: Sequence[int]) -> Acceptance:
    return BranchAcceptance.heads(rows).chain()


def _sequoia(rows: Rows, _: Sequence[int]) -> Acceptance:
    return BranchAcceptance.positional(rows[0]).chain()


def _decay(rows: Rows, _: Sequence[int]) -> Acceptance:
    if len(rows[0]) != 2:  # noqa: PLR2004 - alpha and r
        raise InputError(f"decay takes two numbers, ALPHA,R, not {len(rows[0])}")
    return Acceptance.decaying(rows[0][0], rows[0][1])


def _histogram(rows: Rows, _: Sequence[int]) -> Acceptance:
    return from_histogram(rows[0])


DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("constant", "ALPHA", "the same rate at every position", "Leviathan et al. 2023", _constant),
    Definition(
        "conditional",
        "C1,C2,...",
        "rate of each position, given all before it were accepted",
        "DSpark figure 2",
        _conditional,
    ),
    Definition(
        "survival",
        "A1,A2,...",
        "share of cycles in which a position and all before it were accepted",
        "vLLM and llama.cpp per-position acceptance",
        _survival,
    ),
    Definition(
        "accepted-length",
        "TAU@GAMMA,...",
        "tokens per cycle, the target's own included",
        "vLLM, SGLang, EAGLE, DFlash",
        _accepted_length,
        needs_draft_length=True,
    ),
    Definition(
        "accepted-drafts",
        "X@GAMMA,...",
        "drafted tokens accepted per cycle, tau - 1",
        "mlx-vlm",
        _accepted_drafts,
        needs_draft_length=True,
    ),
    Definition(
        "accepted-per-drafted",
        "X@GAMMA,...",
        "accepted / drafted tokens, (tau - 1) / gamma",
        "vLLM draft acceptance rate, llama.cpp, LayerSkip",
        _accepted_per_drafted,
        needs_draft_length=True,
    ),
    Definition(
        "tau-per-width",
        "X@GAMMA,...",
        "tokens per cycle / verified positions, tau / (gamma + 1)",
        "DSpark figure 5, older SGLang accept rate",
        _tau_per_width,
        needs_draft_length=True,
    ),
    Definition(
        "n-alpha",
        "A0,A1,...",
        "chain acceptance when the last n inputs are the draft's own, taken as c_(n+1)",
        "EAGLE table 2",
        _conditional,
    ),
    Definition(
        "medusa",
        "TOP1,TOP2,..;TOP1,TOP2,..",
        "accuracy of each guess of each head, heads independent; a chain takes the first guesses",
        "Medusa",
        _medusa,
        nested=True,
    ),
    Definition(
        "sequoia",
        "P1,P2,...",
        "rate of the i-th child at any node; a chain takes the first",
        "Sequoia",
        _sequoia,
    ),
    Definition("decay", "ALPHA,R", "alpha r^(k - 1) at position k, at most 1", "rooflines' fit", _decay),
    Definition(
        "histogram",
        "N0,N1,...",
        "cycles that accepted 0, 1, .. gamma drafted tokens",
        "engine logs",
        _histogram,
    ),
)
_BY_NAME: Final = {definition.name: definition for definition in DEFINITIONS}


def definition(name: str) -> Definition:
    """The definition of that name.

    Raises:
        UnknownNameError: none has it.
    """
    if name not in _BY_NAME:
        raise UnknownNameError("definition of acceptance", name, _BY_NAME, f"(known: {', '.join(_BY_NAME)})")
    return _BY_NAME[name]


def acceptance_from(name: str, rows: Rows, draft_lengths: Sequence[int] = ()) -> Acceptance:
    """Turn values under a named definition into an acceptance.

    Args:
        name: of the definition.
        rows: the values; one row, except for ``medusa`` (one row a head).
        draft_lengths: gamma of each value, for definitions that need it; empty otherwise.

    Raises:
        InputError: impossible values, or draft lengths that are missing or have no place.
    """
    chosen = definition(name)
    if not rows or not all(rows):
        raise InputError(f"{name} has no values: write {name}:{chosen.values}")
    if len(rows) > 1 and not chosen.nested:
        raise InputError(f"{name} takes one row of values, without ';': {name}:{chosen.values}")
    if chosen.needs_draft_length and len(draft_lengths) != len(rows[0]):
        raise InputError(
            f"{name} means nothing without the draft length GAMMA that it was measured at: write "
            f"{name}:{','.join(f'{value:g}@GAMMA' for value in rows[0])}"
        )
    if draft_lengths and not chosen.needs_draft_length:
        raise InputError(f"{name} takes no draft length: write {name}:{chosen.values}")
    if any(gamma < 1 for gamma in draft_lengths):
        raise InputError(f"draft length {min(draft_lengths)} at which {name} was measured is not 1 or more")
    return chosen.convert(rows, draft_lengths)


def _single(rows: Rows, name: str) -> float:
    if len(rows[0]) != 1:
        raise InputError(
            f"{name} takes one number, not {len(rows[0])} (rates per position are 'conditional')"
        )
    return rows[0][0]


def branches_from(name: str, rows: Rows) -> BranchAcceptance:
    """Acceptance of every guess of a draft tree, from a definition that has them.

    Raises:
        InputError: the definition gives one rate a position, so says nothing of second guesses.
    """
    chosen = definition(name)
    if not rows or not all(rows):
        raise InputError(f"{name} has no values: write {name}:{chosen.values}")
    if name == "medusa":
        return BranchAcceptance.heads(rows)
    if name == "sequoia" and len(rows) == 1:
        return BranchAcceptance.positional(rows[0])
    raise InputError(
        f"{name} says nothing about second and further guesses, which a tree needs: give medusa:... or "
        "sequoia:..."
    )
