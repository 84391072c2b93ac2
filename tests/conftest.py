"""Fixtures that every test may use."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

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


@pytest.fixture(scope="session")
def simulator() -> ModuleType:
    """A physical machine that writes files of measurements (tests/reference/simulator.py)."""
    spec = importlib.util.spec_from_file_location("simulator", ROOT / "tests" / "reference" / "simulator.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulator"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
