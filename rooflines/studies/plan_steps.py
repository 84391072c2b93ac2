"""Measured steps in a plan: what times the target and its drafters in place of constants.

T(n) is a property of kernels as much as of bandwidth: where kernels for a single row are fast, verifying a
few positions costs steps that no roofline shows, and a cheap draft of high acceptance slows its target down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rooflines.errors import InputError
from rooflines.speculation.drafters.base import Drafter, Stepping
from rooflines.speculation.drafters.ngram import LookupDrafter
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.plan_host import GivenHost, host_of, host_words, require_priced
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepTable, StepTimer

if TYPE_CHECKING:
    from rooflines.measurement.step_files import MeasuredSteps
    from rooflines.studies.plan import PlanQuestion

# Counts of one model differ by what a tool counts (tied heads, rotary tables); models differ by more.
_ONE_MODEL: Final = 0.05


@dataclass(frozen=True, slots=True)
class Timing:
    """What times a plan.

    Attributes:
        target: times the passes of the target.
        basis: what they rest on.
        drafters: in the order of the question.
        hosts: what the host adds to the cycles of each.
        largest_batch: beyond which something was not measured; None where constants answer for all.
        is_measured: whether the target's steps are.
        notes: what is odd about it.
    """

    target: StepTimer
    basis: str
    drafters: tuple[Drafter, ...]
    hosts: tuple[GivenHost, ...]
    largest_batch: int | None
    is_measured: bool
    notes: tuple[str, ...]


def timing_of(question: PlanQuestion, target: Deployment) -> Timing:
    """The target as measured where the question names a file, and the drafters likewise.

    Raises:
        RooflinesError: an unknown drafter, a file that holds no step times, or those of another model, or the
            host time of an engine beside measured steps.
    """
    files = _StepFiles()
    drafters = tuple(make_drafter(text, target, files.table) for text in question.drafters)
    hosts = tuple(host_of(question.cycle_overhead, text, target) for text in question.drafters)
    require_priced(hosts, measured=question.steps is not None or any(map(_is_measured, drafters)))
    drafts = [f"draft from {source}" for source in files.sources]
    if question.steps is None:
        mixed = [
            f"{one.name}: its steps are measured and those of the target are not: measure them too (--steps "
            "FILE)"
            for one in drafters
            if _is_measured(one)
        ]
        basis = "; ".join([target.basis, *drafts, *host_words(hosts)])
        notes = (*files.notes, *mixed)
        return Timing(target, basis, drafters, hosts, files.largest_batch, is_measured=False, notes=notes)
    steps = files.read(question.steps)
    _require_model(steps, target, question.steps)
    drafters = tuple(
        replace(one, target=steps.table) if isinstance(one, LookupDrafter) else one for one in drafters
    )
    mixed = [
        f"{one.name}: the target's steps are measured and its own are not ({target.machine.basis}): measure "
        "them too (steps=FILE)"
        for one in drafters
        if not (_is_measured(one) or isinstance(one, LookupDrafter))
    ]
    basis, notes = "; ".join([steps.source, *drafts]), (*files.notes, *mixed)
    return Timing(steps.table, basis, drafters, hosts, files.largest_batch, is_measured=True, notes=notes)


def _is_measured(drafter: Drafter) -> bool:
    return isinstance(drafter, Stepping) and drafter.steps is not None


class _StepFiles:
    """Files of step times, each read once, and what to know of them."""

    def __init__(self) -> None:
        self._read: dict[str, MeasuredSteps] = {}

    def read(self, path: str) -> MeasuredSteps:
        from rooflines.measurement.step_files import read_steps

        if path not in self._read:
            self._read[path] = read_steps(Path(path).expanduser())
        return self._read[path]

    def table(self, path: str) -> StepTable:
        return self.read(path).table

    @property
    def largest_batch(self) -> int | None:
        return min((steps.table.largest_batch for steps in self._read.values()), default=None)

    @property
    def sources(self) -> list[str]:
        return [steps.source for steps in self._read.values()]

    @property
    def notes(self) -> list[str]:
        return [f"{steps.source}: {'; '.join(steps.notes)}" for steps in self._read.values() if steps.notes]


def _require_model(steps: MeasuredSteps, target: Deployment, path: str) -> None:
    known, asked = steps.parameters, target.model.parameters_total
    if known is not None and abs(known - asked) > _ONE_MODEL * max(known, asked):
        raise InputError(
            f"{path} times a model of {known / 1e6:,.0f}M parameters and {target.model.name} has "
            f"{asked / 1e6:,.0f}M: give the steps of the target itself"
        )
