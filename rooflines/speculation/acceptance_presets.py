"""Published acceptance, with its source: for those who do not know their own yet.

No preset is ever used unless it is asked for by name. Acceptance depends on the target, the drafter, the task
and the sampling temperature; a preset says what it was measured with.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import Field, field_validator

from rooflines.errors import InputError, UnknownNameError
from rooflines.facts import Fact
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.definitions import acceptance_from, branches_from

_FILE: Final = "acceptance_presets.toml"


class AcceptancePreset(Fact):
    """One published measurement.

    Attributes:
        name: how it is asked for.
        target: the model that verified.
        drafter: who proposed.
        drafter_kind: family of the drafter.
        task: the prompts.
        temperature: sampling temperature, None where the source does not say.
        definition: what the values mean (a name of `definitions`).
        values: as published; one row, or one a head.
        draft_lengths: gamma of each value where the definition needs it.
        draft_length: gamma of the measurement, None where several or unknown.
        published_tokens_per_cycle: tau printed beside the values by the source, if any.
        basis: whether the source prints the values as measured, or they were read off a figure.
        source: an address that a stranger can open.
        where: table or figure.
        note: what else matters.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    target: str
    drafter: str
    drafter_kind: str
    task: str
    temperature: float | None = None
    definition: str
    values: tuple[tuple[float, ...], ...]
    draft_lengths: tuple[int, ...] = ()
    draft_length: int | None = None
    published_tokens_per_cycle: float | None = None
    basis: Literal["measured", "digitised"] = "measured"
    source: str = Field(pattern=r"^https://")
    where: str
    note: str = ""

    @field_validator("values", "draft_lengths", mode="before")
    @classmethod
    def _tuples(cls, value: Any) -> Any:  # noqa: ANN401 - whatever a TOML file holds
        """TOML has arrays, facts are tuples."""
        return tuple(tuple(row) if isinstance(row, list) else row for row in value)

    def acceptance(self) -> Acceptance:
        """Rates for a chain draft; extrapolation beyond the measured draft length is marked."""
        return acceptance_from(self.definition, self.values, self.draft_lengths)

    def branches(self) -> BranchAcceptance:
        """Rates for a draft tree.

        Raises:
            InputError: the source gives none for second and further guesses.
        """
        if all(len(row) == 1 for row in self.values):
            raise InputError(f"acceptance preset {self.name} has first guesses only, and a tree needs more")
        return branches_from(self.definition, self.values)


def list_acceptance_presets() -> tuple[AcceptancePreset, ...]:
    """All presets, by name."""
    return tuple(_presets().values())


def acceptance_preset(name: str) -> AcceptancePreset:
    """One preset.

    Raises:
        UnknownNameError: no such preset, with near matches.
    """
    presets = _presets()
    if name not in presets:
        some = ", ".join(sorted(presets)[:: max(len(presets) // 4, 1)])
        raise UnknownNameError(
            "acceptance preset", name, presets, f"(one of {len(presets)} DRAFTER-TARGET-TASK, such as {some})"
        )
    return presets[name]


@cache
def _presets() -> MappingProxyType[str, AcceptancePreset]:
    """The shipped file, read once; each source is stated once and its rows inherit it."""
    data = tomllib.loads((files(__package__) / _FILE).read_text(encoding="utf-8"))
    found: dict[str, AcceptancePreset] = {}
    for group in data["source"]:
        rows = group.pop("preset")
        for row in rows:
            preset = AcceptancePreset.read({**group, **row}, where=f"{_FILE}: {row.get('name', 'a preset')}")
            if preset.name in found:
                raise InputError(f"{_FILE}: two presets are called {preset.name}")
            found[preset.name] = preset
    return MappingProxyType(dict(sorted(found.items())))
