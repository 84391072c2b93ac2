"""What tests of fits and checks share."""

from __future__ import annotations

import pytest

from rooflines.hardware.catalogue import load_hardware


@pytest.fixture(scope="session")
def profile(simulator, tmp_path_factory):
    """The simulated machine, as its probe would have measured it."""
    file = tmp_path_factory.mktemp("profile") / "measured-simulated-1t.toml"
    file.write_text(simulator.PROFILE, encoding="utf-8")
    return load_hardware(file)
