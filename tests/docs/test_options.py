"""Options that README and docs name are those of the command line."""

from __future__ import annotations

import re

import pytest

# Options of other programs, by the page that names them.
FOREIGN = {
    "CONTRIBUTING.md": {"--check"},
    "docs/capacity.md": {"--enable-mixed-chunk", "--scheduler-recv-interval"},
    "docs/drafters.md": {"--speculative-num-draft-tokens"},
    "docs/explorer.md": {"--no-install-recommends", "--prefix", "--yes"},
    "docs/published.md": {"--parallel"},
}
# A page about other programs.
OTHER_PROGRAMS = "docs/engines.md"
OPTION = r"(?<![\w-])--[a-z][a-z0-9-]*"


@pytest.fixture(scope="module")
def pages(root):
    files = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
    return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def test_every_option_exists(pages, command_options):
    ours = set().union(*command_options.values(), {"--version"})
    named = {page: set(re.findall(OPTION, text)) for page, text in pages.items() if page != OTHER_PROGRAMS}
    assert sum(map(len, named.values())) > 100
    unknown = {page: names - ours for page, names in named.items() if names - ours}
    assert unknown == FOREIGN


def test_every_command_has_the_options_that_follow_it(pages, command_options):
    followed = 0
    for page, text in pages.items():
        for words, rest in re.findall(
            r"rooflines ((?:[a-z]+ ?){1,2})([^\n`]*)", re.sub(r"\\\n\s*", " ", text)
        ):
            called = tuple(words.split())
            options = command_options.get(called) or command_options.get(called[:1])
            named = set(re.findall(OPTION, rest))
            if options is not None and named:
                assert named <= options, (page, words, named - options)
                followed += 1
    assert followed > 30
