from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.errors import FileFormatError, RooflinesError
from rooflines.models.gguf import TENSOR_TYPES, Strings, read_gguf

U32, F32_VALUE, BOOL, STRING, ARRAY, U64 = 4, 6, 7, 8, 9, 10


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def u32(key, value):
    return pair(key, U32, struct.pack("<I", value))


def tensor(name, axes, kind, offset):
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, offset)


def gguf(pairs=(), tensors=(), data=b"", *, version=3, magic=b"GGUF", counts=None, alignment=32):
    count = counts or (len(tensors), len(pairs))
    head = magic + struct.pack("<IQQ", version, *count) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


Q4_0, F32 = 2, 0
PAIRS = [
    pair("general.architecture", STRING, text("llama")),
    u32("llama.block_count", 1),
    pair("llama.rope.freq_base", F32_VALUE, struct.pack("<f", 0.5)),
    pair("tokenizer.add", BOOL, b"\x01"),
    pair("heads", ARRAY, struct.pack("<IQ3I", U32, 3, 8, 0, 4)),
    pair("tokens", ARRAY, struct.pack("<IQ", STRING, 2) + text("ab") + text("")),
]
# 64 inputs, 3 outputs of Q4_0: 2 blocks of 18 bytes a row; F32 vector of 64 after the padding to 32.
TENSORS = [tensor("a.weight", (64, 3), Q4_0, 0), tensor("b.weight", (64,), F32, 128)]
DATA = bytes(128 + 256)


@pytest.fixture
def write(tmp_path):
    def _write(content, name="model.gguf"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return _write


def test_metadata_and_tensors(write):
    found = read_gguf(write(gguf(PAIRS, TENSORS, DATA)))
    assert found.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 1,
        "llama.rope.freq_base": 0.5,
        "tokenizer.add": True,
        "heads": (8, 0, 4),
        "tokens": Strings(2),
    }
    assert [(t.name, t.kind, t.shape, t.size_bytes) for t in found.stored.tensors] == [
        ("a.weight", "Q4_0", (3, 64), 3 * 2 * 18),
        ("b.weight", "F32", (64,), 256),
    ]
    assert found.stored.elements == 192 + 64


def test_version_2_and_another_alignment(write):
    pairs = [*PAIRS, u32("general.alignment", 64)]
    content = gguf(pairs, TENSORS, DATA, version=2, alignment=64)
    assert read_gguf(write(content)).stored.size_bytes == 108 + 256


def test_type_numbers_and_sizes_equal_the_gguf_package():
    constants = pytest.importorskip("gguf.constants")
    assert {kind.value: kind.name for kind in constants.GGMLQuantizationType} == TENSOR_TYPES


def test_every_type_has_the_size_that_the_gguf_package_gives_it(write):
    constants = pytest.importorskip("gguf.constants")
    for kind in constants.GGMLQuantizationType:
        elements, size_bytes = constants.GGML_QUANT_SIZES[kind]
        content = gguf([], [tensor("t", (2 * elements, 5), kind.value, 0)], bytes(10 * size_bytes))
        assert read_gguf(write(content)).stored.size_bytes == 10 * size_bytes, kind.name


