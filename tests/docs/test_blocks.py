from __future__ import annotations

import re

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_python_of_the_readme_runs(root, capsys):
    blocks = BLOCK.findall((root / "README.md").read_text(encoding="utf-8"))
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own document
    assert "At batch 1 draft" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/theory.md", "docs/acceptance.md"])
def test_links_to_files_lead_somewhere(page, root):
    file = root / page
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", file.read_text(encoding="utf-8"))
    missing = [link for link in links if not (file.parent / link).exists()]
    assert not missing


def test_every_document_is_linked_from_the_readme(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    pages = {f"docs/{page.name}" for page in (root / "docs").glob("*.md")}
    assert {page for page in pages if f"({page})" not in text} == set()
