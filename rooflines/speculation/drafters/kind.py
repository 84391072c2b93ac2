"""A family of drafters as the registry lists it, and how its parameters are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rooflines.errors import InputError
from rooflines.speculation.drafters.base import Drafter
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class DrafterKind:
    """A family of drafters.

    Attributes:
        make: builds one from its model (or None), its parameters and the target.
        parameters: names that `key=value` may set, with what each means.
        meaning: one line for people.
        model: what its model is; None for a family that takes none.
    """

    make: Callable[[str | None, Mapping[str, str], Deployment], Drafter]
    parameters: dict[str, str]
    meaning: str
    model: str | None = None


def label(kind: str, model: str | None, parameters: Mapping[str, str]) -> str:
    """What a plan calls a drafter: its kind, its model and the parameters that were set."""
    parts = [*([model] if model else ()), *(f"{key}={value}" for key, value in parameters.items())]
    return f"{kind}:{','.join(parts)}" if parts else kind


def whole(parameters: Mapping[str, str], key: str, least: int = 1) -> int | None:
    """A whole number of the parameters; None where it is not set.

    Raises:
        InputError: it is no whole number, or too small.
    """
    written = parameters.get(key)
    if written is None:
        return None
    if not (written.isascii() and written.isdecimal() and len(written) <= 9) or int(written) < least:  # noqa: PLR2004 - more digits are a slip of the keyboard
        raise InputError(
            f"drafter parameter {key} is {written!r}: it must be a whole number, {least} or more"
        )
    return int(written)


def share(parameters: Mapping[str, str], key: str) -> float | None:
    """A share of the parameters, within 0..1; None where it is not set.

    Raises:
        InputError: it is no number, or outside.
    """
    written = parameters.get(key)
    if written is None:
        return None
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise InputError(
            f"drafter parameter {key} is {written!r}: it must be a number within 0..1, such as 0.4"
        )
    return value
