"""Guides, additions, limits, theory and figures: what they show runs, and their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
from click.testing import CliRunner

from rooflines.cli import COMMANDS, main
from rooflines.speculation.acceptance_presets import list_acceptance_presets
from rooflines.studies.plan import NOT_MODELED

PAGES = ("extending", "figures", "guides", "limits", "theory")
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def text_of(root, page):
    return (root / "docs" / f"{page}.md").read_text(encoding="utf-8")


def commands(text):
    """Command lines that a page shows, without their prompt."""
    joined = "\n".join(CONSOLE.findall(text)).replace("\\\n", " ")
    return [line.strip().removeprefix("$ ") for line in joined.splitlines() if line.strip().startswith("$ ")]


def anchors(text):
    """Where a page can be entered, as GitHub derives it from headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ["extending", "figures"])
def test_python_runs_from_an_empty_folder(page, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(text_of(root, page))
    assert blocks
    for index, block in enumerate(blocks):
        code = compile(block, f"{page}.md, block {index}", "exec", dont_inherit=True)
        exec(code, {"__name__": "__main__"})  # noqa: S102 - our own document


def test_adding_shows_all_three(root):
    blocks = "".join(BLOCK.findall(text_of(root, "extending")))
    assert all(name in blocks for name in ("make_machine", "read_model", "cycle_times"))
    assert blocks.count("assert ") >= 4


def test_commands_of_the_guides_run(root, monkeypatch):
    monkeypatch.chdir(root)
    shown = commands(text_of(root, "guides"))
    assert len(shown) >= 4
    for line in shown:
        program, *words = shlex.split(line)
        assert program == "rooflines"
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, (line, result.output)
        assert len(result.output.splitlines()) > 5


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page, root):
    text = text_of(root, page)
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", text)
    assert links or page == "figures"
    for link in links:
        name, _, anchor = link.partition("#")
        target = root / "docs" / (name or f"{page}.md")
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES)
def test_files_and_commands_that_are_named_exist(page, root):
    text = text_of(root, page)
    files = re.findall(r"`((?:rooflines|tests|notebooks|hardware_profiles)/[\w./-]+)`", text)
    assert all((root / name).exists() for name in files), files
    assert set(re.findall(r"`rooflines ([a-z]+)", text)) <= set(COMMANDS)
    presets = {preset.name for preset in list_acceptance_presets()}
    assert set(re.findall(r"preset:([a-z0-9.-]+)", text)) <= presets


def test_every_notebook_has_its_question(root):
    text = text_of(root, "guides")
    names = {path.name for path in (root / "notebooks").glob("*.py")}
    assert names
    assert set(re.findall(r"\(\.\./notebooks/(\w+\.py)\)", text)) == names


def test_limits_repeat_what_a_plan_says(root):
    text = text_of(root, "limits")
    assert all(line in text for line in NOT_MODELED)


def test_changes_move_the_answer_of_the_limits_where_they_should(root):
    table = {
        cells[0]: [float(cell) for cell in cells[1:]]
        for line in text_of(root, "limits").splitlines()
        if line.startswith("| ")
        and len(cells := [cell.strip() for cell in line.strip("| ").split(" | ")]) == 4
        if re.fullmatch(r"[\d.]+", cells[1])
    }
    asked, host = table["as it stands"], table["host: 3 ms a cycle, as SGLang without overlap"]
    assert len(table) == 10
    assert host[0] == asked[0]  # a plain step pays nothing of it
    assert host[1] < 0.8 * asked[1]
    assert table["the bare datasheet"][0] < 0.75 * asked[0]
    assert abs(table["the bare datasheet"][1] / asked[1] - 1.0) < 0.1  # a ratio, which constants hardly move


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_answers(shell, root):
    assert f"_ROOFLINES_COMPLETE={shell}_source" in text_of(root, "guides")
    program = shutil.which("rooflines", path=str(root / ".venv" / "bin")) or shutil.which("rooflines")
    if program is None:
        pytest.skip("rooflines is not installed as a program")
    variables = {
        "_ROOFLINES_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "rooflines cap",
        "COMP_CWORD": "1" if shell != "fish" else "cap",
        "PATH": "/usr/bin:/bin",
    }
    result = subprocess.run([program], env=variables, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603 - our own program
    assert "capacity" in result.stdout
    assert "plan" not in result.stdout


def test_pages_install_extras_that_exist_and_notebooks_the_one_that_they_import(root):
    with (root / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    pages = {page.name: page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md")}
    named = {name: set(re.findall(r"pip install '\.\[(\w+)\]'", text)) for name, text in pages.items()}
    assert set().union(*named.values()) <= set(extras)
    (extra,) = named["guides.md"]
    assert "marimo" in {re.split(r"[<>=\[]", requirement)[0] for requirement in extras[extra]}
    for notebook in (root / "notebooks").glob("*.py"):
        assert notebook.read_text(encoding="utf-8").startswith("import marimo\n")
