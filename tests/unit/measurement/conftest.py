"""What tests of measuring share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A small real model as ``make smollm2`` leaves it; required where ROOFLINES_REQUIRE names it."""
    from rooflines.measurement.models import smollm2_folder

    folder = smollm2_folder()
    if not (folder / "config.json").is_file():
        reason = f"no model at {folder}: make smollm2"
        if "smollm2" in os.environ.get("ROOFLINES_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
