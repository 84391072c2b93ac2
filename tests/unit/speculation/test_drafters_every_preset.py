"""Every family drafts for every model that ships with the package."""

from __future__ import annotations

import math

import pytest

from rooflines.models.catalogue import list_presets
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine

FAMILIES = (
    "medusa",
    "eagle",
    "eagle2",
    "eagle3:topk=4,nodes=9",
    "dflash",
    "dspark",
    "mtp",
    "ngram",
    "layerskip:layers=2",
    "quantized:int4-g128",
    "sparse-kv:window=64",
)
# A copy in four bits saves nothing where launches are all there is.
NO_FASTER = {"gpt2", "t5-small", "t5-v1_1-base"}


@pytest.mark.parametrize("model", list_presets())
def test_a_draft_of_three_costs_less_than_three_steps(model):
    encoder = 128 if model.startswith("t5") else None
    target = make_deployment(model, make_machine("b200", "none"), encoder_positions=encoder)
    step = float(target.decode(4.0, 1000.0).seconds)
    for family in FAMILIES:
        drafter = make_drafter(family, target)
        seconds = float(drafter.draft(4.0, 1000.0, 3.0).seconds)
        slack = 0.01 if family.startswith("quantized") and model in NO_FASTER else -1e-9
        assert 0 < seconds < 3 * step * (1 + slack), family
        assert math.isfinite(drafter.weight_bytes())
        assert 0 <= float(drafter.kv_cache_bytes(2.0, 100.0)) < math.inf
