"""What an installed wheel holds: profiles, presets and the mark of its types."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    builder = pytest.importorskip(
        "hatchling.builders.wheel", reason="hatchling is not installed (extra [dev])"
    )
    folder = tmp_path_factory.mktemp("dist")
    (path,) = builder.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.mark.slow
def test_a_wheel_holds_every_profile_preset_and_module(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    profiles = {
        f"rooflines/hardware_profiles/{file.name}" for file in (ROOT / "hardware_profiles").glob("*.toml")
    }
    presets = {str(file.relative_to(ROOT)) for file in (ROOT / "rooflines").rglob("*.json")}
    modules = {str(file.relative_to(ROOT)) for file in (ROOT / "rooflines").rglob("*.py")}
    assert len(profiles) >= 75
    assert len(presets) >= 25
    assert "rooflines/py.typed" in held
    assert profiles | presets | modules <= held
    assert not {name for name in held if name.startswith(("tests", "docs", "benchmarks"))}


@pytest.mark.slow
def test_a_wheel_answers_from_its_own_facts(wheel, tmp_path):
    """Unpacked into a folder that comes first on the path, far from the checkout."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import rooflines;"
        "from rooflines.hardware import list_hardware; from rooflines.hardware.catalogue import data_folder;"
        "from rooflines.models.catalogue import list_presets;"
        "print(rooflines.__file__); print(data_folder()); print(len(list_hardware()), len(list_presets()))"
    )
    result = subprocess.run(  # noqa: S603 - this interpreter and a script of this file
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    module, folder, counts = result.stdout.splitlines()
    assert module.startswith(str(tmp_path))
    assert folder.startswith(str(tmp_path))
    devices, presets = map(int, counts.split())
    assert devices >= 75
    assert presets >= 25
