"""Which modules of a checkpoint are stored in which number format.

`read_quantization` turns the `quantization_config` of a config.json (or a ModelOpt hf_quant_config.json) into
a `Quantization`, which answers for one module at a time.
"""

from __future__ import annotations

from rooflines.models.quantization.core import Quantization, Rule
from rooflines.models.quantization.patterns import Patterns
from rooflines.models.quantization.read import read_quantization

__all__ = ["Patterns", "Quantization", "Rule", "read_quantization"]
