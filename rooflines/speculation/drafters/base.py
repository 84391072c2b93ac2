"""What every drafter answers: the time of one draft, the width to verify, and its memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self, runtime_checkable

import numpy as np

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.models.spec import ModelSpec
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.timing.step_times import StepTimer, Timed

# Training frameworks pad a vocabulary to a multiple of 64..512 a device; a larger gap is another tokenizer.
_PADDING_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Repeated:
    """A pass that a draft runs several times.

    Attributes:
        count: how often; a part of 1 where a draft takes a share of such a pass, 0 where nothing is drafted.
        time: of one.
    """

    count: Number
    time: Timed


# What a draft spends its time on: passes, or seconds (s) where it is not made of any.
Spent = tuple[Repeated, ...] | Number


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft of a cycle.

    Attributes:
        seconds: time of the draft when nothing has to be caught up (s).
        catch_up_s: extra time in a cycle that follows a fully accepted one (s): the last drafted token never
            went through the drafter, so its KV is made in the next cycle's first step.
        verify_width: positions sent to the target per sequence: drafted tokens or tree nodes, and one more.
        ancestors: query-key pairs among the verified positions of a tree, None for a chain. Tree attention
            runs with a mask of its own, so its kernels compute all n^2 of them (EAGLE's `tree_mask`,
            https://github.com/SafeAILab/EAGLE/blob/main/eagle/model/modeling_llama_kv.py).
        tree: how the tree is grown, None for a chain; the draft length is its depth.
        proposals: how many tokens of a chain there are to send, where that is not always all of them: c_1 is
            the share of cycles that propose at all, c_k the chance that a proposal of k - 1 tokens has a
            k-th. `verify_width` is then the most that is sent.
        passes: that `seconds` is made of; none where it is not made of passes.
    """

    seconds: Number
    catch_up_s: Number
    verify_width: Number
    ancestors: Number | None = None
    tree: TreeGrowth | None = None
    proposals: Acceptance | None = None
    passes: tuple[Repeated, ...] = ()

    def sent_width(self) -> Number:
        """Positions that a sequence sends to the target on average."""
        if self.proposals is None:
            return self.verify_width
        return 1.0 + self.proposals.accepted_per_cycle(np.asarray(self.verify_width) - 1.0)


class Drafter(Protocol):
    """A way to propose tokens; each family is one module of this folder."""

    @property
    def name(self) -> str:
        """What the plan calls it."""

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Of the draft lengths asked for those it can draft; its longest where it can draft none of them."""

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price one draft of `draft_length` tokens (a tree: levels) for `batch` sequences.

        Raises:
            InputError: longer than it can draft.
        """

    def prefill(self, new_tokens: Number, context: Number) -> Number:
        """Time that a chunk of one prompt takes beside the target's own pass over it (s).

        What a drafter caches of a prompt, it must compute of it. Drafters without a cache take none.

        Args:
            new_tokens: positions of the chunk.
            context: positions of the prompt before it.
        """

    def weight_bytes(self) -> float:
        """Weights of its own on each device (bytes)."""

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """Cached state of its own on each device (bytes)."""

    def warnings(self) -> tuple[str, ...]:
        """What is odd about this choice, or assumed for it, if anything."""


@runtime_checkable
class Stepping(Protocol):
    """A drafter whose draft is decode steps of a model, so that measured ones can stand in for constants."""

    @property
    def steps(self) -> StepTimer | None:
        """What times its steps in place of its constants, if anything does."""

    def timed_by(self, steps: StepTimer) -> Self:
        """The same drafter with measured steps."""


class Uncached:
    """What drafters without a cache of their own answer about it."""

    __slots__ = ()

    def prefill(self, new_tokens: Number, context: Number) -> Number:
        """None: nothing is cached of a prompt."""
        return 0.0 * np.asarray(new_tokens) * context

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """None."""
        return 0.0 * np.asarray(batch) * context


# What a stepping drafter says of its parameter `steps`.
STEPS: Final = "file with measured steps of what drafts (default: its constants), see --steps of a plan"


def chain(spent: Spent, draft_length: Number, catch_up_s: Number = 0.0) -> Draft:
    """A draft of one token after another."""
    seconds, passes = _taken(spent)
    return Draft(seconds, catch_up_s, np.asarray(draft_length, dtype=float) + 1.0, passes=passes)


def grown(spent: Spent, draft_length: Number, tree: TreeGrowth | None) -> Draft:
    """A draft of a tree whose depth is the draft length, or of a chain where there is no tree."""
    if tree is None:
        return chain(spent, draft_length)
    seconds, passes = _taken(spent)
    width = tree.verified_nodes(draft_length) + 1.0
    return Draft(seconds, 0.0, width, width**2, tree, passes=passes)


def total_s(passes: Iterable[Repeated]) -> Number:
    """Time of some passes (s)."""
    seconds: Number = 0.0
    for one in passes:
        seconds = seconds + one.count * one.time.seconds
    return seconds


def drafting(draft_length: Number) -> Number:
    """How often a pass that every draft has once runs: not in plain decoding."""
    return np.asarray(np.asarray(draft_length) > 0, dtype=float)


def _taken(spent: Spent) -> tuple[Number, tuple[Repeated, ...]]:
    """Seconds, and the passes that they are made of."""
    return (total_s(spent), spent) if isinstance(spent, tuple) else (spent, ())


def possible_lengths(asked: Sequence[int], only: int | None, longest: int | None = None) -> tuple[int, ...]:
    """The draft lengths of those asked for that a drafter can draft.

    Args:
        asked: draft lengths; 0 is plain decoding.
        only: the one length that was fixed in the drafter's own name; None for those asked for.
        longest: that it can draft; alone where all asked for are longer; None for no limit.
    """
    if only is not None:
        return (*(length for length in asked if length == 0), only)
    if longest is None:
        return tuple(asked)
    return tuple(length for length in asked if length <= longest) or (longest,)


def require_length(name: str, draft_length: Number, longest: int | None) -> None:
    """Refuse a draft longer than a drafter can make.

    Raises:
        InputError: it is.
    """
    if longest is not None and np.any(np.asarray(draft_length) > longest):
        raise InputError(f"{name} drafts {longest} tokens at most, not {np.max(draft_length):g}: draft fewer")


def require_same_tokenizer(name: str, vocabulary: int, target: ModelSpec) -> None:
    """Refuse a drafter whose vocabulary differs from its target's by more than padding.

    Raises:
        InputError: it does.
    """
    if abs(vocabulary - target.vocabulary) > _PADDING_SHARE * max(vocabulary, target.vocabulary):
        raise InputError(
            f"{name} has a vocabulary of {vocabulary:,} and {target.name} one of {target.vocabulary:,}: "
            "a drafter must share the target's tokenizer"
        )
