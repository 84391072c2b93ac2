"""What was measured on a device: constants of its operator classes, what they rest on, how wrong they are.

A calibration belongs to one device and one software stack. Files are TOML, written by
rooflines.hardware.calibration_files and found there by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from rooflines.dtypes import number_format
from rooflines.errors import near_matches
from rooflines.facts import LISTED, Fact, Texts
from rooflines.hardware.constants import Constants

SCHEMA_VERSION: Final = 1
ANY: Final = "*"
# The kinds of rooflines.costs.cost.Operator; a test holds the two lists together.
OperatorClass = Literal[
    "linear", "decode_attention", "prefill_attention", "moe", "recurrent", "collective", "small"
]
CLASSES: Final[tuple[str, ...]] = get_args(OperatorClass)
# measured: fitted to rows of this device; class: carried over from devices of its class; judged: set by hand
# from published figures; transferable: medians over the measured devices.
Basis = Literal["measured", "class", "judged", "transferable"]
# Form of constants fitted to whole passes of a model: their residuals are of passes, not of kernels.
WHOLE_PASSES: Final = "host + sum over kernels of smooth maximum and floor"
# Peaks and kernels of the two 16-bit formats are the same on every device that has both.
_SAME: Final = {"fp16": "bf16", "bf16": "fp16"}
_SIXTEEN_BITS: Final = 12.0  # storage below it is quantised
_EIGHT_BITS: Final = 6.0  # and below this it is of the 4-bit family


def _constants(given: object) -> object:
    """Constants out of a table of numbers by name."""
    if isinstance(given, Constants):
        return given
    if not isinstance(given, Mapping):
        raise ValueError("constants are a table of names and numbers")  # noqa: TRY004 - pydantic reports a ValueError only
    known = [field.name for field in fields(Constants)]
    for key, value in given.items():
        if key not in known:
            near = near_matches(str(key), known)
            raise ValueError(f"unknown constant {key!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"{key} = {value!r} is not a number")  # noqa: TRY004 - likewise
    return Constants(**{key: float(value) for key, value in given.items()})


class Residual(Fact):
    """How wrong the predictions of some rows were; log is ln(measured / predicted).

    Attributes:
        region: part of the range, such as ``m <= 64``; ``all`` for every row.
        rows: how many rows.
        median_abs_error: median of |predicted / measured - 1|.
        p90_abs_error: its 90 % quantile.
        bias: median of predicted / measured - 1.
        log_q05: 5 % quantile of ln(measured / predicted).
        log_q95: 95 % quantile of the same.
        in_sample: whether the constants were fitted to these rows; otherwise their shapes were held out.
        new_shape_factor: how much wider than from log_q05 to log_q95 the 90 % interval of a shape is that was
            not among them; None where it was not measured, and follows from their number.
    """

    region: str
    rows: Annotated[int, Field(ge=0)]
    median_abs_error: Annotated[float, Field(ge=0)]
    p90_abs_error: Annotated[float, Field(ge=0)]
    bias: float
    log_q05: float
    log_q95: float
    in_sample: bool
    new_shape_factor: Annotated[float, Field(ge=1)] | None = None


class LeftOutRows(Fact):
    """Rows that were not fitted to, and why."""

    reason: str
    rows: Annotated[int, Field(gt=0)]


class Provenance(Fact):
    """What constants rest on.

    Attributes:
        basis: measured, class, judged or transferable.
        stack: software that ran the kernels; may differ from the calibration's, which then borrowed.
        files: tables that the rows are from.
        rows: rows fitted to.
        shapes: distinct weight or head shapes among them; devices, where the constants are their medians.
        shape_names: these shapes as tables name them (``4096x11008``), so that a row of one of them is known
            to be in sample.
        left_out: rows not fitted to, by reason.
        note: what a reader should know before relying on it.
    """

    basis: Basis
    stack: str = ""
    files: Texts = ()
    rows: Annotated[int, Field(ge=0)] = 0
    shapes: Annotated[int, Field(ge=0)] = 0
    shape_names: Texts = ()
    left_out: Annotated[tuple[LeftOutRows, ...], LISTED] = ()
    note: str = ""


class OperatorConstants(Fact):
    """Constants of one operator class in one arithmetic and storage format.

    Attributes:
        operator: class.
        arithmetic: dtype whose peak the products run at.
        storage: format of the weights, or of the cached keys and values; ``*`` for any.
        form: the time form by name (docs/calibration.md).
        constants: of the form.
        provenance: what they rest on.
        residuals: how wrong they are, by region.
    """

    operator: OperatorClass
    arithmetic: str
    storage: str = ANY
    form: str
    constants: Annotated[Constants, BeforeValidator(_constants)]
    provenance: Provenance
    residuals: Annotated[tuple[Residual, ...], LISTED] = ()

    @field_validator("constants")
    @classmethod
    def _possible(cls, given: Constants) -> Constants:
        for field in fields(Constants):
            value = getattr(given, field.name)
            if math.isnan(value) or value < 0:
                raise ValueError(f"{field.name} is {value}: it must not be negative")
        if not (given.bandwidth_efficiency > 0 and given.compute_efficiency > 0 and given.sharpness > 0):
            raise ValueError("efficiencies and sharpness must be above zero")
        return given

    def residual(self, region: str) -> Residual | None:
        """The residual of one region, if the rows had any there."""
        return next((one for one in self.residuals if one.region == region), None)


class StepTime(Fact):
    """Measured time of one whole pass of one model: a row of a table T(n).

    Attributes:
        batch: sequences B.
        new_positions: new positions n of each.
        context: cached positions S of each.
        time_s: of the pass (s).
    """

    batch: Annotated[int, Field(ge=1)]
    new_positions: Annotated[int, Field(ge=1)]
    context: Annotated[int, Field(ge=0)]
    time_s: Annotated[float, Field(gt=0)]


class Calibration(Fact):
    """All that was fitted on one device with one software stack.

    Attributes:
        schema_version: of this format.
        name: as the catalogue lists it; the file's name without its ending.
        device: id of the hardware profile; ``*`` for the constants that any device may take.
        stack: software by name and version, such as ``vllm 0.14.0``.
        created: ISO date of the fit.
        sources: where the rows are from, for a stranger to open.
        host_overhead_s: host time per pass that overlaps nothing (s).
        stands_for: ids of devices of the same class that take these constants for want of their own.
        operators: constants by class, arithmetic and storage.
        steps: measured passes of one model.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: str
    device: str
    stack: str
    created: str
    sources: Texts
    host_overhead_s: Annotated[float, Field(ge=0)] = 0.0
    stands_for: Texts = ()
    operators: Annotated[tuple[OperatorConstants, ...], LISTED] = ()
    steps: Annotated[tuple[StepTime, ...], LISTED] = ()

    @model_validator(mode="after")
    def _no_entry_twice(self) -> Calibration:
        seen: set[tuple[str, str, str]] = set()
        for entry in self.operators:
            key = (entry.operator, entry.arithmetic, entry.storage)
            if key in seen:
                raise ValueError(f"operators: {' '.join(key)} is given twice")
            seen.add(key)
        return self

    @property
    def of_whole_passes(self) -> OperatorConstants | None:
        """An entry whose residuals are those of whole passes; None where constants are of single kernels."""
        return next((one for one in self.operators if one.form == WHOLE_PASSES and one.residuals), None)

    def find(self, operator: str, arithmetic: str, storage: str) -> OperatorConstants | None:
        """The entry that answers for an operator: of its own storage, else of that family of widths.

        Formats of one family (16, 8 or 4 bits a weight) under one arithmetic run alike; another arithmetic
        never stands in, except that fp16 and bf16 do for each other.

        Args:
            operator: class.
            arithmetic: dtype of the products.
            storage: format of weights or cache.
        """
        entries = [
            entry
            for entry in self.operators
            if entry.operator == operator and entry.arithmetic in (ANY, arithmetic, _SAME.get(arithmetic))
        ]
        family = width_family(storage)
        for fits in (
            lambda entry: entry.storage == storage,
            lambda entry: entry.storage != ANY and width_family(entry.storage) == family,
            lambda entry: entry.storage == ANY,
        ):
            found = next(filter(fits, entries), None)
            if found is not None:
                return found
        return None


def width_family(storage: str) -> int:
    """16, 8 or 4: which family of widths a number format belongs to."""
    bits = number_format(storage).bits
    return 16 if bits >= _SIXTEEN_BITS else 8 if bits > _EIGHT_BITS else 4
