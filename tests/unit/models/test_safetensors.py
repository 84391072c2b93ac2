from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.errors import FileFormatError, RooflinesError
from rooflines.models.safetensors import INDEX_NAME, read_safetensors


def packed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(kind, shape, begin, end):
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


TWO = {
    "__metadata__": {"format": "pt"},
    "a.weight": entry("F8_E4M3", [4, 8], 0, 32),
    "a.weight_scale_inv": entry("F32", [1, 1], 32, 36),
    "b.weight": entry("BF16", [3, 2], 36, 48),
}


@pytest.fixture
def write(tmp_path):
    def _write(content, name="model.safetensors"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return _write


def test_names_shapes_and_bytes(write):
    found = read_safetensors(write(packed(TWO, bytes(48))))
    assert [(t.name, t.kind, t.shape, t.size_bytes) for t in found.tensors] == [
        ("a.weight", "F8_E4M3", (4, 8), 32),
        ("a.weight_scale_inv", "F32", (1, 1), 4),
        ("b.weight", "BF16", (3, 2), 12),
    ]
    assert found.size_bytes == 48
    assert found.elements == 32 + 1 + 6
    assert found.module_bytes() == {"a": 36, "b": 12}
    assert found.count_by_kind() == {"F8_E4M3": 1, "F32": 1, "BF16": 1}


def test_against_the_safetensors_package(tmp_path):
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    tensors = {
        "x.weight": torch.zeros(5, 7, dtype=torch.bfloat16),
        "x.scale": torch.zeros((), dtype=torch.float32),
        "y": torch.zeros(3, 0, 4, dtype=torch.int64),
        "z": torch.zeros(16, dtype=torch.float8_e4m3fn),
        "flags": torch.zeros(3, dtype=torch.bool),
    }
    path = tmp_path / "model.safetensors"
    package.save_file(tensors, path, metadata={"format": "pt"})
    found = {tensor.name: tensor for tensor in read_safetensors(path).tensors}
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].shape == tuple(tensor.shape)
        assert found[name].size_bytes == tensor.numel() * tensor.element_size()


def test_half_bytes_round_up(write):
    header = {"a": entry("F4", [3, 3], 0, 5)}
    assert read_safetensors(write(packed(header, bytes(5)))).size_bytes == 5


def shards(tmp_path, weight_map, files):
    for name, (header, data) in files.items():
        (tmp_path / name).write_bytes(packed(header, data))
    (tmp_path / INDEX_NAME).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return tmp_path


ONE, OTHER = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
FILES = {
    ONE: ({"a": entry("F32", [2], 0, 8)}, bytes(8)),
    OTHER: ({"b": entry("F16", [2], 0, 4), "c": entry("U8", [1], 4, 5)}, bytes(5)),
}
MAP = {"a": ONE, "b": OTHER, "c": OTHER}


def test_shards_add_up(tmp_path):
    folder = shards(tmp_path, MAP, FILES)
    assert read_safetensors(folder).size_bytes == 13
    assert read_safetensors(folder / INDEX_NAME) == read_safetensors(folder)
    assert [tensor.name for tensor in read_safetensors(folder).tensors] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({**MAP, "d": OTHER}, "tensor 'd' is missing"),
        ({"a": ONE, "b": OTHER}, "holds 'c', which"),
        ({**MAP, "a": "absent.safetensors"}, "No such file"),
        ({**MAP, "a": "../model.safetensors"}, "must be a file name"),
        ({**MAP, "a": 3}, "must be a file name"),
        ({}, "no weight_map"),
        (None, "no weight_map"),
        (["a"], "no weight_map"),
    ],
)
def test_an_index_that_contradicts_its_shards_is_refused(tmp_path, weight_map, message):
    with pytest.raises(FileFormatError, match=message):
        read_safetensors(shards(tmp_path, weight_map, FILES))


def test_folders(tmp_path, write):
    with pytest.raises(FileFormatError, match=r"no \.safetensors file"):
        read_safetensors(tmp_path)
    write(packed(TWO, bytes(48)), "some.safetensors")
    assert read_safetensors(tmp_path).size_bytes == 48
    write(packed(TWO, bytes(48)), "other.safetensors")
    with pytest.raises(FileFormatError, match=r"2 \.safetensors files without"):
        read_safetensors(tmp_path)
    write(packed({"a": entry("U8", [7], 0, 7)}, bytes(7)))
    assert read_safetensors(tmp_path).size_bytes == 7


