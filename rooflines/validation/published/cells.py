"""The one reader of text cells in tables of speedups: drafts, devices, number formats, loads and contexts.

People write "60-node tree depth 6", "8x H100", "Q4_K_M" or "QPS 4". Each function here knows some ways of
writing one thing and says in words why it refuses any other: a guess would pass for a measurement. What they
understand is listed in docs/published.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rooflines.errors import InputError


@dataclass(frozen=True, slots=True)
class DraftCell:
    """What is drafted in a cycle.

    Attributes:
        draft_length: tokens of a chain or block, levels of a tree; None where a tree states none.
        nodes: drafted nodes that are verified; None for a chain or block.
        top_k: nodes expanded a level; None where the cell is silent.
        block: positions of a block; None for chains and trees.
    """

    draft_length: int | None
    nodes: int | None = None
    top_k: int | None = None
    block: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceCell:
    """Devices as written: how many, and which."""

    count: int
    name: str


# What makes a draft another length from cycle to cycle, so that no single cost describes it.
_VARIES: Final = re.compile(r"p-min|adaptive|dynamic heuristic|auto|scheduled|variable", re.IGNORECASE)
_OTHER_SHAPES: Final = {
    "beam": "a beam of an RNN drafter is not modelled",
    "best-first tree": "a tree over the tokens of a block is not modelled",
    "window": "a window of tokens says neither steps nor verified positions",
}


def _chain(match: re.Match[str]) -> DraftCell:
    return DraftCell(int(match["length"]))


def _block(match: re.Match[str]) -> DraftCell:
    block = int(match["block"])
    return DraftCell(block - 1, block=block)


def _sized_tree(match: re.Match[str]) -> DraftCell:
    """A size or a number of draft tokens as EAGLE and SGLang count it: the root is one of them."""
    top_k = int(match["topk"])
    length = int(match["length"])
    if top_k == 1:
        return DraftCell(length)
    return DraftCell(length, nodes=int(match["size"]) - 1, top_k=top_k)


def _noded_tree(match: re.Match[str]) -> DraftCell:
    """A number of nodes, the root not among them."""
    length = match.groupdict().get("length")
    return DraftCell(None if length is None else int(length), nodes=int(match["nodes"]))


_NOTE: Final = r"(?:\s*\(.*\))?"
# Ways of writing a draft, tried in this order.
_DRAFTS: Final[tuple[tuple[str, Callable[[re.Match[str]], DraftCell]], ...]] = (
    (r"chain, (?P<length>\d+) draft steps?, \d+ verify tokens", _chain),
    (r"chain (?:length |[a-zA-Z-]+\s?=\s?)?(?P<length>\d+)", _chain),
    (r"(?:n-max |n_draft |draft |[kKnd]=)(?P<length>\d+)", _chain),
    (r"(?P<length>\d+)-token", _chain),
    (r"block (?P<block>\d+)", _block),
    (r"tree, (?P<length>\d+) draft steps?, topk (?P<topk>\d+), (?P<size>\d+) verify tokens", _sized_tree),
    (r"tree size (?P<size>\d+), (?P<length>\d+) draft steps?, top-?k (?P<topk>\d+)", _sized_tree),
    (
        r"dynamic tree, (?P<size>\d+) draft tokens, depth (?P<length>\d+), expand top-(?P<topk>\d+)",
        _sized_tree,
    ),
    (r"steps (?P<length>\d+) topk (?P<topk>\d+) draft_tokens (?P<size>\d+)", _sized_tree),
    (r"(?P<nodes>\d+)-node tree(?: depth (?P<length>\d+))?", _noded_tree),
    (r"sparse tree (?P<nodes>\d+) nodes", _noded_tree),
)


def read_draft(text: str) -> DraftCell:
    """Read how much is drafted.

    Raises:
        InputError: nothing is said, the draft varies from cycle to cycle, or the words are not understood.
    """
    if not text:
        raise InputError("the draft length is not stated")
    if _VARIES.search(text):
        raise InputError(f"the draft varies from cycle to cycle ({text})")
    for word, reason in _OTHER_SHAPES.items():
        if word in text:
            raise InputError(reason)
    for pattern, make in _DRAFTS:
        if match := re.fullmatch(pattern + _NOTE, text):
            return make(match)
    raise InputError(f"draft {text!r} is not understood")


# Notes beside a device that change nothing about its datasheet numbers.
_HARMLESS: Final = re.compile(
    r"\d+ ?GB|\d+ ?[Ww]|headless|Metal|ROCm.*|Windows Vulkan|Linux ROCm.*|Vulkan.*|tensor split|listed as Ada"
    r"|matched control for M4|\d+GB => M4 Max|b\d+|\d+-core GPU|GB10|NVLink, tensor split"
)


def read_devices(text: str) -> DeviceCell:
    """Read devices: ``8x H100``, ``RTX 3090 24GB``, ``2x RTX 5060 Ti 16GB (tensor split)``.

    Raises:
        InputError: nothing is said, devices differ, or a note changes what the device can do.
    """
    if not text:
        raise InputError("the device is not stated")
    if " + " in text:
        raise InputError(f"devices differ from each other ({text})")
    match = re.fullmatch(r"(?:(?P<count>\d+)\s*x\s+)?(?P<name>[^()]+?)\s*(?:\((?P<note>.*)\))?", text)
    if match is None:
        raise InputError(f"device {text!r} is not understood")
    if match["note"] and not re.fullmatch(_HARMLESS, match["note"]):
        raise InputError(f"the device is not as its datasheet says ({match['note']})")
    name = re.sub(r",? \d+ ?GB$", "", match["name"].partition(",")[0].strip())
    return DeviceCell(int(match["count"] or 1), name)


# Spellings of number formats -> the format whose bytes are counted. Mixes of GGUF blocks count as the block
# that most of their matrices have (https://github.com/ggml-org/llama.cpp/blob/master/tools/quantize/README.md).
_FORMATS: Final = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
    "fp8": "fp8",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "int4 g32": "int4-g32",
    "q4_k_m": "q4_k",
    "q4_k_xl": "q4_k",
    "q5_k_m": "q5_k",
    "q5_k_xl": "q5_k",
    "q6_k": "q6_k",
    "q6_k_xl": "q6_k",
    "q8_0": "q8_0",
    "q3_k_xl": "q3_k",
    "q2_k_xl": "q2_k",
    "iq4_xs": "iq4_xs",
    "iq2_xxs": "iq2_xxs",
}


def read_format(text: str) -> str | None:
    """Read a number format of weights; None where the cell is empty.

    Raises:
        InputError: a format that is not known; "4-bit" alone says neither groups nor scales.
    """
    plain = re.sub(r"\s*\(.*\)$", "", text).strip().lower().removeprefix("ud-")
    plain = plain.removesuffix(" dynamic").removesuffix(" dynamic 3.0")
    if not plain:
        return None
    if plain not in _FORMATS:
        raise InputError(f"number format {text!r} is not understood")
    return _FORMATS[plain]


def read_batch(text: str) -> int:
    """Read a batch: ``8``, ``1 (--parallel 1)``; one sequence where the cell is empty.

    Raises:
        InputError: a load that is no batch ("QPS 4", "matched aggregate 700 tok/s").
    """
    if not text:
        return 1
    if match := re.fullmatch(r"(\d+)(?:\s*\(--parallel \d+\))?", text):
        return int(match[1])
    raise InputError(f"load {text!r} is no batch")


# Allocated positions are not cached ones, and the name of a workload is no length.
_SILENT: Final = re.compile(
    r"alloc|KV|/slot|MT-bench|HumanEval|^(?:code|prose|short|production ctx)$|out$", re.IGNORECASE
)


def read_context(text: str) -> float | None:
    """Read a context: the mean number of cached positions while tokens are generated.

    ``8000``, ``16K prompts``, ``66 prompt + 200 generated``, ``ISL 65536 / OSL 4096``, ``1024/256 random``;
    None where the cell is empty, names a workload, or says how much was allocated rather than used.

    Raises:
        InputError: anything else.
    """
    if not text or _SILENT.search(text):
        return None
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if match := re.fullmatch(r"(\d+) prompt \+ (\d+) generated", text):
        return int(match[1]) + int(match[2]) / 2
    if match := re.fullmatch(r"(?:ISL (\d+) / OSL (\d+)|(\d+)/(\d+) random)", text):
        prompt, output = (int(found) for found in match.groups() if found)
        return prompt + output / 2
    if match := re.fullmatch(r"([\d,]+)(K?)(?: prompts|[ -](?:token prompt|prompt tokens))?", text):
        return float(match[1].replace(",", "")) * (1024 if match[2] else 1)
    raise InputError(f"context {text!r} is not understood")


_SHARE: Final = r"(?:0?\.\d+|1(?:\.0+)?)"


def read_share(text: str) -> float:
    """Read a share: ``0.78``, or ``0.35-0.91; aggregate 0.55``, of which the aggregate counts.

    Raises:
        InputError: a range over requests alone, which weights none of them.
    """
    if match := re.search(rf"aggregate ({_SHARE})(?!\d)", text):
        return float(match[1])
    if re.fullmatch(_SHARE, text):
        return float(text)
    raise InputError(f"acceptance {text!r} is no single share" if text else "acceptance is not stated")
