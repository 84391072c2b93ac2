from __future__ import annotations

import json

import pytest

from rooflines.cli.options import emit, parse_integers, read_document
from rooflines.errors import FileFormatError, InputError
from rooflines.output.tables import document_text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4", (4,)),
        ("1..8", (1, 2, 3, 4, 5, 6, 7, 8)),
        ("1,8,64", (1, 8, 64)),
        ("64, 1..3,2", (1, 2, 3, 64)),
        ("0..0", (0,)),
        ("007", (7,)),
    ],
)
def test_numbers_lists_and_ranges(text, values):
    assert parse_integers(text, "batch", 0) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not understood"),
        ("a", "not understood"),
        ("1..", "not understood"),
        ("1.5", "not understood"),
        ("1,,2", "not understood"),
        ("1...3", "not understood"),
        ("1e3", "not understood"),
        ("nan", "not understood"),
        ("9" * 5000, "not understood"),
        ("8..1", "must rise"),
        ("1..20000", "must rise, by 10000 at most"),
        ("0", "batch is 0: it must be 1 or more"),
        ("-3..4", "batch is -3"),
    ],
)
def test_what_is_no_list_of_numbers_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_integers(text, "batch", 1)


def test_json_has_no_nan():
    with pytest.raises(ValueError, match="JSON compliant"):
        document_text({"x": float("nan")})


def test_json_keeps_letters_beyond_ascii():
    assert json.loads(document_text({"x": "\u00b5s"})) == {"x": "\u00b5s"}
    assert "\u00b5" in document_text({"x": "\u00b5s"})


def test_emit_writes_a_file_that_ends_in_a_newline(tmp_path):
    emit("one\ntwo", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "one\ntwo\n"


def test_emit_prints(capsys):
    emit("one", None)
    assert capsys.readouterr().out == "one\n"


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(InputError, match=r"cannot write .*No such file or directory"):
        emit("x", tmp_path / "missing" / "out.txt")
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00\x01", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"3", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
    ],
    ids=["empty", "broken", "binary", "list", "number", "deep"],
)
def test_what_is_no_document_is_refused_by_name(tmp_path, content, message):
    file = tmp_path / "old.json"
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"the earlier answer .*old.json.*{message}"):
        read_document(file, "the earlier answer")


def test_a_missing_document_and_a_folder_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="No such file"):
        read_document(tmp_path / "old.json", "the earlier answer")
    with pytest.raises(FileFormatError, match="Is a directory"):
        read_document(tmp_path, "the earlier answer")
