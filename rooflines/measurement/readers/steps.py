"""An imported table of step times as a file of measurements, which plans and calibrations take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rooflines.errors import InputError
from rooflines.measurement.readers.results import Imported
from rooflines.measurement.schema import Inputs, Stability, Step, StepsFile
from rooflines.measurement.stability import iqr_share, judge

# Fewer repetitions have no quartiles worth the name.
_FEWEST: Final = 4


def steps_file(imported: Imported, *, created: str, written_by: str) -> StepsFile:
    """The table with all that the file said of the run.

    The tool's files do not describe a machine as we do: what they say of it stands among the options.

    Args:
        imported: with steps.
        created: when it is imported; taken where the file does not say when it was measured.
        written_by: version of rooflines.

    Raises:
        InputError: there are no steps in it.
    """
    if not imported.steps:
        raise InputError(f"{imported.source} holds no times of single passes")
    model = imported.settings.get("model_filename")
    return StepsFile(
        created=imported.created or created,
        rooflines=written_by,
        versions=imported.versions,
        inputs=Inputs(model=str(model) if model else None, options=dict(imported.settings)),
        stability=_stability(imported.steps),
        source=imported.source,
        notes=imported.notes,
        steps=imported.steps,
    )


def _stability(steps: Sequence[Step]) -> Stability | None:
    """The worst verdict on plain decode steps, on which every ratio T(n) / T(1) rests."""
    plain = [step.seconds for step in steps if step.new_positions == 1 and len(step.seconds) >= _FEWEST]
    return judge(max(plain, key=iqr_share), None) if plain else None
