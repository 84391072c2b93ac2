"""What runs the forward pass that is timed: our own lean Llama over a static cache, or transformers' model.

This module and those it imports load torch (extra ``[measure]``).
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from torch import Tensor

LogitsOf = Literal["all", "last"]


class Cache(Protocol):
    """Keys and values of B sequences of equal length."""

    @property
    def length(self) -> int:
        """Positions that are valid."""

    def roll_back(self, length: int) -> None:
        """Forget every position from `length` on; a shorter cache stays as it is."""


class Runner(Protocol):
    """A causal language model."""

    @property
    def name(self) -> str:
        """``static-llama`` or ``transformers``."""

    @property
    def depth(self) -> int:
        """Layers."""

    @property
    def vocabulary(self) -> int:
        """Tokens that logits are given for."""

    @property
    def device(self) -> str:
        """Where it runs, as torch calls it."""

    def new_cache(self, batch: int, positions: int) -> Any:  # noqa: ANN401 - each runner has its own
        """An empty cache with room for `positions` of each of `batch` sequences."""

    def fill(self, cache: Any, length: int) -> None:  # noqa: ANN401 - each runner has its own
        """Fill a cache up to `length` positions with something that costs what real content costs."""

    def forward(
        self,
        tokens: Tensor,
        cache: Any,  # noqa: ANN401 - each runner has its own
        *,
        depth: int | None = None,
        logits: LogitsOf = "all",
    ) -> Tensor:
        """Append tokens and answer for each of them, or for the last one.

        Args:
            tokens: shape [B, n].
            cache: grows by n positions.
            depth: layers to run before the head; None for all of them.
            logits: of all new positions, or of the last one only.

        Returns:
            Logits, shape [B, n, V] or [B, 1, V].

        Raises:
            InputError: more positions than the cache has room for, or a depth that it cannot run.
        """

    def int4_copy(self, group_size: int) -> Runner:
        """The same model with its linear layers in 4-bit integers; it can share the cache.

        Raises:
            InputError: this runner, or torch's kernels, cannot.
        """
