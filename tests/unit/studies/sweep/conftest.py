"""Grids that tests of sweeps share."""

from __future__ import annotations

from types import MappingProxyType

import pytest

SMALL = {
    "hardware": ["h100-sxm5-80gb", "a100-sxm4-80gb"],
    "target": ["llama-3.1-8b"],
    "drafter": ["independent:llama-3.2-1b", "ngram:depth=3"],
    "tensor_parallel": [1, 3],
    "weight_dtype": ["checkpoint", "fp8"],
    "batch": [1, 64],
    "context": [0, 30_000],
    "draft_length": {"first": 0, "last": 3, "step": 1},
    "acceptance": {"independent": [0.6, 0.8], "ngram:depth=3": [0.5, "conditional:0.7,0.6,0.5"]},
    "rows_per_part": 5,
}


@pytest.fixture(scope="session")
def small():
    """A grid of two devices, two drafters and combinations that cannot be, as read from TOML."""
    return MappingProxyType(SMALL)
