"""Roofline analysis and performance modelling of speculative decoding.

The public interface is what `__all__` lists; a name is imported when it is first used, so that
`import rooflines` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rooflines.costs.cost import Cost, Operator, Pass
    from rooflines.costs.passes import decode_pass, forward_pass, prefill_pass, verify_pass
    from rooflines.costs.setting import Parallelism, Precision, Shape
    from rooflines.errors import RooflinesError
    from rooflines.hardware.catalogue import list_hardware, load_hardware
    from rooflines.hardware.profile import HardwareProfile
    from rooflines.models.catalogue import list_presets
    from rooflines.models.readers import read_model
    from rooflines.models.spec import ModelSpec
    from rooflines.speculation.acceptance import Acceptance
    from rooflines.speculation.acceptance_text import parse_acceptance
    from rooflines.speculation.crossover import crossover
    from rooflines.speculation.cycle import Cycle, cycle, cycle_times
    from rooflines.speculation.drafters.registry import make_drafter
    from rooflines.studies.plan import Plan, PlanQuestion, make_plan
    from rooflines.timing.deployment import Deployment
    from rooflines.timing.machine import Machine, default_machine, textbook_machine
    from rooflines.timing.roofline import pass_time

__version__ = "0.1.0"

# Public name -> module that has it.
_HOMES: Final = {
    "Acceptance": "rooflines.speculation.acceptance",
    "Cost": "rooflines.costs.cost",
    "Cycle": "rooflines.speculation.cycle",
    "Deployment": "rooflines.timing.deployment",
    "HardwareProfile": "rooflines.hardware.profile",
    "Machine": "rooflines.timing.machine",
    "ModelSpec": "rooflines.models.spec",
    "Operator": "rooflines.costs.cost",
    "Parallelism": "rooflines.costs.setting",
    "Pass": "rooflines.costs.cost",
    "Plan": "rooflines.studies.plan",
    "PlanQuestion": "rooflines.studies.plan",
    "Precision": "rooflines.costs.setting",
    "RooflinesError": "rooflines.errors",
    "Shape": "rooflines.costs.setting",
    "crossover": "rooflines.speculation.crossover",
    "cycle": "rooflines.speculation.cycle",
    "cycle_times": "rooflines.speculation.cycle",
    "decode_pass": "rooflines.costs.passes",
    "default_machine": "rooflines.timing.machine",
    "forward_pass": "rooflines.costs.passes",
    "list_hardware": "rooflines.hardware.catalogue",
    "list_presets": "rooflines.models.catalogue",
    "load_hardware": "rooflines.hardware.catalogue",
    "make_drafter": "rooflines.speculation.drafters.registry",
    "make_plan": "rooflines.studies.plan",
    "parse_acceptance": "rooflines.speculation.acceptance_text",
    "pass_time": "rooflines.timing.roofline",
    "prefill_pass": "rooflines.costs.passes",
    "read_model": "rooflines.models.readers",
    "textbook_machine": "rooflines.timing.machine",
    "verify_pass": "rooflines.costs.passes",
}

__all__ = [
    "Acceptance",
    "Cost",
    "Cycle",
    "Deployment",
    "HardwareProfile",
    "Machine",
    "ModelSpec",
    "Operator",
    "Parallelism",
    "Pass",
    "Plan",
    "PlanQuestion",
    "Precision",
    "RooflinesError",
    "Shape",
    "crossover",
    "cycle",
    "cycle_times",
    "decode_pass",
    "default_machine",
    "forward_pass",
    "list_hardware",
    "list_presets",
    "load_hardware",
    "make_drafter",
    "make_plan",
    "parse_acceptance",
    "pass_time",
    "prefill_pass",
    "read_model",
    "textbook_machine",
    "verify_pass",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
