"""The reader of text cells: what it understands, and that it refuses the rest in words."""

from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.validation.published.cells import (
    DeviceCell,
    DraftCell,
    read_batch,
    read_context,
    read_devices,
    read_draft,
    read_format,
    read_share,
)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("chain, 3 draft steps, 4 verify tokens", DraftCell(3)),
        ("chain gamma=7", DraftCell(7)),
        ("chain k=3", DraftCell(3)),
        ("chain K=4", DraftCell(4)),
        ("chain n-max=2", DraftCell(2)),
        ("chain 3", DraftCell(3)),
        ("chain length 2", DraftCell(2)),
        ("chain v=5 (key length k=3)", DraftCell(5)),
        ("n-max 4", DraftCell(4)),
        ("2-token", DraftCell(2)),
        ("block 16 (1 anchor + 15 drafted)", DraftCell(15, block=16)),
        ("block 10", DraftCell(9, block=10)),
        ("tree, 5 draft steps, topk 3, 6 verify tokens", DraftCell(5, nodes=5, top_k=3)),
        ("tree size 60, 7 draft steps, top-k 10", DraftCell(7, nodes=59, top_k=10)),
        ("dynamic tree, 50 draft tokens, depth 8, expand top-10", DraftCell(8, nodes=49, top_k=10)),
        ("steps 3 topk 1 draft_tokens 4", DraftCell(3)),
        ("steps 7 topk 10 draft_tokens 64", DraftCell(7, nodes=63, top_k=10)),
        ("60-node tree depth 6", DraftCell(6, nodes=60)),
        ("60-node tree", DraftCell(None, nodes=60)),
        ("sparse tree 64 nodes (described for Vicuna-7B, Fig 6)", DraftCell(None, nodes=64)),
    ],
)
def test_drafts_that_are_understood(text, cell):
    assert read_draft(text) == cell


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not stated"),
        ("n-max 4 p-min 0.75", "varies"),
        ("HF dynamic heuristic (start 5)", "varies"),
        ("beam width 2 x length 3 (deduplicated prefix tree)", "beam"),
        ("best-first tree, 47 nonroot nodes", "tree over the tokens of a block"),
        ("3-token window, topk=1", "window"),
        ("a few tokens", "'a few tokens' is not understood"),
        ("chain k=3 or 4", "not understood"),
    ],
)
def test_drafts_that_are_refused(text, reason):
    with pytest.raises(InputError, match=reason):
        read_draft(text)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("8x H100", DeviceCell(8, "H100")),
        ("H100 (80GB)", DeviceCell(1, "H100")),
        ("RTX 3090 24GB", DeviceCell(1, "RTX 3090")),
        ("2x RTX 5060 Ti 16GB (tensor split)", DeviceCell(2, "RTX 5060 Ti")),
        ("RTX 5090 32GB (600 W)", DeviceCell(1, "RTX 5090")),
    ],
)
def test_devices_that_are_understood(text, cell):
    assert read_devices(text) == cell


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not stated"),
        ("RTX 3060 Ti 8GB + RTX 3080 Ti 12GB (tensor split)", "differ"),
        ("RTX 3090 (OC)", "not as its datasheet says"),
        ("3x RTX 3060 12GB (layer split)", "layer split"),
        ("A100 80GB (330 W limit)", "330 W limit"),
    ],
)
def test_devices_that_are_refused(text, reason):
    with pytest.raises(InputError, match=reason):
        read_devices(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("bf16 (model default)", "bf16"),
        ("float16", "fp16"),
        ("Q4_K_M", "q4_k"),
        ("UD-Q4_K_XL", "q4_k"),
        ("UD-Q4_K_M (16.46 GB)", "q4_k"),
        ("NVFP4 dynamic", "nvfp4"),
        ("int4 g32", "int4-g32"),
        ("Q8_0", "q8_0"),
    ],
)
def test_formats(text, found):
    assert read_format(text) == found


def test_a_number_of_bits_is_no_format():
    with pytest.raises(InputError, match="'4-bit' is not understood"):
        read_format("4-bit")


def test_loads():
    assert [read_batch(text) for text in ("8", "1 (--parallel 1)", "")] == [8, 1, 1]
    for text in ("QPS 4", "matched aggregate 700 tok/s", "2 per rank", "4 slots, aggregate"):
        with pytest.raises(InputError, match="is no batch"):
            read_batch(text)


def test_contexts_are_those_of_a_token_half_way():
    texts = ("8000", "66 prompt + 200 generated", "ISL 65536 / OSL 4096", "1024/256 random", "16K prompts")
    assert [read_context(text) for text in texts] == [8000.0, 166.0, 67584.0, 1152.0, 16384.0]
    assert read_context("30,906-token prompt") == 30906.0


@pytest.mark.parametrize("text", ["", "131K alloc", "4096/slot", "4K f16 KV", "MT-bench", "code"])
def test_allocated_positions_and_names_of_workloads_are_no_contexts(text):
    assert read_context(text) is None


def test_an_unknown_context_is_refused():
    with pytest.raises(InputError, match="not understood"):
        read_context("a page")


def test_shares():
    assert read_share("0.78") == 0.78
    assert read_share("0.35-0.91; aggregate 0.55") == 0.55
    for text, reason in (("0.52-0.96", "no single share"), ("", "not stated"), ("3.1", "no single share")):
        with pytest.raises(InputError, match=reason):
            read_share(text)
