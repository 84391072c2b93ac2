"""The controls of the page, and what their values mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final, Protocol

import marimo as mo

from rooflines.dtypes import FORMATS
from rooflines.errors import RooflinesError
from rooflines.explorer.choices import LARGEST_CONFIG, MOST_DEVICES, Choices, to_address, uploaded_model
from rooflines.hardware.catalogue import list_hardware
from rooflines.models.catalogue import list_presets
from rooflines.speculation.definitions import DEFINITIONS
from rooflines.studies.explore import expert_degrees, possible_drafters

KEPT: Final = "as in the checkpoint"
CALIBRATIONS: Final = {
    "calibrated, where measured": "auto",
    "transferable defaults": "none",
    "textbook roofline": "textbook",
}
CONSTANT: Final = "constant"
ALL: Final = "all"
WITH_THE_REST: Final = "1: each is cut like the rest"
# Lines as the command line takes them, which can give each drafter its own.
AS_TYPED: Final = "as typed, NAME=... a line"
_DEFINITIONS: Final = {
    **{f"{known.name}: {known.values}": known.name for known in DEFINITIONS},
    AS_TYPED: AS_TYPED,
}
_DEGREES: Final = (1, 2, 4, 8, 16, 32)
_VERIFIED: Final = range(1, 17)
_BATCHES: Final = tuple(2**power for power in range(11))
_CONTEXTS: Final = (0, *(2**power for power in range(7, 18)))
# A batch is drawn apart from the page, so that styles of the page do not reach it.
_HEADING: Final = '<h2 style="font-weight: 700; margin: 0.75rem 0 0.25rem">{}</h2>'
_SERVING: Final = (
    _HEADING.format("What runs where")
    + "{hardware}{target}{upload}{tensor_parallel}{weight_dtype}{kv_dtype}{calibration}"
)
_EXPERTS: Final = _HEADING.format("Where its experts are") + "{expert_parallel}{routing}"
_DRAFTING: Final = (
    _HEADING.format("Who drafts")
    + "{drafters}{others}"
    + _HEADING.format("How often drafts are accepted")
    + "{alpha}{definition}{values}"
    + _HEADING.format("How it is run")
    + "{draft_length}{verify_length}{batch}{context}{cycle_overhead}"
)


class Address(Protocol):
    """The parameters of the page's address, as marimo gives them."""

    def to_dict(self) -> Mapping[str, str | list[str]]:
        """All of them."""

    def set(self, key: str, value: str) -> None:
        """Write one."""

    def remove(self, key: str) -> None:
        """Take one away."""


def serving_controls(first: Choices) -> mo.ui.batch:
    """What is served on what; a model out of the address stands among the presets."""
    targets = (*([first.target] if first.config else ()), *list_presets())
    return mo.Html(_SERVING).batch(
        hardware=mo.ui.multiselect(
            options=list_hardware(),
            value=first.hardware,
            label="Devices",
            max_selections=MOST_DEVICES,
            full_width=True,
        ),
        target=mo.ui.dropdown(
            options=targets, value=first.target, searchable=True, label="Target", full_width=True
        ),
        upload=mo.ui.file(filetypes=[".json"], max_size=LARGEST_CONFIG, label="Upload config.json"),
        tensor_parallel=mo.ui.dropdown(
            options=[str(degree) for degree in _with(_DEGREES, first.tensor_parallel)],
            value=str(first.tensor_parallel),
            label="Devices a model is split over (tp)",
            full_width=True,
        ),
        weight_dtype=_format("Weights", first.weight_dtype),
        kv_dtype=_format("Cached keys and values", first.kv_dtype),
        calibration=mo.ui.dropdown(
            options=CALIBRATIONS,
            value=next(words for words, name in CALIBRATIONS.items() if name == first.calibration),
            label="Constants",
            full_width=True,
        ),
    )


def drafting_controls(options: Sequence[str], last: Choices, degrees: Sequence[int] = ()) -> mo.ui.batch:
    """Who drafts, how well, and at which load; before them where experts are, if there are any.

    Args:
        options: drafters to choose from.
        last: what was chosen before the options changed.
        degrees: devices that the experts can be spread over; none for a target without experts.
    """
    return mo.Html(_EXPERTS + _DRAFTING if degrees else _DRAFTING).batch(
        **(_expert_controls(degrees, last) if degrees else {}),
        drafters=mo.ui.multiselect(
            options=options,
            value=[text for text in last.drafters if text in options],
            label="Drafters",
            full_width=True,
        ),
        others=mo.ui.text(
            value=" ".join(text for text in last.drafters if text not in options),
            placeholder="eagle3:depth=6,topk=10,nodes=59",
            label="Others, as on the command line",
            full_width=True,
        ),
        **_acceptance_controls(last),
        draft_length=mo.ui.slider(
            1,
            max(16, last.draft_length),
            1,
            value=last.draft_length,
            show_value=True,
            label="Draft length",
            full_width=True,
        ),
        verify_length=mo.ui.dropdown(
            options={
                ALL: 0,
                **{str(length): length for length in _with(_VERIFIED, last.verify_length) if length},
            },
            value=str(last.verify_length or ALL),
            label="Drafted tokens verified at most (chains)",
            full_width=True,
        ),
        batch=_steps("Batch", _BATCHES, last.batch),
        context=_steps("Context", _CONTEXTS, last.context),
        cycle_overhead=mo.ui.text(
            value=last.cycle_overhead,
            label="Host time per cycle, with its unit, or an engine's",
            placeholder="100 us, or vllm",
            full_width=True,
        ),
    )


