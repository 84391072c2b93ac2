"""What is chosen on the page, as a question and as the address that shows the same page again.

An address may come from anybody, so it can name what ships with the package only, never a file: a model of
one's own travels inside it.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from rooflines.costs.routing import DEFAULT_ROUTING, parse_routing
from rooflines.dtypes import number_format
from rooflines.errors import InputError, RooflinesError, UnknownNameError
from rooflines.hardware.catalogue import list_hardware
from rooflines.models.catalogue import resolve_preset
from rooflines.models.config_file import parse_json
from rooflines.models.drafter_catalogue import list_drafter_presets
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec
from rooflines.speculation.drafters.registry import KINDS, kind_of
from rooflines.studies.plan import PlanQuestion

MOST_DEVICES: Final = 3
LONGEST_DRAFT: Final = 64
# Lists of one choice are separated by what no name contains.
_SEPARATOR: Final = "|"
# A config.json is a few thousand bytes; files beyond this are something else.
LARGEST_CONFIG: Final = 1_000_000
_CALIBRATIONS: Final = ("auto", "none", "textbook")
_COMPARED: Final = (8, 16, 32, LONGEST_DRAFT)


@dataclass(frozen=True, slots=True)
class Choices:
    """The state of the page.

    Attributes:
        hardware: ids of the devices that are compared.
        target: preset, or the name that an uploaded config goes by.
        config: text of the uploaded config; empty for a preset.
        drafters: as on the command line.
        acceptance: likewise, one text for all drafters or ``NAME=...`` each.
        draft_length: gamma.
        verify_length: drafted tokens that are verified at most; 0 for all.
        batch: B.
        context: S.
        tensor_parallel: t.
        expert_parallel: e.
        routing: which experts the tokens of a pass hit.
        weight_dtype: of the linear layers; empty keeps the checkpoint's.
        kv_dtype: of the caches; empty keeps the checkpoint's.
        calibration: ``auto``, ``none`` or ``textbook``.
        cycle_overhead: host time per cycle, with its unit.
    """

    hardware: tuple[str, ...] = ("h100-sxm5-80gb",)
    target: str = "llama-3.1-70b"
    config: str = ""
    drafters: tuple[str, ...] = ("independent:llama-3.2-1b",)
    acceptance: tuple[str, ...] = ("0.8",)
    draft_length: int = 4
    verify_length: int = 0
    batch: int = 1
    context: int = 2048
    tensor_parallel: int = 4
    expert_parallel: int = 1
    routing: str = DEFAULT_ROUTING
    weight_dtype: str = ""
    kv_dtype: str = ""
    calibration: str = "auto"
    cycle_overhead: str = "0 s"

    def __post_init__(self) -> None:
        if not self.hardware:
            raise InputError("choose a device")

    @property
    def longest_compared(self) -> int:
        """Draft lengths are compared from 1 to here: in few steps, so that a slider asks for few plans."""
        return next(longest for longest in _COMPARED if longest >= self.draft_length)

    def question(self, hardware: str) -> PlanQuestion:
        """What is asked of one of the devices.

        Raises:
            InputError: an impossible number.
        """
        return PlanQuestion(
            hardware=hardware,
            target=self.target,
            drafters=self.drafters,
            acceptance=self.acceptance,
            draft_lengths=tuple(range(1, self.longest_compared + 1)),
            batches=(self.batch,),
            context=self.context,
            tensor_parallel=self.tensor_parallel,
            expert_parallel=self.expert_parallel,
            routing=self.routing,
            verify_length=self.verify_length or None,
            weight_dtype=self.weight_dtype or None,
            kv_dtype=self.kv_dtype or None,
            cycle_overhead=self.cycle_overhead,
            calibration=self.calibration,
        )

    def model(self) -> ModelSpec | None:
        """The uploaded model; None for a preset.

        Raises:
            RooflinesError: it is no config that is understood.
        """
        return uploaded_model(self.config.encode(), self.target) if self.config else None

    def command(self, hardware: str) -> list[str]:
        """The command that answers the same."""
        lengths = f"1..{self.longest_compared}"
        given = {
            "--hardware": hardware,
            "--target": self.target,
            "--draft-length": lengths,
            "--batch": str(self.batch),
            "--context": str(self.context),
            "--verify-length": str(self.verify_length or ""),
            "--tp": str(self.tensor_parallel),
            "--ep": str(self.expert_parallel),
            "--routing": self.routing,
            "--weight-dtype": self.weight_dtype,
            "--kv-dtype": self.kv_dtype,
            "--calibration": self.calibration,
            "--cycle-overhead": self.cycle_overhead,
        }
        lists = [("--drafter", text) for text in self.drafters]
        lists += [("--acceptance", text) for text in self.acceptance]
        pairs = [(name, value) for name, value in given.items() if value] + lists
        return ["rooflines", "plan", *(part for pair in pairs for part in pair)]


def uploaded_model(content: bytes, name: str) -> ModelSpec:
    """A model from the content of a config.json.

    Raises:
        RooflinesError: too large, no JSON object, or an architecture that is not understood.
    """
    if len(content) > LARGEST_CONFIG:
        raise InputError(f"{name}: {len(content):,} bytes are too many for a config.json: upload that file")
    return read_model(parse_json(content, name), name)


def to_address(choices: Choices) -> dict[str, str]:
    """Choices as the parameters of an address; those that are as at first are left out."""
    first = Choices()
    parameters = {}
    for field in fields(Choices):
        value = getattr(choices, field.name)
        if value == getattr(first, field.name):
            continue
        if field.name == "config":
            parameters["config"] = _packed(value)
        else:
            parameters[field.name] = _SEPARATOR.join(value) if isinstance(value, tuple) else str(value)
    return parameters


def from_address(parameters: Mapping[str, str]) -> tuple[Choices, list[str]]:
    """Choices out of an address.

    Returns:
        Choices, and what of the address was refused and why; the rest holds.
    """
    choices, notes = Choices(), []
    # The config comes first, since the target's name is checked against it.
    for name in ("config", *(name for name in parameters if name != "config")):
        if name not in parameters:
            continue
        try:
            choices = replace(choices, **{name: _read(name, parameters[name], choices)})
        except RooflinesError as error:
            notes.append(f"The address was read without its {name.replace('_', ' ')}: {error}")
    if choices.config and choices.target == Choices().target:
        choices = replace(choices, target="config")
    return choices, notes


def _read(name: str, written: str, choices: Choices) -> Any:  # noqa: ANN401 - the type of the field
    if name not in {field.name for field in fields(Choices)}:
        raise UnknownNameError("choice", name, [field.name for field in fields(Choices)])
    if name in _COUNTS:
        return _count(name, written)
    if name in _LISTS:
        return tuple(_LISTS[name](part) for part in written.split(_SEPARATOR) if part)[: _MOST.get(name, 8)]
    if name == "config":
        return _unpacked(written)
    if name == "target":
        return written if choices.config else resolve_preset(written)
    if name == "routing":
        parse_routing(written)
    if name in ("weight_dtype", "kv_dtype"):
        return number_format(written).name
    if name == "calibration" and written not in _CALIBRATIONS:
        raise UnknownNameError("calibration", written, _CALIBRATIONS)
    return written


def _count(name: str, written: str) -> int:
    least, most = _COUNTS[name]
    value = int(written) if written.isascii() and written.isdecimal() and len(written) <= 9 else -1  # noqa: PLR2004 - more digits are a slip of the keyboard
    if not least <= value <= most:
        raise InputError(
            f"{name.replace('_', ' ')} is {written!r}: a whole number within {least}..{most} is needed"
        )
    return value


def _device(name: str) -> str:
    if name not in list_hardware():
        raise UnknownNameError("device", name, list_hardware())
    return name


def _drafter(text: str) -> str:
    """A drafter that names no file: its model, if any, ships with the package or is a number format."""
    if kind_of(text) not in KINDS:
        raise UnknownNameError("drafter", text, KINDS)
    model = text.partition(":")[2].partition(",")[0]
    if not model or "=" in model or model.lower() in list_drafter_presets():
        return text
    if kind_of(text) == "quantized":
        number_format(model)
    else:
        resolve_preset(model)
    return text


_COUNTS: Final = {
    "draft_length": (1, LONGEST_DRAFT),
    "verify_length": (0, LONGEST_DRAFT),
    "batch": (1, 10**6),
    "context": (0, 10**8),
    "tensor_parallel": (1, 1024),
    "expert_parallel": (1, 1024),
}
_LISTS: Final[dict[str, Callable[[str], str]]] = {
    "hardware": _device,
    "drafters": _drafter,
    "acceptance": str,
}
_MOST: Final = {"hardware": MOST_DEVICES}


def _packed(config: str) -> str:
    """A config as short text that an address can hold."""
    smallest = json.dumps(json.loads(config), separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(smallest.encode(), 9)).decode().rstrip("=")


def _unpacked(written: str) -> str:
    """The config again.

    Raises:
        RooflinesError: it is none, or larger than a config is.
    """
    try:
        packed = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
        reader = zlib.decompressobj()
        content = reader.decompress(packed, LARGEST_CONFIG)
    except (binascii.Error, ValueError, zlib.error):
        raise InputError("it holds no model") from None
    if not reader.eof:
        raise InputError("it holds more than a model" if reader.unconsumed_tail else "it holds no model")
    uploaded_model(content, "config")
    return content.decode()
