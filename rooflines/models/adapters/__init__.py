"""One small function a family: from a view of its config to a `ModelSpec`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from rooflines.models.adapters.dense import DENSE, read_dense
from rooflines.models.adapters.experts import EXPERTS
from rooflines.models.adapters.experts_by_layer import EXPERTS_BY_LAYER
from rooflines.models.adapters.gemma import GEMMA
from rooflines.models.adapters.gpt import GPT
from rooflines.models.adapters.hybrid import HYBRID
from rooflines.models.adapters.latent import LATENT
from rooflines.models.adapters.nas import NAS
from rooflines.models.adapters.t5 import T5, T5_SIGNATURE
from rooflines.models.config_view import ConfigView
from rooflines.models.spec import ModelSpec

Adapter = Callable[[ConfigView], ModelSpec]

FAMILIES: Final[dict[str, Adapter]] = {
    **{family: partial(read_dense, facts=facts) for family, facts in DENSE.items()},
    **GPT,
    **GEMMA,
    **EXPERTS,
    **EXPERTS_BY_LAYER,
    **LATENT,
    **HYBRID,
    **NAS,
    **T5,
}
# Families that are told by their keys where neither `model_type` nor `architectures` is given.
SIGNATURES: Final = {"t5": T5_SIGNATURE}