def _acceptance_controls(last: Choices) -> dict[str, Any]:
    """A constant rate, or values of any definition."""
    definition, alpha, values = split_acceptance(last.acceptance)
    return {
        "alpha": mo.ui.slider(
            0.0, 1.0, 0.01, value=alpha, show_value=True, label="Acceptance (constant)", full_width=True
        ),
        "definition": mo.ui.dropdown(
            options=_DEFINITIONS,
            value=next(words for words, name in _DEFINITIONS.items() if name == definition),
            label="Its definition",
            full_width=True,
        ),
        "values": mo.ui.text_area(
            value=values,
            rows=2,
            placeholder="0.8, 0.75, 0.7",
            label="Values, unless constant",
            full_width=True,
        ),
    }


def _expert_controls(degrees: Sequence[int], last: Choices) -> dict[str, Any]:
    """Over how many devices experts are spread, and which of them tokens hit."""
    return {
        "expert_parallel": mo.ui.dropdown(
            options={
                WITH_THE_REST if degree == 1 else str(degree): degree
                for degree in _with(degrees, last.expert_parallel)
            },
            value=WITH_THE_REST if last.expert_parallel == 1 else str(last.expert_parallel),
            label="Devices that experts are spread over (ep)",
            full_width=True,
        ),
        "routing": mo.ui.text(
            value=last.routing,
            placeholder="uniform, powerlaw:1.2 or correlated:0.3",
            label="Which experts tokens hit",
            full_width=True,
        ),
    }


def drafter_options(choices: Choices) -> tuple[str, ...]:
    """Drafters that the target can have wherever its experts are; none where the target is refused."""
    question = replace(choices.question(choices.hardware[0]), expert_parallel=1, routing=Choices().routing)
    try:
        return possible_drafters(question, choices.model())
    except RooflinesError:
        return ()


def expert_options(choices: Choices) -> tuple[int, ...]:
    """Devices that experts can be spread over; none for a target without any, or one that is refused."""
    try:
        return expert_degrees(choices.target, choices.tensor_parallel, choices.model())
    except RooflinesError:
        return ()


def read_address(parameters: Address) -> dict[str, str]:
    """The parameters of the address; of one that is given twice the last counts."""
    return {
        name: value if isinstance(value, str) else value[-1] for name, value in parameters.to_dict().items()
    }


def keep_address(parameters: Address, choices: Choices) -> None:
    """Make the address show these choices."""
    wanted, known = to_address(choices), read_address(parameters)
    for name in known.keys() - wanted.keys():
        parameters.remove(name)
    for name, value in wanted.items():
        if known.get(name) != value:
            parameters.set(name, value)


def served(first: Choices, values: Mapping[str, Any]) -> Choices:
    """What the serving controls say.

    Args:
        first: what the address said; its model stands behind its name.
        values: of the controls.

    Raises:
        RooflinesError: no device, or an uploaded file that is no config that is understood.
    """
    target, config = values["target"], first.config if values["target"] == first.target else ""
    if values["upload"]:
        file = values["upload"][0]
        target = PurePath(file.name).stem
        uploaded_model(file.contents, file.name)
        config = file.contents.decode("utf-8-sig")
    return replace(
        first,
        hardware=tuple(values["hardware"]),
        target=target,
        config=config,
        tensor_parallel=int(values["tensor_parallel"]),
        weight_dtype="" if values["weight_dtype"] == KEPT else values["weight_dtype"],
        kv_dtype="" if values["kv_dtype"] == KEPT else values["kv_dtype"],
        calibration=values["calibration"],
    )


def drafted(choices: Choices, values: Mapping[str, Any]) -> Choices:
    """The choices with what the drafting controls say; a target without experts has no choices of theirs."""
    first = Choices()
    return replace(
        choices,
        drafters=tuple(dict.fromkeys([*values["drafters"], *values["others"].split()])),
        acceptance=acceptance_text(values["definition"], values["alpha"], values["values"]),
        draft_length=values["draft_length"],
        verify_length=values["verify_length"],
        expert_parallel=values.get("expert_parallel", first.expert_parallel),
        routing=values.get("routing", first.routing).strip() or first.routing,
        batch=values["batch"],
        context=values["context"],
        cycle_overhead=values["cycle_overhead"],
    )


def acceptance_text(definition: str, alpha: float, values: str) -> tuple[str, ...]:
    """Acceptance as the command line writes it, from a definition, a slider and pasted values."""
    if definition == CONSTANT:
        return (f"{alpha:g}",)
    if definition == AS_TYPED:
        return tuple(line.strip() for line in values.splitlines() if line.strip())
    return (f"{definition}:{','.join(values.split())}".replace(",,", ","),)


def split_acceptance(texts: Sequence[str]) -> tuple[str, float, str]:
    """The definition, slider and pasted values that `acceptance_text` makes `texts` of."""
    alpha = float(Choices().acceptance[0])
    if len(texts) == 1:
        definition, colon, values = texts[0].partition(":")
        if colon and definition in _DEFINITIONS.values():
            return definition, alpha, values
        if not colon and _is_share(definition):
            return CONSTANT, float(definition), ""
    return AS_TYPED, alpha, "\n".join(texts)


def _is_share(written: str) -> bool:
    try:
        return 0.0 <= float(written) <= 1.0
    except ValueError:
        return False


def _format(label: str, chosen: str) -> mo.ui.dropdown:
    options = [KEPT, *dict.fromkeys([*FORMATS, *([chosen] if chosen else ())])]
    return mo.ui.dropdown(options=options, value=chosen or KEPT, label=label, full_width=True)


def _steps(label: str, steps: Iterable[int], chosen: int) -> mo.ui.slider:
    return mo.ui.slider(
        steps=_with(steps, chosen), value=chosen, show_value=True, label=label, full_width=True
    )


def _with(values: Iterable[int], chosen: int) -> list[int]:
    """Rising values among which the chosen one is."""
    return sorted({*values, chosen})