def test_against_the_gguf_package(tmp_path):
    package = pytest.importorskip("gguf")
    path = tmp_path / "written.gguf"
    writer = package.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_head_count_kv([4, 2])
    writer.add_token_list(["a", "b", "c"])
    writer.add_tensor("x.weight", np.zeros((5, 32), dtype=np.float32))
    writer.add_tensor("y.weight", np.zeros((5, 64), dtype=np.float16))
    quantised = package.quants.quantize(np.ones((4, 64), dtype=np.float32), package.GGMLQuantizationType.Q8_0)
    writer.add_tensor("z.weight", quantised, raw_dtype=package.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ours, theirs = read_gguf(path), package.GGUFReader(path)
    assert [(t.name, t.kind, t.size_bytes) for t in ours.stored.tensors] == [
        (t.name, t.tensor_type.name, int(t.n_bytes)) for t in theirs.tensors
    ]
    assert [t.shape for t in ours.stored.tensors] == [(5, 32), (5, 64), (4, 64)]
    assert ours.metadata["llama.attention.head_count_kv"] == (4, 2)
    assert ours.metadata["tokenizer.ggml.tokens"] == Strings(3)


def part(number, count, name):
    pairs = [
        pair("split.no", 2, struct.pack("<H", number)),
        pair("split.count", 2, struct.pack("<H", count)),
    ]
    return gguf([*pairs, *(PAIRS if number == 0 else [])], [tensor(name, (8,), F32, 0)], bytes(32))


def test_parts_add_up_whichever_is_named(write):
    write(part(0, 2, "a"), "m-00001-of-00002.gguf")
    second = write(part(1, 2, "b"), "m-00002-of-00002.gguf")
    found = read_gguf(second)
    assert [tensor.name for tensor in found.stored.tensors] == ["a", "b"]
    assert found.metadata["general.architecture"] == "llama"


def test_missing_or_misnamed_parts_are_refused(write):
    first = write(part(0, 2, "a"), "m-00001-of-00002.gguf")
    with pytest.raises(FileFormatError, match=r"m-00002-of-00002\.gguf: No such file"):
        read_gguf(first)
    with pytest.raises(FileFormatError, match="rename it"):
        read_gguf(write(part(0, 2, "a"), "m.gguf"))
    write(part(1, 2, "a"), "m-00002-of-00002.gguf")
    with pytest.raises(FileFormatError, match="occurs in two parts"):
        read_gguf(first)


GOOD = gguf(PAIRS, TENSORS, DATA)
BAD = [
    (b"", "the file is empty"),
    (b"GG", "no GGUF file"),
    (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    (gguf(magic=b"GGML"), "begins with b'GGML'"),
    (gguf(version=1), "GGUF version 1 is not read"),
    (gguf(version=99), "GGUF version 99 is not read"),
    (gguf(version=3 << 24), "big-endian"),
    (GOOD[:20], "the header ends after the file"),
    (GOOD[:60], "ends after the file"),
    (GOOD[:-1], "tensor 'b.weight' ends 1 bytes after the file: it is truncated"),
    (gguf(PAIRS, TENSORS, b""), "truncated"),
    (gguf([], [], counts=(2**60, 0)), "truncated or corrupt"),
    (gguf([], [], counts=(0, 2**60)), "truncated or corrupt"),
    (gguf([u32("a", 1), u32("a", 2)]), "'a' occurs twice"),
    (gguf([pair("a", 13, b"")]), "unknown type 13"),
    (gguf([pair("a", ARRAY, struct.pack("<IQ", ARRAY, 1))]), "array of the unknown type 9"),
    (gguf([pair("a", ARRAY, struct.pack("<IQ", U64, 2**61))]), "metadata 'a' ends after the file"),
    (gguf([pair("a", ARRAY, struct.pack("<IQ", STRING, 2**61))]), "metadata 'a' ends after the file"),
    (gguf([text(b"\xff\xff")]), "is no UTF-8"),
    (gguf([struct.pack("<Q", 2**40)]), "a metadata key of 1099511627776 bytes"),
    (gguf([u32("general.alignment", 0)]), "general.alignment is 0"),
    (gguf([u32("general.alignment", 12)]), "general.alignment is 12"),
    (gguf([pair("general.alignment", STRING, text("32"))]), "general.alignment is '32'"),
    (gguf([], [tensor("t", (32,), 99, 0)], bytes(128)), "type number 99, which is not known"),
    (gguf([], [tensor("t", (33, 2), Q4_0, 0)], bytes(128)), "no whole Q4_0 blocks of 32"),
    (gguf([], [tensor("t", (1,) * 5, F32, 0)], bytes(128)), "has 5 axes"),
    (gguf([], [tensor("t", (2**62, 2**62), F32, 0)], bytes(128)), "truncated"),
    (gguf([], [tensor("t", (8,), F32, 4)], bytes(128)), "begins at 4, no multiple of 32"),
    (
        gguf([], [tensor("t", (8,), F32, 0), tensor("t", (8,), F32, 32)], bytes(64)),
        "a tensor name occurs twice",
    ),
    (gguf([], [tensor("t", (16,), F32, 0), tensor("u", (8,), F32, 32)], bytes(64)), "'t' and 'u' overlap"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=[message for _, message in BAD])
def test_corrupt_files_are_refused_in_one_line_that_names_the_file(write, content, message):
    path = write(content)
    with pytest.raises(FileFormatError) as refused:
        read_gguf(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_no_such_file(tmp_path):
    with pytest.raises(FileFormatError, match="No such file"):
        read_gguf(tmp_path / "absent.gguf")


@settings(max_examples=300, deadline=None)
@given(where=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255), length=st.integers(0, len(GOOD)))
def test_any_damage_is_read_or_refused_never_a_traceback(tmp_path_factory, where, value, length):
    content = bytearray(GOOD)
    content[where] = value
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(bytes(content[:length]) if length % 2 else bytes(content))
    try:
        found = read_gguf(path)
    except RooflinesError:
        return
    assert found.stored.size_bytes <= path.stat().st_size


def test_a_real_file(smollm2_gguf):
    found = read_gguf(smollm2_gguf)
    assert smollm2_gguf.stat().st_size == 98_362_432
    assert found.stored.count_by_kind() == {"Q4_1": 210, "F32": 61, "Q8_0": 1}
    assert found.stored.elements == 134_515_008
    assert found.metadata["llama.attention.head_count_kv"] == 3
    assert found.metadata["tokenizer.ggml.tokens"] == Strings(49_152)
