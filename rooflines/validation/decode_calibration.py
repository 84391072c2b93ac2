"""From a file of measured passes to a calibration: constants where the form fits, else the table itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.errors import InputError
from rooflines.hardware.calibration import (
    ANY,
    WHOLE_PASSES,
    Calibration,
    LeftOutRows,
    OperatorClass,
    OperatorConstants,
    Provenance,
    Residual,
    StepTime,
)
from rooflines.hardware.constants import Constants
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.files import AnyFile
from rooflines.measurement.schema import DecodeFile, Sample, StepsFile
from rooflines.measurement.step_files import step_cells
from rooflines.validation.decode_costs import ATTENTION, FITTED_CASES, Group, Passes, measured_passes
from rooflines.validation.decode_fit import DecodeFit, fit_decode, missing_axes, regions
from rooflines.validation.measured_model import int4_storage, measured_model
from rooflines.validation.residuals import residual

# Kernels of packed weights change with the width; a drafter's step is 1 position wide, or 2 to catch up.
_WIDEST_DRAFT: Final = 2
# They move bytes as linear layers do; residuals, which are of whole passes, stand with the others.
_SMALL: Final = ("small", "recurrent")
# Fewer points than this leave nothing to judge the fit by.
_FEWEST_POINTS: Final = 8


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration and what a reader should know of it.

    Attributes:
        calibration: to be written.
        fit: of the form; None where a table came without the model that was measured.
        text: what was done, and what to add.
    """

    calibration: Calibration
    fit: DecodeFit | None
    text: str


def calibrate_decode(file: AnyFile, source: str, profile: HardwareProfile, name: str) -> Calibrated:
    """Fit a calibration to component timings.

    Args:
        file: of passes of a model, or a table of step times.
        source: name of the file, for the provenance.
        profile: of the machine that was measured; its bandwidth and peaks are what efficiencies refer to.
        name: of the calibration.

    Raises:
        InputError: a file of another kind: speculation runs judge and are never fitted.
        RooflinesError: the model is not understood, or the profile lacks a peak.
    """
    if isinstance(file, StepsFile):
        cells = step_cells(file)
        calibration = _calibration(file, source, profile, name, steps=cells)
        text = f"{len(cells)} step times of {file.source} taken as they are: a table has no parts to fit"
        return Calibrated(calibration, None, text)
    if not isinstance(file, DecodeFile):
        raise InputError(
            f"{source} holds {file.kind} measurements: constants are fitted to passes of a model (rooflines "
            "measure decode); speculation judges them and is never fitted"
        )
    samples = [sample for sample in file.samples if _left_out(sample) is None]
    if len(samples) < _FEWEST_POINTS:
        raise InputError(
            f"{source} holds {len(samples)} passes: at least {_FEWEST_POINTS} are needed; add "
            + "; ".join(missing_axes(samples))
        )
    copied = any(sample.case == "draft" for sample in samples)
    int4 = int4_storage(file.inputs) if copied else None
    passes = measured_passes(measured_model(file.inputs), samples, int4)
    fit = fit_decode(passes)
    if fit.fits and fit.separates:
        entries = _entries(file, source, profile, samples, passes=passes, fit=fit)
        calibration = _calibration(file, source, profile, name, entries=entries, host_s=fit.host_s)
    else:
        calibration = _calibration(file, source, profile, name, steps=step_cells(file))
    return Calibrated(calibration, fit, _words(file, samples, fit))


def _left_out(sample: Sample) -> str | None:
    """Why a sample is not fitted to; None where it is."""
    if sample.case not in FITTED_CASES:
        return "no pass of the model"
    if sample.case == "draft" and sample.new_positions > _WIDEST_DRAFT:
        return f"wider than {_WIDEST_DRAFT} positions, which no step of a drafter is"
    return None


def _calibration(
    file: DecodeFile | StepsFile,
    source: str,
    profile: HardwareProfile,
    name: str,
    *,
    entries: tuple[OperatorConstants, ...] = (),
    host_s: float = 0.0,
    steps: tuple[StepTime, ...] = (),
) -> Calibration:
    return Calibration(
        name=name,
        device=profile.id,
        stack=_stack(file),
        created=file.created,
        sources=(f"{source}: {file.kind} measurements of {file.inputs.model or 'a model'}",),
        host_overhead_s=host_s,
        operators=entries,
        steps=steps,
    )


