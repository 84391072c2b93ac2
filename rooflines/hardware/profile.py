"""What is stated about a device: cited numbers, never formulas.

Peaks are dense (no 2:4 sparsity) with FP32 accumulation and are keyed by the dtype of the arithmetic.
Keys with a suffix are other instructions of the same dtype and stand in for nothing: ``fp16_acc16`` and
``fp8_acc16`` accumulate in FP16, ``fp8_mx`` is block-scaled MXFP8, ``fp64_tensor`` is the matrix unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from rooflines.dtypes import ARITHMETIC
from rooflines.errors import MissingPeakError, ProfileError, UnitError, UnknownNameError, near_matches
from rooflines.facts import LISTED, Fact, Texts
from rooflines.units import Dimension, parse_quantity

PEAK_KEYS: Final = (*ARITHMETIC, "fp16_acc16", "fp8_acc16", "fp8_mx", "fp64_tensor")
_BANDWIDTHS: Final = ("memory_bandwidth", "interconnect_per_direction", "pcie_per_direction")
UNVERIFIED: Final = "from memory, unverified"
Basis = Literal["datasheet", "measured", "derived", "assumed"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as a file writes it and as formulas use it.

    Attributes:
        text: with its unit, e.g. ``3.35 TB/s``; a count has none.
        si: in SI (bytes, bytes/s, FLOP/s, hertz, watts, or the count).
    """

    text: str
    si: float


class Statement(Fact):
    """One number, how we know it and who says so.

    Attributes:
        value: the number.
        basis: ``datasheet`` (a vendor's document or a compilation of such), ``measured``, ``derived`` or
            ``assumed``.
        source: a key of the profile's ``[sources]``; None where a user's own profile gives none.
        stated: what the source prints, where that differs from the value.
        note: what a reader should know before relying on it.
    """

    value: Quantity
    basis: Basis
    source: str | None = None
    stated: str | None = None
    note: str | None = None


class Entry(Statement):
    """An adopted number, with what other sources state."""

    alternatives: tuple[Statement, ...] = ()


def _quantity(given: object, dimension: Dimension) -> Quantity:
    if isinstance(given, str) and "spars" in given.lower():
        raise ValueError("peaks are dense: write the figure without sparsity (half of a 2:4 sparse one)")
    try:
        si = parse_quantity(given, dimension)
    except UnitError as error:
        # Pydantic adds the name of the field to a ValueError only.
        raise ValueError(str(error)) from None
    if si == 0:
        raise ValueError(f"{given!r} must be above zero: leave out what is not known")
    return Quantity(str(given), si)


def _count(given: object) -> Quantity:
    if not isinstance(given, int) or isinstance(given, bool) or given <= 0:
        raise ValueError(f"{given!r} is not a count: write a whole number above zero, without quotes")
    return Quantity(str(given), float(given))


def _entry(given: object, read: Callable[[object], Quantity]) -> object:
    """Read the values of an entry; a plain value in place of the table is an unsourced assumption."""
    if isinstance(given, Entry):
        return given
    if not isinstance(given, Mapping):
        return {"value": read(given), "basis": "assumed"}
    return {**_statement(given, read), "alternatives": _alternatives(given.get("alternatives", ()), read)}


def _statement(given: Mapping[str, object], read: Callable[[object], Quantity]) -> dict[str, object]:
    return {key: read(value) if key == "value" else value for key, value in given.items()}


def _alternatives(given: object, read: Callable[[object], Quantity]) -> object:
    if not isinstance(given, list | tuple):
        return given
    return tuple(_statement(one, read) if isinstance(one, Mapping) else one for one in given)


def _reads(dimension: Dimension) -> BeforeValidator:
    return BeforeValidator(partial(_entry, read=partial(_quantity, dimension=dimension)))


Bytes = Annotated[Entry, _reads("byte")]
BytesPerSecond = Annotated[Entry, _reads("byte/s")]
FlopPerSecond = Annotated[Entry, _reads("FLOP/s")]
Hertz = Annotated[Entry, _reads("Hz")]
Watts = Annotated[Entry, _reads("W")]
Count = Annotated[Entry, BeforeValidator(partial(_entry, read=_count))]


class LintException(Fact):
    """A lint rule that does not hold for some fields of this device, and why that is no mistake."""

    rule: str
    fields: Texts
    reason: Annotated[str, Field(min_length=1)]


