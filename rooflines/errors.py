"""The error family: every expected failure says what was given, what is allowed and what to do.

Anything that is not a `RooflinesError` and reaches a user is a bug. The command line prints the message
of a `RooflinesError` on one line and exits with its `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RooflinesError(Exception):
    """Base of all expected errors; `exit_code` is what the command line returns (2: bad input)."""

    exit_code = 2

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses build their message from other arguments; worker processes send errors back by pickle.
        return _restore, (type(self), self.args, self.__dict__)


class InputError(RooflinesError):
    """A value lies outside what the question allows (a negative length, an acceptance above one)."""


class UnitError(RooflinesError):
    """A quantity has no unit, an unknown one, or one of another dimension."""


class FileFormatError(RooflinesError):
    """A file cannot be read as what it should be; the message names the file."""


class UnknownNameError(RooflinesError):
    """A name is not in a catalogue; the message gives near matches."""

    def __init__(self, kind: str, given: str, allowed: Iterable[str], hint: str = "") -> None:
        self.kind = kind
        self.given = given
        self.near = near_matches(given, allowed)
        suggestion = f"; did you mean {_alternatives(self.near)}?" if self.near else ""
        super().__init__(f"unknown {kind} {given!r}{suggestion}{' ' + hint if hint else ''}")


class AmbiguousNameError(RooflinesError):
    """A name stands for several things; the message says between what to choose."""

    def __init__(self, kind: str, given: str, candidates: Iterable[str]) -> None:
        self.candidates = tuple(candidates)
        super().__init__(f"{kind} {given!r} is ambiguous: choose {_alternatives(self.candidates)}")


class ProfileError(RooflinesError):
    """A hardware profile breaks a rule or lacks a fact that is needed."""


class MissingPeakError(ProfileError):
    """A device has no stated peak for the dtype of the arithmetic; no other dtype's peak stands in."""


class ConfigError(RooflinesError):
    """A model config lacks a needed field or contradicts itself."""


class UnsupportedArchitectureError(ConfigError):
    """A model config has something that is not modelled; the message names the field."""


class ParallelismError(RooflinesError):
    """A degree of parallelism does not divide what it should shard."""


class DoesNotFitError(RooflinesError):
    """A configuration does not fit in memory, so it gets no speed."""


class CannotTellError(RooflinesError):
    """The evidence is too noisy or too thin to answer."""

    exit_code = 3


def near_matches(given: str, allowed: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The allowed names closest to what was typed, best first (case and separators are ignored)."""
    plain = {bare(name): name for name in allowed}
    wanted = bare(given)
    close = difflib.get_close_matches(wanted, plain, n=count, cutoff=0.6)
    contained = [key for key in plain if len(wanted) > 2 and wanted in key and key not in close]  # noqa: PLR2004 - two letters are in everything
    return tuple(plain[key] for key in (*close, *sorted(contained, key=len))[:count])


def bare(name: str) -> str:
    """A name without case and separators, as names are compared."""
    return "".join(character for character in name.lower() if character.isalnum())


def shortened(value: object, width: int = 60) -> str:
    """What was given, as a message of one line has room for it."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def _restore(
    kind: type[RooflinesError], args: tuple[object, ...], state: dict[str, object]
) -> RooflinesError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _alternatives(names: Iterable[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
