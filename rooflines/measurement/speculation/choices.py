"""From what people type to a drafter that runs: ``prompt-lookup``, ``int4``, ``early-exit:10`` and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np

from rooflines.errors import InputError, UnknownNameError
from rooflines.measurement.speculation.drafters import ModelDrafter, PromptLookup
from rooflines.measurement.speculation.protocol import Cache, Drafter, LanguageModel
from rooflines.measurement.speculation.sampling import Sampling

FORMS: Final = {
    "prompt-lookup": "prompt-lookup[:longest=3,shortest=1]",
    "int4": "int4[:cache=shared|own]",
    "early-exit": "early-exit:LAYERS",
    "independent": "independent:MODEL",
    "forced": "forced:ALPHA[:DRAFTER]",
}
_LONGEST_NGRAM: Final = 64


class Models(Protocol):
    """The models that drafters are made of; each is made on first use."""

    @property
    def layers(self) -> int:
        """Layers of the target."""

    def int4_copy(self) -> LanguageModel:
        """The target with its linear layers in int4, able to use the target's cache."""

    def early_exit(self, layers: int) -> LanguageModel:
        """The target cut after so many layers, able to use the target's cache."""

    def independent(self, name: str) -> LanguageModel:
        """Another model."""


@dataclass(frozen=True, slots=True)
class DrafterChoice:
    """A drafter as it was asked for.

    Attributes:
        family: a key of `FORMS`; of a forced drafter the one that really drafts.
        parameters: of the family.
        forced_acceptance: probability with which its tokens are kept by decree; None: they must earn it.
    """

    family: str
    parameters: Mapping[str, str | int] = field(default_factory=dict)
    forced_acceptance: float | None = None

    @property
    def label(self) -> str:
        """Its name, parameters included; equal labels are equal drafters."""
        plain = "".join(f" {key}={value}" for key, value in self.parameters.items())
        forced = "" if self.forced_acceptance is None else f" forced={self.forced_acceptance:g}"
        return f"{self.family}{plain}{forced}"

    def check(self, layers: int) -> None:
        """Refuse what the target cannot do.

        Raises:
            InputError: an early exit at or behind the last layer.
        """
        depth = self.parameters.get("layers", 0)
        if self.family == "early-exit" and not int(depth) < layers:
            raise InputError(f"early exit after {depth} layers: the target has {layers}, so write fewer")

    def opener(self, models: Models, sampling: Sampling, seed: int) -> Callable[[Cache, int], Drafter]:
        """What makes the drafter of one run from the target's cache and the positions it must hold."""
        if self.family == "prompt-lookup":
            lookup = PromptLookup(int(self.parameters["longest"]), int(self.parameters["shortest"]))
            return lambda _cache, _positions: lookup
        model = self._model(models)
        shared = self.family == "early-exit" or self.parameters.get("cache") == "shared"

        def opened(cache: Cache, positions: int) -> Drafter:
            own = cache if shared else model.new_cache(positions)
            # Apart from the loop's generator: what a draft draws must not depend on what accepting drew.
            return ModelDrafter(model, own, sampling, np.random.default_rng([seed, 1]))

        return opened

    def _model(self, models: Models) -> LanguageModel:
        if self.family == "int4":
            return models.int4_copy()
        if self.family == "early-exit":
            return models.early_exit(int(self.parameters["layers"]))
        return models.independent(str(self.parameters["model"]))


def parse_drafter(text: str) -> DrafterChoice:
    """Read a drafter as the command line writes it.

    Raises:
        UnknownNameError: an unknown kind.
        InputError: a parameter that is missing, unknown or no number.
    """
    family, _, rest = text.strip().partition(":")
    if family == "forced":
        return _forced(text, rest)
    if family == "prompt-lookup":
        return _lookup(text, rest)
    if family == "int4":
        options = _options(text, rest, {"cache": "shared"})
        if options["cache"] not in {"shared", "own"}:
            raise _refuse(text, f"cache is {options['cache']!r}: it must be shared or own")
        return DrafterChoice(family, options)
    if family == "early-exit":
        return DrafterChoice(family, {"layers": _whole(text, rest, "the number of layers")})
    if family == "independent":
        if not rest:
            raise _refuse(text, "its model is missing")
        return DrafterChoice(family, {"model": rest})
    raise UnknownNameError("drafter", family, FORMS, f"(write {', '.join(FORMS.values())})")


def _forced(text: str, rest: str) -> DrafterChoice:
    probability, _, drafter = rest.partition(":")
    try:
        acceptance = float(probability)
    except ValueError:
        raise _refuse(text, f"{probability!r} is no probability") from None
    if not 0 <= acceptance <= 1:
        raise _refuse(text, f"{probability} is no probability: it must be 0 to 1")
    choice = parse_drafter(drafter or "int4")
    if choice.forced_acceptance is not None:
        raise _refuse(text, "its acceptance is forced twice")
    return replace(choice, forced_acceptance=acceptance)


def _lookup(text: str, rest: str) -> DrafterChoice:
    options = _options(text, rest, {"longest": "3", "shortest": "1"})
    sizes = {key: _whole(text, value, key) for key, value in options.items()}
    if not sizes["shortest"] <= sizes["longest"] <= _LONGEST_NGRAM:
        raise _refuse(text, f"shortest must not exceed longest, nor longest {_LONGEST_NGRAM}")
    return DrafterChoice("prompt-lookup", sizes)


def _options(text: str, rest: str, defaults: Mapping[str, str]) -> dict[str, str]:
    options = dict(defaults)
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if key not in defaults or not equals:
            raise _refuse(text, f"{part!r} is not understood")
        options[key] = value
    return options


def _whole(text: str, value: str, what: str) -> int:
    if not (value.isdecimal() and int(value) >= 1):
        raise _refuse(text, f"{what} is {value or 'missing'}: it must be a whole number, 1 or more")
    return int(value)


def _refuse(text: str, why: str) -> InputError:
    family = text.strip().partition(":")[0]
    return InputError(f"drafter {text!r}: {why}; write {FORMS[family]}")
