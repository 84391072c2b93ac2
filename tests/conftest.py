"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Reference tables outside the project; tests that need them skip where they are not."""
    folder = Path(os.environ.get("ROOFLINES_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder} (set ROOFLINES_DATA)")
    return folder
