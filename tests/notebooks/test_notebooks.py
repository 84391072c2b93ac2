"""Notebooks run from top to bottom, and stop where a published number is not met."""

from __future__ import annotations

import ast
import csv
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from rooflines.measurement.files import write_measured as store
from rooflines.output.measured_report import write_measured

pytest.importorskip("marimo", reason="notebooks need the extra [explore]")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
EXPECTED = {
    "a_capacity_plan",
    "calibrating_this_machine",
    "choosing_a_draft_length",
    "decode_is_bandwidth_bound",
    "drafters_compared",
    "verifying_is_cheap_until_it_is_not",
    "why_prefill_is_fast",
}
# What a formula is made of; a cell may divide and scale numbers to compare or show them, and no more.
FORMULA = (ast.Pow, ast.MatMult)


def load(name, folder=FOLDER):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


@pytest.fixture(scope="module")
def ran():
    """Each notebook once: what its cells define."""
    return {name: load(name).run()[1] for name in NAMES}


def test_every_subject_has_its_notebook():
    assert set(NAMES) == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_it_states_published_numbers(name, ran):
    assert ran[name]["published"]
    assert all(value > 0 for value in ran[name]["published"].values())


@pytest.mark.parametrize("name", NAMES)
def test_a_published_number_that_is_not_met_stops_it(name, ran):
    published = ran[name]["published"]
    for key in list(published)[::3]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - marimo wraps what a cell raises
            load(name).run(defs={"published": {**published, key: published[key] * 1.6}})
        chain = (caught.value, caught.value.__cause__, caught.value.__context__)
        assert any(isinstance(one, AssertionError) for one in chain), (key, caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_it_cites_a_source_that_can_be_opened(name):
    assert re.search(r"<https://[^>]+>", (FOLDER / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_links_to_files_lead_somewhere(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert all((FOLDER / link).exists() for link in re.findall(r"\]\((\.\./[^)#]+)", text))
    assert all((FOLDER / link).exists() for link in re.findall(r"`(\w+\.py)`", text))


@pytest.mark.parametrize("name", NAMES)
def test_it_has_prose_and_calls_but_no_formulas(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    assert not [
        node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, FORMULA)
    ]
    assert (
        sum(isinstance(node, ast.Call) and ast.unparse(node.func) == "mo.md" for node in ast.walk(tree)) >= 4
    )


def test_it_judges_speculation_as_the_stored_report_does(ran):
    defined = ran["calibrating_this_machine"]
    verdicts = defined["columns"]["verdict"]
    assert len(verdicts) >= 2
    if defined["measured_here"]:
        lines = (defined["folder"] / "speculation-check.csv").read_text(encoding="utf-8").splitlines()
        assert list(verdicts) == [row["verdict"] for row in csv.DictReader(lines)]
    else:  # the recorded run, which docs/example-project holds to agree
        assert set(verdicts) == {"agree"}


def test_what_is_measured_here_goes_before_the_recorded_run(ran, simulator, root, tmp_path):
    here = (root / "reports/measurements/decode-calibration.toml").is_file()
    assert ran["calibrating_this_machine"]["measured_here"] == here
    folder = tmp_path / "reports" / "measurements"
    folder.mkdir(parents=True)
    (folder / "machine.toml").write_text(simulator.PROFILE, encoding="utf-8")
    store(simulator.decode_file(root, seed=11), folder / "decode.json")
    store(simulator.speculation_file(root, 1), folder / "speculation.json")
    write_measured(folder)
    copied = tmp_path / "notebooks" / "calibrating_this_machine.py"
    copied.parent.mkdir()
    shutil.copy(FOLDER / copied.name, copied)
    defined = load(copied.stem, copied.parent).run()[1]
    assert defined["folder"] == folder
    assert isinstance(defined["shown"], Figure)
    assert defined["profile"].id == "measured-simulated-1t"
    assert defined["report"].verdict == "agree"


@pytest.fixture(scope="module")
def exporter():
    spec = importlib.util.spec_from_file_location("export_pages", FOLDER / "tools" / "export_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_exported_pages_load_nothing(exporter, tmp_path):
    exporter.main([str(tmp_path), str(FOLDER / "choosing_a_draft_length.py")])
    (page,) = tmp_path.iterdir()
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*>|url\(\s*['\"]?https?:|@import", text)
    assert loaded == []
    assert "<h1" in text
    assert text.count("<svg") == 1
    assert text.count("<table") == 3
    assert "study = study_speedup(" in text  # calls are shown
    assert "import marimo as mo" not in text  # what a notebook hides is not


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_found_with_its_code(exporter, name):
    codes = exporter.cells((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    assert len(codes) == sum(1 for _ in load(name)._cell_manager.cells())
    for code in filter(None, codes):
        ast.parse(code)


def test_what_needs_a_frame_is_not_exported(exporter):
    import marimo

    with pytest.raises(TypeError, match=r"cell 3 shows <marimo-ui-element>, which needs marimo's frame"):
        exporter.shown(marimo.ui.slider(0, 1), 3)
    assert exporter.shown("1 < 2", 1) == "<p>1 &lt; 2</p>"
    assert exporter.shown(None, 1) == ""


def test_one_runs_as_a_script_from_anywhere(tmp_path):
    command = [sys.executable, "-W", "error", str(FOLDER / "choosing_a_draft_length.py")]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - our own interpreter on our own file
    assert result.returncode == 0, result.stderr
