from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rooflines


def test_every_public_name_is_there_and_nothing_else():
    assert sorted(rooflines._HOMES) == rooflines.__all__
    for name in rooflines.__all__:
        assert getattr(rooflines, name).__name__ == name


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(rooflines.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: line.module for line in block.body for alias in line.names}
    assert seen == rooflines._HOMES


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'speedups'"):
        _ = rooflines.speedups
