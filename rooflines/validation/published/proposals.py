"""Who drafts, as tables of speedups write it, in the words of the drafter registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rooflines.errors import InputError
from rooflines.validation.published.cells import DraftCell, read_draft
from rooflines.validation.published.names import model_of

# Kinds in tables -> kinds of the registry.
_KINDS: Final = {
    "eagle": "eagle",
    "eagle-1": "eagle",
    "eagle2": "eagle2",
    "eagle-2": "eagle2",
    "eagle3": "eagle3",
    "eagle-3": "eagle3",
    "medusa": "medusa",
    "dflash": "dflash",
    "dspark": "dspark",
    "mtp": "mtp",
    "mtp (1 built-in layer)": "mtp",
    "ngram": "ngram",
    "prompt lookup": "ngram",
    "independent": "independent",
    "independent model": "independent",
}
# Heads whose published config ships with the project; other heads get their family's usual shape.
_HEADS: Final = {
    ("eagle3", "llama-3.1-8b"): "eagle3-llama3.1-8b",
    ("eagle3", "llama-3.3-70b"): "llama3-70b-eagle3",
    ("eagle3", "qwen3-235b-a22b"): "qwen3-235b-a22b-eagle3",
    ("eagle3", "qwen3-8b"): "qwen3-8b-eagle3",
    ("eagle3", "qwen3-30b-a3b"): "qwen3-30b-a3b-eagle3",
    ("eagle3", "kimi-k2"): "kimi-k2-eagle3",
    ("eagle3", "ling-flash-2.0"): "ling-flash-2.0-eagle3",
    ("dflash", "qwen3-8b"): "qwen3-8b-dflash",
    ("dflash", "qwen3-4b"): "qwen3-4b-dflash",
    ("dflash", "qwen3.5-27b"): "qwen3.5-27b-dflash",
    ("dflash", "qwen3.5-35b-a3b"): "qwen3.5-35b-a3b-dflash",
    ("dspark", "qwen3-8b"): "qwen3-8b-dspark",
    ("eagle", "vicuna-7b-v1.3"): "eagle-vicuna-7b-v1.3",
    ("eagle", "vicuna-13b-v1.3"): "eagle-vicuna-13b-v1.3",
    ("eagle", "llama-2-7b"): "eagle-llama2-7b",
    ("eagle", "llama-2-70b"): "eagle-llama2-70b",
    ("eagle", "mixtral-8x7b-v0.1"): "eagle-mixtral-8x7b",
    ("medusa", "vicuna-7b-v1.3"): "medusa-vicuna-7b-v1.3",
}
_LAYERS: Final = re.compile(r"(\d+)-layer")
# EAGLE's trees expand ten nodes a level (EAGLE-2, arXiv 2406.16858; EAGLE-3, arXiv 2503.01840, appendix A).
_USUAL_TOP_K: Final = 10
# DFlash's drafters are trained for blocks of 16 (arXiv 2602.06036, section 4).
_USUAL_BLOCK: Final = 16


@dataclass(frozen=True, slots=True)
class Proposal:
    """Who drafts, and how much.

    Attributes:
        kind: of the registry.
        text: as the registry reads it.
        draft_length: tokens of a chain or block, levels of a tree.
        notes: what was assumed.
    """

    kind: str
    text: str
    draft_length: int
    notes: tuple[str, ...] = ()


def read_proposal(cells: Mapping[str, str], target: str) -> Proposal:
    """Read who drafts and how much.

    Args:
        cells: of the row.
        target: preset of the target.

    Raises:
        InputError: a family that is not modelled, a model without a preset, or a draft length that is not
            stated.
    """
    written = cells["drafter_kind"]
    kind = _KINDS.get(written.lower())
    if kind is None:
        raise InputError(f"drafters of kind {written!r} are not modelled")
    cell, notes = _draft(cells, kind)
    if kind == "independent":
        if not cells.get("draft_model"):
            raise InputError("the draft model is not stated")
        draft = model_of(cells["draft_model"])
        return Proposal(kind, f"independent:{draft.preset}", _length(cell), (*notes, draft.note))
    head = _HEADS.get((kind, target), "")
    parameters, more = _parameters(kind, cell)
    stated = _LAYERS.search(cells.get("draft_model", ""))
    if kind == "dflash" and stated and not head:
        parameters = [f"layers={stated[1]}", *parameters]
    text = f"{kind}:{','.join(filter(None, (head, *parameters)))}".rstrip(":")
    return Proposal(kind, text, _length(cell), (*notes, *more))


def _draft(cells: Mapping[str, str], kind: str) -> tuple[DraftCell, tuple[str, ...]]:
    written = cells["gamma_or_tree"]
    if not written and kind == "dflash":
        note = f"a block of {_USUAL_BLOCK}, which DFlash's drafters are trained for"
        return DraftCell(_USUAL_BLOCK - 1, block=_USUAL_BLOCK), (note,)
    cell = read_draft(written)
    if kind == "dspark" and cell.block is not None:
        # A DSpark block has no anchor position: gamma inputs give gamma drafts (arXiv 2607.05147).
        cell = DraftCell(cell.block)
    if cell.draft_length is None and cells.get("draft_depth"):
        depth = cells["draft_depth"]
        cell = DraftCell(int(float(depth)), cell.nodes, cell.top_k)
    return cell, ()


def _length(cell: DraftCell) -> int:
    if cell.draft_length is None:
        raise InputError("the depth of the tree is not stated")
    return cell.draft_length


def _parameters(kind: str, cell: DraftCell) -> tuple[list[str], tuple[str, ...]]:
    if cell.block is not None:
        if kind != "dflash":
            raise InputError(f"drafters of kind {kind} have no blocks")
        return [f"block={cell.block}"], ()
    if cell.nodes is None:
        if kind in ("medusa", "eagle2"):
            raise InputError(f"the tree of {kind} is not stated")
        return [], ()
    if kind not in ("eagle", "eagle2", "eagle3", "medusa"):
        raise InputError(f"a tree of {kind} is not modelled")
    if cell.top_k is not None:
        return [f"topk={cell.top_k}", f"nodes={cell.nodes}"], ()
    note = f"{_USUAL_TOP_K} nodes expanded a level, as EAGLE's trees"
    return [f"topk={_USUAL_TOP_K}", f"nodes={cell.nodes}"], (note,)
