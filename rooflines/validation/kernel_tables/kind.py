"""What a kind of table states: its columns, its groups, which rows cannot be judged, and its operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rooflines.costs.cost import Operator
from rooflines.dtypes import NumberFormat
from rooflines.hardware.profile import HardwareProfile
from rooflines.validation.kernel_tables.rows import Floats, Texts

if TYPE_CHECKING:
    import pandas as pd

TOKEN_REGIONS: Final = ((64, "m <= 64"), (512, "m 65-512"))
TOKENS_BEYOND: Final = "m > 512"
# Activations stay in 16 bits whatever the weights are: kernels of narrower arithmetic quantise them first.
ACTIVATION_BYTES: Final = 2.0


@dataclass(frozen=True, slots=True)
class Described:
    """Rows of one group as a kind describes them; arrays (N).

    Attributes:
        operators: what a row timed.
        shape: weight or head shape.
        region: part of the range.
        size: what the region was read from.
    """

    operators: tuple[Operator, ...]
    shape: Texts
    region: Texts
    size: Floats


@dataclass(frozen=True, slots=True)
class Context:
    """What the rows of a group have in common.

    Attributes:
        profile: the device.
        storage: format of weights, or of cached keys and values; None where the table has none.
    """

    profile: HardwareProfile
    storage: NumberFormat | None

    @property
    def weights(self) -> NumberFormat:
        """The format, of a kind that has one (the reader leaves rows without out)."""
        if self.storage is None:
            raise TypeError("this kind of table names no format")
        return self.storage


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table.

    Attributes:
        name: for people.
        operator: operator class of its groups.
        device: column that names the device.
        dtype: column that names the format, or the one format of all rows (``=bf16``).
        engine: column of the engine, or the one name of all rows (``=vidur``).
        time: column of the measured time, in microseconds (it ends in ``_us``).
        numbers: columns that must hold numbers above zero.
        leave_out: reasons why rows cannot be judged, '' for those that can.
        describe: operators of the rows that are left.
        kernel: column of the implementation, if the table has it.
        variants: columns that tell groups apart, as one text.
        texts: further columns that are needed.
        variant: what tells the groups of this kind from those of others of the same file.
        screen: reasons that only rows of several groups together show, '' for rows without one.
    """

    name: str
    operator: str
    device: str
    dtype: str
    engine: str
    time: str
    numbers: tuple[str, ...]
    leave_out: Callable[[pd.DataFrame, Context], Texts]
    describe: Callable[[pd.DataFrame, Context], Described]
    kernel: str = ""
    variants: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    variant: str = ""
    screen: Callable[[pd.DataFrame], Texts] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns without which a file is none of this kind."""
        named = (self.device, self.dtype, self.engine, self.time, *self.numbers, *self.variants, *self.texts)
        return tuple(dict.fromkeys(name for name in named if name and not name.startswith("=")))


def reasons(count: int, *rules: tuple[object, str]) -> Texts:
    """One text a row: the first rule that holds for it, or ''.

    Args:
        count: rows N.
        rules: (booleans (N), reason).
    """
    if not rules:
        return np.full(count, "", dtype=np.str_)
    conditions = [np.broadcast_to(np.asarray(rule, dtype=bool), count) for rule, _ in rules]
    return np.select(conditions, [reason for _, reason in rules], default="").astype(np.str_)


def regions(size: Floats, steps: Sequence[tuple[float, str]], beyond: str) -> Texts:
    """Name the part of a range that each size (N) lies in; steps rise and include their end."""
    names = np.array([*(name for _, name in steps), beyond])
    return np.asarray(names[np.searchsorted([end for end, _ in steps], size, side="left")], dtype=np.str_)


def column(frame: pd.DataFrame, name: str) -> Floats:
    """A column of numbers (N)."""
    return np.asarray(frame[name], dtype=np.float64)


def labels(frame: pd.DataFrame, *names: str) -> Texts:
    """Columns joined to one text a row (N), e.g. ``4096x11008``."""
    parts = [np.asarray([f"{value:g}" for value in frame[name]], dtype=np.str_) for name in names]
    joined = parts[0]
    for part in parts[1:]:
        joined = np.char.add(np.char.add(joined, "x"), part)
    return np.asarray(joined, dtype=np.str_)
