"""Self-speculation by a copy of the target in another format, on the target's cache.

The copy's weights are stored beside the target's. It attends to the target's own keys and values (QSpec,
arXiv 2410.11305), so it needs no cache; what it writes for drafted tokens, the verify pass writes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rooflines.costs.storage import weight_bytes
from rooflines.dtypes import number_format
from rooflines.errors import InputError
from rooflines.speculation.drafters.base import STEPS, Drafter
from rooflines.speculation.drafters.kind import DrafterKind, label, whole
from rooflines.speculation.drafters.self_draft import SelfDrafter
from rooflines.timing.deployment import Deployment


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    if model is None:
        raise InputError("a quantized copy needs its format: write it as quantized:int4-g128")
    weights = number_format(model).name
    precision = replace(target.precision, weights=weights)
    return SelfDrafter(
        name=label("quantized", weights, parameters),
        deployment=replace(target, precision=precision),
        own_weight_bytes=weight_bytes(target.model, precision, target.parallelism),
        only=whole(parameters, "depth"),
    )


KINDS: Final = {
    "quantized": DrafterKind(
        _make,
        {"depth": "tokens, in place of the draft lengths of the plan", "steps": STEPS},
        "a copy of the target in another format, on the target's cache",
        "format of its linear layers",
    )
}
