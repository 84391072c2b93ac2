"""What is loaded when, and in which direction rooms import each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOADED = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
{body}
names = {{name.partition('.')[0] for name in sys.modules}} | {{name for name in sys.modules if name.startswith('scipy.')}}
print(json.dumps({{"modules": sorted(names), "printed": len(out.getvalue())}}))
"""
PLAN = [
    "plan",
    *("--hardware", "a100-sxm-80gb"),
    *("--target", "llama-2-7b"),
    *("--drafter", "independent:tinyllama-1.1b-v1.0"),
    *("--acceptance", "0.8"),
    *("--context", "1024"),
]


def loaded(*lines):
    """Modules that a fresh interpreter holds after running `lines`, from a folder that is not the checkout."""
    import json

    script = LOADED.format(body="\n".join(f"    {line}" for line in lines))
    result = subprocess.run(  # noqa: S603 - this interpreter and a script of this file
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(sys.prefix)
    )
    return json.loads(result.stdout)


def command(*arguments):
    return loaded("from rooflines.cli import main", f"main({list(arguments)!r})")


HEAVY = {"pandas", "matplotlib", "scipy", "torch", "transformers", "gguf"}


def test_importing_the_package_loads_nothing_heavy():
    modules = set(loaded("import rooflines")["modules"])
    assert "rooflines" in modules
    assert not modules & (HEAVY | {"numpy", "pydantic", "rich"})


def test_importing_what_the_package_exports_loads_nothing_heavy():
    found = loaded("import rooflines", "[getattr(rooflines, name) for name in rooflines.__all__]")
    assert not set(found["modules"]) & HEAVY


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_loads_no_arithmetic(arguments):
    found = command(*arguments)
    assert found["printed"] > 10
    assert not set(found["modules"]) & (HEAVY | {"numpy", "pydantic", "rich"})


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_a_plan_loads_no_scipy_and_no_pandas(fmt):
    found = command(*PLAN, "--format", fmt)
    assert found["printed"] > 500
    assert "numpy" in found["modules"]
    assert not set(found["modules"]) & HEAVY


def test_the_speedup_command_loads_no_profiles_and_models():
    found = command("speedup", "--acceptance", "0.8", "--draft-length", "4", "--cost-ratio", "0.05")
    assert found["printed"] > 100
    assert not set(found["modules"]) & HEAVY


def test_rooms_import_in_one_direction():
    """The contract of pyproject.toml: facts -> costs -> seconds -> cycle -> answer."""
    linter = Path(sys.executable).parent / "lint-imports"
    if not linter.exists():
        pytest.skip("import-linter is not installed beside this interpreter (extra [dev])")
    result = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 - the linter beside this interpreter
    assert result.returncode == 0, result.stdout
