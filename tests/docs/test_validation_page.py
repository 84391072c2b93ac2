"""The page on validation lists the columns that the reader asks for."""

from __future__ import annotations

import re

from rooflines.timing.intervals import few_shapes_factor
from rooflines.timing.uncertain import OTHER_ENGINE_LOG_SD, OTHER_ENGINE_NARROW_LOG_SD, OTHER_LIBRARIES_LOG_SD
from rooflines.validation.kernel_tables.read import KINDS


def test_every_kind_of_table_is_listed_with_its_columns(root):
    text = (root / "docs" / "validation.md").read_text(encoding="utf-8")
    listed = [
        (cells[0], set(re.findall(r"\w+", cells[1])))
        for line in text.splitlines()
        if line.startswith("| ") and len(cells := [cell.strip() for cell in line.strip("| ").split("|")]) == 3
    ]
    for kind in KINDS:
        needed = set(kind.columns) - ({kind.time} if kind.name == "layer operators" else set())
        assert any(name == kind.name and needed <= columns for name, columns in listed), kind.name


def test_numbers_on_the_page_are_those_of_the_code(root):
    text = (root / "docs" / "validation.md").read_text(encoding="utf-8")
    for value in (*OTHER_ENGINE_LOG_SD.values(), OTHER_ENGINE_NARROW_LOG_SD, OTHER_LIBRARIES_LOG_SD):
        assert f"{value:.2f}" in text
    assert few_shapes_factor(7) > 1.2


def test_links_lead_somewhere(root):
    page = root / "docs" / "validation.md"
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert links
    assert all((page.parent / link).exists() for link in links)