def test_no_such_file_is_one_line(tmp_path):
    with pytest.raises(FileFormatError, match="No such file"):
        read_safetensors(tmp_path / "absent.safetensors")
    with pytest.raises(FileFormatError, match="No such file"):
        read_safetensors(tmp_path / INDEX_NAME)


A = {"a": entry("U8", [4], 0, 4)}
CORRUPT = [
    (b"", "0 bytes are no safetensors file"),
    (b"\x01\x02", "2 bytes are no safetensors file"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    (struct.pack("<Q", 10**12) + b"{}", "its header would take 1000000000000 bytes"),
    (struct.pack("<Q", 99_999_999) + b"{}", "truncated"),
    (packed(TWO, bytes(47)), "ends 1 bytes after the file: it is truncated"),
    (packed(TWO, bytes(50)), "2 bytes after the last tensor belong to none"),
    (packed(b"{]"), "no valid JSON"),
    (packed(b"\xff\xfe"), "no valid JSON"),
    (packed(b"[" * 100_000), "no valid JSON"),
    (packed(b'{"a": ' + b"9" * 5000 + b"}"), "no valid JSON"),
    (packed(b"[]"), "no JSON object"),
    (packed(b'{"a": 1, "a": 2}'), "occurs twice"),
    (packed({"a": 3}), "tensor 'a': 3 is no object"),
    (packed({"a": entry("F12", [4], 0, 4)}, bytes(4)), "unknown dtype 'F12'"),
    (packed({"a": entry(None, [4], 0, 4)}, bytes(4)), "unknown dtype None"),
    (packed({"a": entry("U8", [-4], 0, 4)}, bytes(4)), "shape [-4]"),
    (packed({"a": entry("U8", [4.0], 0, 4)}, bytes(4)), "shape [4.0]"),
    (packed({"a": entry("U8", [True], 0, 1)}, bytes(1)), "shape [True]"),
    (packed({"a": entry("U8", 4, 0, 4)}, bytes(4)), "shape 4"),
    (packed({"a": entry("U8", [10**40], 0, 4)}, bytes(4)), "is no list of whole numbers"),
    (packed({"a": entry("U8", [2**62] * 1000, 0, 4)}, bytes(4)), "is no list of whole numbers"),
    (packed({"a": entry("U8", [2**62] * 3, 0, 4)}, bytes(4)), "needs"),
    (packed({"a": entry("U8", [5], 0, 4)}, bytes(4)), "4 bytes, but U8 of shape [5] needs 5"),
    (packed({"a": entry("U8", [4], 4, 0)}, bytes(4)), "no pair [begin, end]"),
    (packed({"a": {"dtype": "U8", "shape": [4]}}, bytes(4)), "data_offsets None"),
    (packed({**A, "b": entry("U8", [4], 2, 6)}, bytes(6)), "tensors 'a' and 'b' overlap"),
    (packed({**A, "b": entry("U8", [4], 0, 4)}, bytes(4)), "overlap"),
    (packed({**A, "b": entry("U8", [4], 5, 9)}, bytes(9)), "1 bytes before tensor 'b' belong to none"),
]


@pytest.mark.parametrize(("content", "message"), CORRUPT, ids=[message for _, message in CORRUPT])
def test_corrupt_files_are_refused_in_one_line_that_names_the_file(write, content, message):
    path = write(content)
    with pytest.raises(FileFormatError) as refused:
        read_safetensors(path)
    text = str(refused.value)
    assert message in text
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < len(str(path)) + 400


@settings(max_examples=300, deadline=None)
@given(where=st.integers(0, 400), value=st.integers(0, 255), length=st.integers(0, 400))
def test_any_damage_is_read_or_refused_never_a_traceback(tmp_path_factory, where, value, length):
    content = bytearray(packed(TWO, bytes(48)))
    content[where % len(content)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(bytes(content[: max(length, 1)]) if length % 2 else bytes(content))
    try:
        found = read_safetensors(path)
    except RooflinesError:
        return
    # What is still read accounts for every byte after the header.
    assert found.size_bytes == path.stat().st_size - 8 - int.from_bytes(content[:8], "little")
