"""What oracles share."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest


@pytest.fixture(scope="session")
def pinned_transformers(root):
    """Counts of transformers depend on its version, so pyproject.toml pins one; others skip."""
    found = version("transformers")
    (pinned,) = re.findall(r"transformers==([\d.]+)", (root / "pyproject.toml").read_text(encoding="utf-8"))
    if found != pinned:
        pytest.skip(f"transformers {found} is not the pinned oracle {pinned}")
