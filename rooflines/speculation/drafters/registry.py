"""From what people type to a drafter: ``KIND``, ``KIND:MODEL`` and ``KIND:key=value,...``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rooflines.costs.setting import Parallelism, Precision
from rooflines.dtypes import number_format
from rooflines.errors import InputError, UnknownNameError
from rooflines.models.readers import read_model
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.timing.deployment import Deployment


@dataclass(frozen=True, slots=True)
class DrafterKind:
    """A family of drafters.

    Attributes:
        make: builds one from its model (or None) and its parameters.
        parameters: names that `key=value` may set, with what each means.
        meaning: one line for people.
    """

    make: Callable[[str | None, Mapping[str, str], Deployment], Drafter]
    parameters: dict[str, str]
    meaning: str


def make_drafter(text: str, target: Deployment) -> Drafter:
    """Read a drafter as the command line writes it, for a target as it is served.

    Args:
        text: e.g. ``independent:llama-3.2-1b`` or ``independent:llama-3.2-1b,tp=1``.
        target: the model it drafts for; a drafter runs on the same devices.

    Raises:
        UnknownNameError: an unknown kind or parameter, with near matches.
        InputError: a parameter that is set twice or has no value, or a model that is missing.
    """
    name, _, rest = text.partition(":")
    kind = KINDS.get(name.strip().lower())
    if kind is None:
        known = ", ".join(KINDS)
        raise UnknownNameError("drafter", name, KINDS, f"(write KIND:MODEL; known kinds: {known})")
    model, parameters = _split(rest, text)
    for key in parameters:
        if key not in kind.parameters:
            allowed = ", ".join(kind.parameters)
            raise UnknownNameError(f"parameter of {name}", key, kind.parameters, f"(known: {allowed})")
    return kind.make(model, parameters, target)


def _split(rest: str, text: str) -> tuple[str | None, dict[str, str]]:
    """The model, which is the part without an equals sign, and the parameters."""
    model: str | None = None
    parameters: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals and model is None and not parameters:
            model = part
        elif not equals or not value or key in parameters:
            raise InputError(f"drafter {text!r}: {part!r} is no key=value that stands once")
        else:
            parameters[key] = value
    return model, parameters


def _independent(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    if model is None:
        raise InputError("an independent drafter needs its model: write it as independent:llama-3.2-1b")
    weights = parameters.get("weight-dtype")
    precision = Precision(number_format(weights).name if weights else None, target.precision.kv)
    degree = parameters.get("tp")
    if degree is not None and not degree.isdecimal():
        raise InputError(f"drafter parameter tp is {degree!r}: it must be a whole number, 1 or more")
    parallelism = Parallelism(int(degree)) if degree else target.parallelism
    return IndependentDrafter(
        Deployment(read_model(model), target.machine, precision, parallelism), target.model
    )


KINDS: Final[dict[str, DrafterKind]] = {
    "independent": DrafterKind(
        _independent,
        {
            "tp": "tensor-parallel degree of the drafter (default: the target's)",
            "weight-dtype": "format of its linear layers (default: its checkpoint's)",
        },
        "a small model with its own weights and KV cache, one step per drafted token",
    )
}