class HardwareProfile(Fact):
    """A device as its sources describe it; what no source states is absent.

    Bandwidths of links are per device: in one direction, or both together (``interconnect_total``).
    ``gpu_memory_limit`` is the share of unified memory that a GPU may use.
    """

    id: str
    name: str
    vendor: str = ""
    architecture: str = ""
    memory_type: str = ""
    identity_source: str | None = None
    kind: Literal["gpu", "tpu", "asic", "soc", "cpu"] | None = None
    status: Literal["shipping", "announced"] = "shipping"
    aliases: Texts = ()
    year: Count | None = None
    memory_capacity: Bytes | None = None
    memory_capacity_nominal: Bytes | None = None
    gpu_memory_limit: Bytes | None = None
    memory_bandwidth: BytesPerSecond | None = None
    last_level_cache: Bytes | None = None
    compute_units: Count | None = None
    base_clock: Hertz | None = None
    boost_clock: Hertz | None = None
    tensor_clock: Hertz | None = None
    tdp: Watts | None = None
    interconnect_per_direction: BytesPerSecond | None = None
    interconnect_total: BytesPerSecond | None = None
    interconnect_per_link: BytesPerSecond | None = None
    c2c_per_direction: BytesPerSecond | None = None
    pcie_per_direction: BytesPerSecond | None = None
    peaks: dict[str, FlopPerSecond] = Field(default_factory=dict)
    exceptions: Annotated[tuple[LintException, ...], LISTED] = ()
    sources: dict[str, str] = Field(default_factory=dict)

    @field_validator("id")
    @classmethod
    def _plain_id(cls, given: str) -> str:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", given):
            raise ValueError(
                f"{given!r}: an id has lower-case letters and digits, with single dashes between"
            )
        return given

    @field_validator("name")
    @classmethod
    def _said_name(cls, given: str) -> str:
        if not given.strip():
            raise ValueError('the name is empty: write what people call the device, such as "H100 SXM"')
        return given

    @field_validator("peaks", mode="before")
    @classmethod
    def _known_dense_peaks(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            raise ValueError('peaks is a table: write [peaks] and below it bf16 = "989 TFLOP/s"')  # noqa: TRY004 - pydantic reports a ValueError only
        for key, entry in given.items():
            if "spars" in key or (isinstance(entry, Mapping) and any("spars" in field for field in entry)):
                raise ValueError(f"{key}: peaks are dense: leave sparsity out (halve a 2:4 sparse figure)")
            if key not in PEAK_KEYS:
                raise ValueError(f"unknown dtype {key!r}; known: {', '.join(PEAK_KEYS)}")
        return given

    @model_validator(mode="after")
    def _sources_are_listed(self) -> HardwareProfile:
        cited = [("identity_source", self.identity_source)]
        for field, entry in self.entries():
            cited += [(field, one.source) for one in (entry, *entry.alternatives)]
        for field, source in cited:
            if source is not None and source not in self.sources:
                near = near_matches(source, self.sources)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"{field}: source {source!r} is not a key of [sources]{hint}")
        return self

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Every stated number with its field, peaks as ``peaks.bf16``."""
        for field in type(self).model_fields:
            value = getattr(self, field)
            if isinstance(value, Entry):
                yield field, value
        for dtype, entry in self.peaks.items():
            yield f"peaks.{dtype}", entry

    @property
    def rates(self) -> dict[str, float]:
        """Bandwidths and peaks, of which fitted constants are shares (bytes/s and FLOP/s)."""
        return {
            field: entry.value.si
            for field, entry in self.entries()
            if field in _BANDWIDTHS or field.startswith("peaks.")
        }

    def source_of(self, statement: Statement) -> str | None:
        """The URL (or words) behind a statement; None where none was given."""
        return None if statement.source is None else self.sources[statement.source]

    def peak_flop_per_s(self, dtype: str) -> float:
        """The dense, FP32-accumulate peak of an arithmetic dtype (FLOP/s).

        Raises:
            MissingPeakError: no source states it. Another dtype's peak never stands in.
            UnknownNameError: `dtype` is no key of a peak.
        """
        if dtype in self.peaks:
            return self.peaks[dtype].value.si
        if dtype not in PEAK_KEYS:
            raise UnknownNameError("arithmetic dtype", dtype, PEAK_KEYS, f"(known: {', '.join(PEAK_KEYS)})")
        stated = f"choose one that is stated: {', '.join(self.peaks)}" if self.peaks else "it states no peak"
        raise MissingPeakError(f"{self.id} states no dense {dtype} peak; {stated}")

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Peak memory bandwidth (bytes/s).

        Raises:
            ProfileError: not stated.
        """
        return self._needed("memory_bandwidth")

    @property
    def capacity_bytes(self) -> float:
        """Memory that a model may fill (bytes): the GPU's share of unified memory where a limit is stated.

        Raises:
            ProfileError: not stated.
        """
        return self._needed("memory_capacity" if self.gpu_memory_limit is None else "gpu_memory_limit")

    @property
    def interconnect_bytes_per_s(self) -> float | None:
        """Bandwidth to the other devices in one direction (bytes/s), or None where it is not stated.

        Half of a total is not assumed: sources disagree on what a total counts.
        """
        return _si(self.interconnect_per_direction)

    @property
    def pcie_bytes_per_s(self) -> float | None:
        """Bandwidth to the host in one direction (bytes/s), or None where it is not stated."""
        return _si(self.pcie_per_direction)

    @property
    def last_level_cache_bytes(self) -> float | None:
        """Size of the cache before memory (bytes), or None where it is not stated."""
        return _si(self.last_level_cache)

    def ridge_point(self, dtype: str) -> float:
        """Intensity from which arithmetic, not memory, bounds a kernel (FLOP/byte).

        Peak over bandwidth: Williams, Waterman and Patterson 2009, https://doi.org/10.1145/1498765.1498785.

        Raises:
            MissingPeakError: no such peak is stated.
            ProfileError: no memory bandwidth is stated.
        """
        return self.peak_flop_per_s(dtype) / self.bandwidth_bytes_per_s

    def _needed(self, field: str) -> float:
        entry: Entry | None = getattr(self, field)
        if entry is None:
            raise ProfileError(f"{self.id} states no {field}: add it to a profile of your own to go on")
        return entry.value.si


def _si(entry: Entry | None) -> float | None:
    return None if entry is None else entry.value.si