def _stack(file: DecodeFile | StepsFile) -> str:
    known = [f"{tool} {file.versions[tool]}" for tool in ("torch", "transformers") if tool in file.versions]
    return ", ".join(known) or ", ".join(f"{tool} {version}" for tool, version in file.versions.items())


def _entries(
    file: DecodeFile,
    source: str,
    profile: HardwareProfile,
    samples: Sequence[Sample],
    *,
    passes: Passes,
    fit: DecodeFit,
) -> tuple[OperatorConstants, ...]:
    """Constants of every class that ran, and of the small kernels, which move bytes as linear layers do."""
    counted = Counter(filter(None, map(_left_out, file.samples)))
    left = tuple(LeftOutRows(reason=reason, rows=rows) for reason, rows in counted.items())
    provenance = Provenance(
        basis="measured",
        stack=_stack(file),
        files=(source,),
        rows=len(samples),
        shapes=len({(one.case, one.depth) for one in samples}),
        left_out=left,
        note=f"residuals are of whole passes; rms of the fit {fit.rms:.1%}",
    )
    told = _residuals(fit, samples)
    entries: list[OperatorConstants] = []
    for index, group in enumerate(passes.groups):
        constants = _constants(profile, group, fit, index)
        classes: tuple[tuple[OperatorClass, str], ...] = (
            (("decode_attention", ANY), ("prefill_attention", ANY))
            if group.name == ATTENTION
            else (("moe" if group.name == "moe" else "linear", group.storage),)
        )
        if group == passes.groups[0]:
            classes = (*classes, ("small", ANY), ("recurrent", ANY))
        entries += [
            OperatorConstants(
                operator=operator,
                arithmetic=ANY if operator in _SMALL else group.arithmetic,
                storage=storage,
                form=WHOLE_PASSES,
                constants=constants,
                provenance=provenance,
                residuals=() if operator in _SMALL else told,
            )
            for operator, storage in classes
        ]
    return tuple(entries)


def _constants(profile: HardwareProfile, group: Group, fit: DecodeFit, index: int) -> Constants:
    per_byte, per_flop = float(fit.seconds_per_byte[index]), float(fit.seconds_per_flop[index])
    bandwidth, peak = profile.bandwidth_bytes_per_s, profile.peak_flop_per_s(group.arithmetic)
    return Constants(
        bandwidth_efficiency=1.0 / (per_byte * bandwidth) if per_byte else np.inf,
        compute_efficiency=1.0 / (per_flop * peak) if per_flop else np.inf,
        overhead_s=fit.kernel_s,
        sharpness=fit.sharpness,
    )


def _residuals(fit: DecodeFit, samples: Sequence[Sample]) -> tuple[Residual, ...]:
    return tuple(
        residual(region, fit.held_out[chosen], in_sample=False) for region, chosen in regions(samples).items()
    )


def _words(file: DecodeFile, samples: Sequence[Sample], fit: DecodeFit) -> str:
    """What was found; what to add where it is not enough."""
    add = missing_axes(samples)
    more = f" Add {'; '.join(add)}." if add else ""
    if not fit.fits:
        how = (
            f"No form fits these kernels (rms {fit.rms:.1%} of {len(samples)} passes), so the table of step "
            "times is written: it answers for measured widths only."
        )
    elif not fit.separates:
        how = (
            f"The points cannot separate {' and '.join(fit.vague)} from overhead, so no constants are "
            f"written, but the table of step times.{more}"
        )
    else:
        worst = max(_residuals(fit, samples)[1:], key=lambda one: one.p90_abs_error, default=None)
        told = f"; worst of its parts {worst.region} (p90 {worst.p90_abs_error:.1%})" if worst else ""
        how = (
            f"T = host + bytes / BW + flops / F with p = {fit.sharpness:g} meets {len(samples)} passes to "
            f"{fit.rms:.1%} rms{told}."
        )
    shaky = "" if file.stability.stable else f" The machine did not hold still: {file.stability.advice}."
    return how + shaky
