"""Any other model: transformers' own forward pass over its own cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from rooflines.errors import InputError
from rooflines.measurement.runner import LogitsOf


@dataclass(frozen=True, slots=True)
class TransformersCache:
    """A `transformers.DynamicCache` of `batch` sequences; it grows as it must."""

    inner: Any
    batch: int

    @property
    def length(self) -> int:
        """Positions that are valid."""
        return int(self.inner.get_seq_length())

    def roll_back(self, length: int) -> None:
        """Forget every position from `length` on; a shorter cache stays as it is.

        Raises:
            InputError: the model keeps a state instead of positions, which cannot forget some of them.
        """
        if length >= self.length:
            return
        try:
            self.inner.crop(length - self.length)  # the negative form is what all versions take
        except (AttributeError, NotImplementedError, ValueError) as error:
            raise InputError(f"the cache of this model cannot be rolled back: {error}") from None


@dataclass(frozen=True, slots=True)
class TransformersRunner:
    """The model.

    Attributes:
        model: of transformers, in evaluation mode.
    """

    model: Any
    name: str = "transformers"

    @property
    def depth(self) -> int:
        """Layers."""
        return int(self.model.config.get_text_config().num_hidden_layers)

    @property
    def vocabulary(self) -> int:
        """Tokens that logits are given for."""
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def device(self) -> str:
        """Where it runs."""
        return str(self.model.device)

    def new_cache(self, batch: int, positions: int) -> TransformersCache:  # noqa: ARG002 - grows by itself
        """An empty cache."""
        from transformers import DynamicCache

        return TransformersCache(DynamicCache(config=self.model.config), batch)

    def fill(self, cache: TransformersCache, length: int) -> None:
        """Fill up to `length` positions by a pass over random tokens."""
        missing = length - cache.length
        if missing > 0:
            tokens = torch.randint(self.vocabulary, (cache.batch, missing), device=self.model.device)
            self.forward(tokens, cache, logits="last")

    def forward(
        self, tokens: Tensor, cache: TransformersCache, *, depth: int | None = None, logits: LogitsOf = "all"
    ) -> Tensor:
        """Append tokens, shape [B, n], and answer for each of them, or for the last one (see `Runner`).

        Raises:
            InputError: a depth other than all layers.
        """
        if depth is not None and depth != self.depth:
            raise InputError(
                f"depth {depth}: {self.model.config.model_type} runs as transformers runs it, all "
                f"{self.depth} layers; early exits are for Llama-like models"
            )
        with torch.inference_mode():
            answer = self.model(
                input_ids=tokens,
                past_key_values=cache.inner,
                use_cache=True,
                logits_to_keep=0 if logits == "all" else 1,
            )
            result: Tensor = answer.logits
            return result

    def int4_copy(self, group_size: int) -> NoReturn:
        """Not for this runner.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"a copy in groups of {group_size} 4-bit integers is made of Llama-like models only, not of "
            f"{self.model.config.model_type}"
        )
