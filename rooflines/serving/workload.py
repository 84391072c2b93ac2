"""A workload: what requests ask for, apart from how many of them arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.serving.lengths import Lengths, summarised

# Slices of the distribution of prompts that are priced apart.
_PROMPTS: Final = 16


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests by their lengths; prompt and output may depend on each other, as in a trace.

    Attributes:
        prompts: shape (K,), prompt tokens.
        outputs: shape (K,), tokens generated; the first comes out of the prefill, the others are decoded.
        weights: shape (K,), share of the requests.
        prefix_hit: share of the prompt tokens that a prefix cache holds already, 0..1.
    """

    prompts: NDArray[np.float64]
    outputs: NDArray[np.float64]
    weights: NDArray[np.float64]
    prefix_hit: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.prefix_hit < 1.0:
            raise InputError(
                f"prefix-cache hit rate is {self.prefix_hit:g}: it must be 0 or more and below 1, since the "
                "last token of a prompt is always computed"
            )
        if not self.decode_tokens > 0:
            raise InputError("no request generates more than one token: nothing would be decoded")

    @classmethod
    def independent(cls, prompts: Lengths, outputs: Lengths, prefix_hit: float = 0.0) -> Self:
        """Prompts and outputs that do not depend on each other."""
        every, each = np.meshgrid(prompts.values, outputs.values, indexing="ij")
        weights = np.outer(prompts.weights, outputs.weights)
        return cls(every.ravel(), each.ravel(), weights.ravel(), prefix_hit)

    @property
    def equal_lengths(self) -> bool:
        """Whether all requests are as long as each other."""
        return bool(np.ptp(self.prompts) == 0.0 and np.ptp(self.outputs) == 0.0)

    @property
    def mean_prompt(self) -> float:
        """Mean prompt (tokens)."""
        return float(self.prompts @ self.weights)

    @property
    def mean_output(self) -> float:
        """Mean output, the first token included (tokens)."""
        return float(self.outputs @ self.weights)

    @property
    def decode_tokens(self) -> float:
        """D, mean tokens of a request that come out of decode steps: its output without the first."""
        return float(np.maximum(self.outputs - 1.0, 0.0) @ self.weights)

    @property
    def mean_context(self) -> float:
        """S, mean cached positions of a sequence that is being decoded.

        Long outputs stay longer in the batch, so requests count by their decode steps; the context grows
        from the prompt by one a step: P + (O - 2) / 2 on average over the O - 1 steps.
        """
        steps = np.maximum(self.outputs - 1.0, 0.0) * self.weights
        return float((self.prompts + np.maximum(self.outputs - 2.0, 0.0) / 2.0) @ steps / steps.sum())

    @property
    def longest(self) -> float:
        """Longest prompt and output together (tokens)."""
        return float((self.prompts + self.outputs).max())

    def prompt_slices(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Prompts in at most 16 slices: mean length of each (tokens) and its share."""
        return summarised(self.prompts, self.weights, _PROMPTS)
