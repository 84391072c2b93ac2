"""The rules that the code keeps about itself."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "rooflines"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").glob("*.py"))]
MOST_LINES = 500
LONGEST_FUNCTION = 60
# A reason is more than the code of the rule: words after a dash or a comment of its own.
IGNORE = re.compile(r"#\s*(?:noqa(?::\s*[A-Z0-9, ]+)?|type:\s*ignore(?:\[[\w, -]+\])?)(?P<rest>.*)")


def name_of(path):
    return str(path.relative_to(ROOT))


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path):
    return [
        node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def undocumented(path):
    """Public definitions of a module, and of its public classes, that have no docstring."""
    tree = tree_of(path)
    found = [] if ast.get_docstring(tree) else ["the module itself"]
    scopes = [(tree, "")]
    while scopes:
        scope, prefix = scopes.pop()
        for node in scope.body:
            if not isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                found.append(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                scopes.append((node, f"{node.name}."))
    return found


def bare_ignores(path):
    """Lines whose `noqa` or `type: ignore` says no reason."""
    text = path.read_text(encoding="utf-8")
    bare = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
        if match and len(re.findall(r"[A-Za-z]{2,}", match["rest"])) < 1:
            bare.append(token.start[0])
    return bare


def test_there_is_something_to_check():
    assert len(MODULES) > 50


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_fits_in_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_a_function_fits_on_one_screen():
    long = {
        f"{name_of(path)}:{node.name}": node.end_lineno - node.lineno + 1
        for path in MODULES
        for node in functions(path)
        if node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION and not is_command(node)
    }
    assert not long


def is_command(node):
    """A command's options are its signature: one a line, each a parameter again."""
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(".option(" in name or "_option" in name or ".command(" in name for name in names)


def test_the_body_of_a_command_fits_on_one_screen():
    long = {
        f"{name_of(path)}:{node.name}": node.end_lineno - node.body[0].lineno + 1
        for path in MODULES
        for node in functions(path)
        if node.end_lineno - node.body[0].lineno + 1 > LONGEST_FUNCTION
    }
    assert not long


def test_what_is_public_is_documented():
    missing = {name_of(path): undocumented(path) for path in MODULES}
    assert not {path: names for path, names in missing.items() if names}


def test_every_ignore_gives_its_reason():
    bare = {name_of(path): bare_ignores(path) for path in SOURCES}
    assert not {path: lines for path, lines in bare.items() if lines}


def test_the_package_never_asserts():
    """An assert vanishes under -O and tells a user nothing: errors of the family do."""
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assert)
    ]
    assert not found


def test_annotations_are_never_evaluated():
    missing = [
        name_of(path)
        for path in MODULES
        if len(tree_of(path).body) > 1  # a docstring alone annotates nothing
        and "from __future__ import annotations" not in path.read_text(encoding="utf-8")
    ]
    assert not missing


def test_nothing_is_printed_past_the_command_line():
    calls = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not calls


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = 1  # noqa: E501\n", [1]),
        ("x = 1  # noqa: E501 - a table of numbers\n", []),
        ("x = 1  # type: ignore[arg-type]\n", [1]),
        ("x = 1  # type: ignore[arg-type]  # a literal\n", []),
        ("x = '# noqa: E501'\n", []),
    ],
)
def test_the_search_for_bare_ignores_finds_them(tmp_path, source, lines):
    file = tmp_path / "module.py"
    file.write_text(source, encoding="utf-8")
    assert bare_ignores(file) == lines


def test_the_search_for_undocumented_definitions_finds_them(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        '"""M."""\nclass A:\n    """A."""\n    def b(self): ...\n    def _c(self): ...\n', encoding="utf-8"
    )
    assert undocumented(file) == ["A.b"]
