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
        return Acceptance.constant(_number(name, text))
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
