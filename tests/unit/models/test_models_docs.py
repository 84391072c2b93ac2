from __future__ import annotations

import re

import pytest

from rooflines.models import adapters, module_names, readers
from rooflines.models.adapters import dense


@pytest.fixture(scope="module")
def text(root):
    return (root / "docs" / "models.md").read_text(encoding="utf-8")


def test_every_python_block_runs(text):
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "docs/models.md", "exec"), {})  # noqa: S102 - the document is ours


def test_what_the_document_names_exists(text, root):
    for path in re.findall(r"`((?:rooflines|tests)/[\w/.]+)`", text):
        assert (root / path).exists(), path
    assert "SHAPE_KEYS" in text
    assert readers.SHAPE_KEYS
    assert "`DENSE`" in text
    assert dense.DENSE
    assert adapters.FAMILIES
    assert module_names.__doc__
