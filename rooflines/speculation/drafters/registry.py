"""From what people type to a drafter: ``KIND``, ``KIND:MODEL`` and ``KIND:MODEL,key=value,...``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Final

from rooflines.errors import InputError, UnknownNameError
from rooflines.models.catalogue import list_presets, plain_name
from rooflines.speculation.drafters import (
    dflash,
    dspark,
    eagle,
    independent,
    layerskip,
    medusa,
    mtp,
    ngram,
    quantized,
    sparse_kv,
)
from rooflines.speculation.drafters.base import Drafter, Stepping
from rooflines.speculation.drafters.kind import DrafterKind
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepTimer

ReadSteps = Callable[[str], StepTimer]
KINDS: Final[dict[str, DrafterKind]] = {
    **independent.KINDS,
    **medusa.KINDS,
    **eagle.KINDS,
    **dflash.KINDS,
    **dspark.KINDS,
    **mtp.KINDS,
    **ngram.KINDS,
    **layerskip.KINDS,
    **quantized.KINDS,
    **sparse_kv.KINDS,
}

# What `rooflines measure speculation` and engines call a kind, by their word.
ALSO_CALLED: Final[dict[str, str]] = {
    "prompt-lookup": "ngram",
    "prompt_lookup": "ngram",
    "early-exit": "layerskip:layers=N",
    "int4": "quantized:int4-g128",
    "draft_model": "independent:MODEL",
    "draft-model": "independent:MODEL",
}


def make_drafter(text: str, target: Deployment, read_steps: ReadSteps | None = None) -> Drafter:
    """Read a drafter as the command line writes it, for a target as it is served.

    Args:
        text: e.g. ``independent:llama-3.2-1b,tp=1`` or ``eagle3:depth=6,topk=10,nodes=59``.
        target: the model it drafts for; a drafter runs on the same devices.
        read_steps: reads the file of a parameter ``steps``; None where measured steps have no place.

    Raises:
        UnknownNameError: an unknown kind or parameter, with near matches.
        InputError: a parameter that is set twice or has no value, a model that is missing, or measured steps
            where they have no place.
    """
    name, _, rest = text.partition(":")
    kind = KINDS.get(name.strip().lower())
    if kind is None:
        known = ", ".join(KINDS)
        elsewhere = ALSO_CALLED.get(name.strip().lower())
        if elsewhere is not None:
            raise UnknownNameError(
                "drafter", name, (), f"(a plan calls it {elsewhere}; known kinds: {known})"
            )
        if not rest and plain_name(name) in map(plain_name, list_presets()):
            raise UnknownNameError(
                "drafter", name, (), f"(it is a model: write independent:{name.strip()} to draft with it)"
            )
        raise UnknownNameError("drafter", name, KINDS, f"(write KIND:MODEL; known kinds: {known})")
    model, parameters = _split(rest, text)
    for key in parameters:
        if key not in kind.parameters:
            allowed = ", ".join(kind.parameters)
            raise UnknownNameError(f"parameter of {name}", key, kind.parameters, f"(known: {allowed})")
    path = parameters.get("steps")
    if path is None:
        return kind.make(model, parameters, target)
    if read_steps is None:
        raise InputError(f"drafter {text!r} has measured steps, which only a plan takes: leave steps= out")
    drafter = kind.make(model, {**parameters, "steps": PurePath(path).stem}, target)
    if not isinstance(drafter, Stepping):
        raise InputError(f"{name} drafts without decode steps of its own: leave steps= out")
    return drafter.timed_by(read_steps(path))


def kind_of(text: str) -> str:
    """The kind that a drafter's text names, known or not."""
    return text.partition(":")[0].strip().lower()


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
