"""What is swept: a TOML file that lists the values of each axis.

Every combination of what is listed is priced. Devices, models, formats and drafters are names as on the
command line; batch, context, draft length and constant acceptance are numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from rooflines import __version__
from rooflines.costs.routing import DEFAULT_ROUTING
from rooflines.errors import FileFormatError, RooflinesError
from rooflines.facts import Fact
from rooflines.serving.memory import DEFAULT_RESERVE
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_rates
from rooflines.speculation.branches import Rates
from rooflines.speculation.drafters.registry import kind_of
from rooflines.studies.sweep.columns import COLUMNS

# The format's own name of what a checkpoint holds, where nothing was chosen.
CHECKPOINT: Final = "checkpoint"
# More values of one axis are a slip of the keyboard.
_MOST_VALUES: Final = 10**6
_RANGE_KEYS: Final = frozenset({"first", "last", "step", "count"})
_ANY: Final = ""


def _values(given: object) -> tuple[Any, ...]:
    """A list, one value, or ``{ first, last, step | count }`` written out."""
    if isinstance(given, Mapping):
        return _range(given)
    if isinstance(given, list | tuple):
        values = [value for one in given for value in (_range(one) if isinstance(one, Mapping) else (one,))]
        if len(set(map(repr, values))) < len(values):
            raise ValueError("a value is listed twice")
        return tuple(values)
    return (given,)


def _range(given: Mapping[str, Any]) -> tuple[float | int, ...]:
    """Evenly spaced numbers, both ends included; whole ends and a whole step give whole numbers."""
    numbers = [
        value for value in given.values() if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    spacing = {"step", "count"} & set(given)
    if len(numbers) < len(given) or set(given) - _RANGE_KEYS or len(given) != 3 or len(spacing) != 1:  # noqa: PLR2004 - first, last, and one of two
        raise ValueError(
            "a range is { first = 1, last = 256, step = 1 } or { first = 0, last = 0.9, count = 10 }"
        )
    first, last = given["first"], given["last"]
    if not np.all(np.isfinite(numbers)) or last <= first:
        raise ValueError(f"a range must rise from first to last, not from {first} to {last}")
    if "count" in given:
        count = given["count"]
        if not isinstance(count, int) or not 2 <= count <= _MOST_VALUES:  # noqa: PLR2004 - the two ends
            raise ValueError(f"a range has a count of 2 to {_MOST_VALUES} values, not {count}")
        return tuple(np.linspace(first, last, count).tolist())
    step = given["step"]
    if not step > 0 or (last - first) / step > _MOST_VALUES:
        raise ValueError(
            f"a step of {step} gives no range of at most {_MOST_VALUES} values: choose a larger one"
        )
    count = int((last - first) / step + 1e-6) + 1  # a last value that rounding put just beyond belongs
    # 0.1 + 2 * 0.1 is meant to be 0.3
    return tuple(round(first + index * step, 12) for index in range(count))


def _whole(given: object) -> tuple[int, ...]:
    """Whole numbers; those of a count are rounded to whole ones, each kept once."""
    counted = isinstance(given, Mapping) and "count" in given
    values = _values(given)
    if counted:
        values = tuple(dict.fromkeys(round(value) for value in values))
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{value!r} is no whole number")  # noqa: TRY004 - pydantic reports ValueError
    return values


def _by_drafter(given: object) -> tuple[tuple[str, tuple[float | str, ...]], ...]:
    """Acceptance of each drafter beside its name or kind; of all others beside the empty name."""
    if isinstance(given, Mapping) and not set(given) & _RANGE_KEYS:
        return tuple((name, _rates(values)) for name, values in given.items())
    return ((_ANY, _rates(given)),)


def _rates(given: object) -> tuple[float | str, ...]:
    values = _values(given)
    if not values:
        raise ValueError("give one acceptance at least")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"acceptance {value!r}: write 0.8, or a text such as 'conditional:0.8,0.7'")  # noqa: TRY004 - pydantic reports ValueError
        try:
            parse_rates(str(value))
        except RooflinesError as error:
            raise ValueError(str(error)) from None
    return tuple(value if isinstance(value, str) else float(value) for value in values)


_Count = Annotated[int, Field(ge=1, le=10**9)]
_Names = Annotated[tuple[str, ...], BeforeValidator(_values), Field(min_length=1)]
_Counts = Annotated[tuple[_Count, ...], BeforeValidator(_whole), Field(min_length=1)]
_Lengths = Annotated[
    tuple[Annotated[int, Field(ge=0, le=10**9)], ...], BeforeValidator(_whole), Field(min_length=1)
]


class SweepGrid(Fact):
    """The axes of a sweep, and what holds for all of it.

    Attributes:
        hardware: profile ids, aliases or files.
        target: presets, config.json files or folders of models that are sped up.
        drafter: ``KIND[:MODEL][:key=value,...]`` each.
        batch: B sequences.
        context: S cached positions per sequence.
        draft_length: gammas; of trees, their depths. A drafter gets those that it can draft.
        acceptance: constant rates and ``definition:values``, each beside the drafter that they are for (as
            written, or its kind); those beside the empty name are for all drafters without some of their own.
        tensor_parallel: t.
        expert_parallel: e, a multiple of t.
        weight_dtype: formats of the target's linear layers; ``checkpoint`` keeps its own.
        kv_dtype: formats of cached keys and values, likewise.
        calibration: ``auto``, ``none``, ``textbook``, a name or a file.
        overhead: host time per pass, with its unit.
        cycle_overhead: host time per cycle outside draft and verify, with its unit, or that of an engine by
            its name.
        memory_reserve: share of the memory kept free.
        routing: which experts the tokens of a pass hit.
        encoder_positions: of an encoder-decoder, per sequence.
        columns: what is computed, names out of `COLUMNS`.
        rows_per_part: rows of a file at most.
    """

    hardware: _Names
    target: _Names
    drafter: _Names
    batch: _Counts
    context: _Lengths
    draft_length: _Lengths
    acceptance: Annotated[tuple[tuple[str, tuple[float | str, ...]], ...], BeforeValidator(_by_drafter)]
    tensor_parallel: _Counts = (1,)
    expert_parallel: _Counts = (1,)
    weight_dtype: _Names = (CHECKPOINT,)
    kv_dtype: _Names = (CHECKPOINT,)
    calibration: str = "auto"
    overhead: str = "0 s"
    cycle_overhead: str = "0 s"
    memory_reserve: float = Field(default=DEFAULT_RESERVE, ge=0, lt=1)
    routing: str = DEFAULT_ROUTING
    encoder_positions: _Count | None = None
    columns: _Names = COLUMNS
    rows_per_part: int = Field(default=2**19, ge=1, le=2**22)

    @model_validator(mode="after")
    def _names_belong(self) -> SweepGrid:
        unknown = [name for name in self.columns if name not in COLUMNS]
        if unknown:
            raise ValueError(f"columns: {unknown[0]!r} is none of {', '.join(COLUMNS)}")
        names = {*self.drafter, *map(kind_of, self.drafter), _ANY}
        strange = [name for name, _ in self.acceptance if name not in names]
        if strange:
            raise ValueError(f"acceptance: {strange[0]!r} names no drafter of this grid")
        for drafter in self.drafter:
            self.rates_of(drafter)
        return self

    def rates_of(self, drafter: str) -> tuple[float | str, ...]:
        """Acceptance of a drafter: by its whole text, else by its kind, else that of all."""
        given = dict(self.acceptance)
        for name in (drafter, kind_of(drafter), _ANY):
            if name in given:
                return given[name]
        raise ValueError(f"acceptance: drafter {drafter!r} has none")

    def cases(self) -> Iterator[Case]:
        """Every combination of what is no number, in the order of the lists."""
        for hardware, target, drafter, tensor, expert, weights, kv in itertools.product(
            self.hardware,
            self.target,
            self.drafter,
            self.tensor_parallel,
            self.expert_parallel,
            self.weight_dtype,
            self.kv_dtype,
        ):
            for rates in _groups(self.rates_of(drafter)):
                yield Case(hardware, target, drafter, tensor, expert, weights, kv, rates)

    def fingerprint(self) -> str:
        """What tells sweeps apart: all of the grid, the files it names, and the version that priced it."""
        named = {
            name: hashlib.sha256(Path(name).read_bytes()).hexdigest()
            for name in (*self.hardware, *self.target, self.calibration)
            if Path(name).is_file()
        }
        whole = {"grid": self.model_dump(mode="json"), "files": named, "version": __version__}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Case:
    """One combination of names, and the acceptances that are priced with it at once.

    Attributes:
        acceptance: constant rates, or one text.
    """

    hardware: str
    target: str
    drafter: str
    tensor_parallel: int
    expert_parallel: int
    weight_dtype: str
    kv_dtype: str
    acceptance: tuple[float | str, ...]

    @property
    def rates(self) -> Rates:
        """The acceptance: constant rates as one array, shape (rates,)."""
        if all(isinstance(value, float) for value in self.acceptance):
            return Acceptance.constant(np.array(self.acceptance, dtype=float))
        return parse_rates(str(self.acceptance[0]))


def _groups(values: tuple[float | str, ...]) -> Iterator[tuple[float | str, ...]]:
    """All constant rates together, and each other acceptance by itself."""
    constant = tuple(value for value in values if isinstance(value, float))
    if constant:
        yield constant
    for value in values:
        if isinstance(value, str):
            yield (value,)


def read_grid(path: Path) -> SweepGrid:
    """Read a grid.

    Raises:
        FileFormatError: missing, not TOML, or not a grid; the message names the field and the rule.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not TOML: {error}"
        raise FileFormatError(f"grid {path} cannot be read: {reason}") from None
    return SweepGrid.read(data, f"grid {path}")
