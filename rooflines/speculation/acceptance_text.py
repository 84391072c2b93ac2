"""Acceptance as people write it, on a command line or in a file.

    0.8                              constant alpha
    DEFINITION:VALUES                conditional:0.8,0.75,0.7
    DEFINITION:VALUE@DRAFT_LENGTH    accepted-length:3.1@5, where the value means nothing without the length
    preset:NAME                      a published measurement, asked for by name

The definitions are those of `definitions`; index 1 is the first drafted position.
"""

from __future__ import annotations

from typing import Final

from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_presets import acceptance_preset
from rooflines.speculation.branches import BranchAcceptance, Rates
from rooflines.speculation.definitions import DEFINITIONS, acceptance_from, branches_from, definition

PRESET: Final = "preset"
_PERCENT: Final = 100.0
# More tokens per cycle than drafts of any engine yield; what is above is a share in percent.
_LONGEST_TYPICAL: Final = 20.0
# Definitions that give a rate to every guess of a tree.
BRANCHING: Final = ("medusa", "sequoia")


def parse_acceptance(text: str) -> Acceptance:
    """Read an acceptance.

    Raises:
        InputError: no number where one belongs, or an impossible value; the message says which.
        UnknownNameError: no such definition or preset, with near matches.
    """
    name, colon, values = text.strip().partition(":")
    if not colon:
        return Acceptance.constant(_rate(name, text))
    if name.strip() == PRESET:
        return acceptance_preset(values.strip()).acceptance()
    definition(name.strip())
    return acceptance_from(name.strip(), *_values(values, text))


def parse_branches(text: str) -> BranchAcceptance:
    """Read the acceptance of a tree's branches: ``medusa:...``, ``sequoia:...`` or a preset of that kind.

    Raises:
        InputError: as `parse_acceptance`, or a definition that says nothing about second guesses.
    """
    name, _, values = text.strip().partition(":")
    if name.strip() == PRESET:
        return acceptance_preset(values.strip()).branches()
    rows, _ = _values(values, text)
    return branches_from(name.strip(), rows)


def parse_rates(text: str) -> Rates:
    """Read an acceptance with all that it says: rates of every guess where it has them, else of the first.

    Raises:
        InputError: as `parse_acceptance`.
        UnknownNameError: likewise.
    """
    name, colon, values = text.strip().partition(":")
    if colon and name.strip() == PRESET:
        preset = acceptance_preset(values.strip())
        if preset.definition in BRANCHING and any(len(row) > 1 for row in preset.values):
            return preset.branches()
    elif colon and name.strip() in BRANCHING:
        return parse_branches(text)
    return parse_acceptance(text)


def _values(values: str, text: str) -> tuple[list[list[float]], list[int]]:
    rows: list[list[float]] = []
    draft_lengths: list[int] = []
    for row in values.split(";"):
        rows.append([])
        for entry in row.split(",") if row.strip() else ():
            value, at, length = entry.partition("@")
            rows[-1].append(_number(value, text))
            if at:
                draft_lengths.append(_draft_length(length, text))
    return rows, draft_lengths


def _rate(written: str, text: str) -> float:
    """A constant; what is none is told by the definition that it looks like."""
    if "," in written:
        raise InputError(
            f"acceptance {text!r} has several numbers and does not say what they are: write "
            f"conditional:{written} (of each position, given those before it) or survival:{written}"
        )
    value = _number(written, text)
    if not value > 1.0 or value > _PERCENT:
        return value  # what cannot be is refused where rates are checked
    meant = (
        f"{value:g} tokens per cycle are accepted-length:{value:g}@GAMMA, with GAMMA the draft length"
        if value < _LONGEST_TYPICAL
        else f"a share of {value:g} % is {value / _PERCENT:g}"
    )
    raise InputError(f"acceptance {text!r}: a rate lies within 0..1; {meant}")


def _number(written: str, text: str) -> float:
    try:
        return float(written)
    except ValueError:
        pass
    hint = " (a share is a fraction: 0.8, not 80%)" if written.strip().endswith("%") else ""
    raise InputError(
        f"acceptance {text!r}: {written.strip()!r} is no number{hint}; write a constant such as 0.8, or "
        f"DEFINITION:VALUES with one of {', '.join(known.name for known in DEFINITIONS)}"
    )


def _draft_length(written: str, text: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise InputError(
            f"acceptance {text!r}: draft length {written.strip()!r} is no whole number"
        ) from None
