"""Step times of a model in whatever file holds them, as the table that a cycle is timed with.

Three kinds of file hold T(n): what another tool printed (``llama-bench -o json``), a file of measurements (of
passes, or of steps), and a calibration whose kernels no form described. All give the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from rooflines.errors import FileFormatError, InputError
from rooflines.hardware.calibration import StepTime
from rooflines.hardware.calibration_files import read_calibration
from rooflines.measurement.files import AnyFile, read_measured
from rooflines.measurement.readers.catalogue import read_source, recognise
from rooflines.measurement.readers.files import read_text, records_of
from rooflines.measurement.readers.results import Source
from rooflines.measurement.readers.steps import steps_file
from rooflines.measurement.schema import DecodeFile, Sample, Stability, Step, StepsFile
from rooflines.timing.step_times import StepTable

_OURS: Final = ("machine", "decode", "speculation", "steps")


@dataclass(frozen=True, slots=True)
class MeasuredSteps:
    """A table of step times and where it is from.

    Attributes:
        table: T(batch, new positions, context).
        source: for the reader of a result.
        notes: what to know about these times.
        parameters: of the model, where the file says how many.
    """

    table: StepTable
    source: str
    notes: tuple[str, ...] = ()
    parameters: int | None = None


def read_steps(path: Path) -> MeasuredSteps:
    """Read the step times of a model.

    Args:
        path: a calibration (``.toml``), a file of measurements, or what a tool printed.

    Raises:
        FileFormatError: the file cannot be read, or is of no known format.
        InputError: it holds no times of whole passes.
    """
    if path.suffix == ".toml":
        calibration = read_calibration(path)
        if not calibration.steps:
            raise InputError(
                f"{path.name} holds constants and no measured steps: give it as --calibration, which answers "
                "for every model"
            )
        source = f"measured steps of {calibration.name} ({calibration.stack})"
        return MeasuredSteps(StepTable.of(calibration.steps), source)
    file = _measured(path)
    cells = step_cells(file)
    if not cells:
        raise InputError(
            f"{path.name} holds {file.kind} measurements and no passes of the whole model: measure some with "
            "rooflines measure decode, or import those of another tool"
        )
    tool = file.source if isinstance(file, StepsFile) else f"{file.inputs.model or 'a model'}, {path.name}"
    told = file.notes if isinstance(file, StepsFile) else ()
    parameters = file.inputs.options.get("model_n_params")
    return MeasuredSteps(
        StepTable.of(cells),
        f"measured steps ({tool})",
        (*told, *_unsteady(file.stability)),
        parameters if isinstance(parameters, int) else None,
    )


def step_cells(file: AnyFile) -> tuple[StepTime, ...]:
    """Passes of the whole model in a file of measurements, one cell each.

    Means, not medians: what decoding takes is the sum of its steps, slow ones included.
    """
    if isinstance(file, StepsFile):
        return tuple(map(_cell, file.steps))
    if not isinstance(file, DecodeFile):
        return ()
    whole = max(one.depth for one in file.samples)
    return tuple(_cell(one) for one in file.samples if one.case == "step" and one.depth == whole)


def _cell(timed: Step | Sample) -> StepTime:
    return StepTime(
        batch=timed.batch,
        new_positions=timed.new_positions,
        context=timed.context,
        time_s=float(np.mean(timed.seconds)),
    )


def _measured(path: Path) -> AnyFile:
    """The file as one of measurements, whoever wrote it."""
    text = read_text(path)
    if text.lstrip().startswith("{") and records_of(text, path.name)[0].get("kind") in _OURS:
        return read_measured(path)
    found = read_source(recognise(text, path.name), Source(text, path.name))
    if not found.steps:
        raise FileFormatError(f"{path.name} holds no times of single passes, from which steps are known")
    return steps_file(found, created=found.created, written_by="")


def _unsteady(stability: Stability | None) -> tuple[str, ...]:
    if stability is None or stability.stable:
        return ()
    return (f"the machine did not hold still: {stability.advice}",)
