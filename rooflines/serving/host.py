"""What a server's host adds to a request: its own work, and how often the scheduler looks at what arrived.

None of it is assumed: a bare `Host()` adds nothing. Engines state theirs as settings, named here by their own
words, so that a benchmark whose commands are published can be predicted with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from rooflines.errors import InputError
from rooflines.models.feed_forward import MixtureOfExperts
from rooflines.models.spec import ModelSpec

# Host time to launch one layer kernel by kernel, where no graph is replayed: a prompt of few tokens shows it.
# Experts and latent attention: DeepSeek-V3 (61 layers) on SGLang takes 82.6 ms for one token of prompt, and
# 23.1 ms from a graph (https://github.com/sgl-project/sglang/pull/12160).
_SPARSE_LAYER_S: Final = 82.6e-3 / 61
# Dense: Qwen3-4B (36 layers), 129 tokens take 16.6 ms and 513 as long, 5.7 ms from a graph
# (https://github.com/wejoncy/sfllm/pull/46).
_DENSE_LAYER_S: Final = 16.6e-3 / 36


@dataclass(frozen=True, slots=True)
class Host:
    """A server's host.

    Attributes:
        request_s: time of a request outside all steps: HTTP, tokenising, detokenising (s).
        poll_steps: decode steps from one look at new requests to the next; 1 looks at each (SGLang's
            `--scheduler-recv-interval`).
        gather_steps: steps for which the first waiting prompt is held back, so that others join it
            (TensorRT-LLM's `batch_wait_timeout_iters`).
        launch_s: least time of a step that carries a prompt: the host launches it kernel by kernel, where
            graphs are captured for decode steps alone (s).
        prompts_first: prompts are processed in steps of their own, before any decoding (SGLang without
            `--enable-mixed-chunk`).
    """

    request_s: float = 0.0
    poll_steps: float = 1.0
    gather_steps: float = 0.0
    launch_s: float = 0.0
    prompts_first: bool = False

    def __post_init__(self) -> None:
        times = (self.request_s, self.gather_steps, self.launch_s)
        if not all(0.0 <= value < math.inf for value in times) or not 1.0 <= self.poll_steps < math.inf:
            raise InputError(
                f"a host that takes {self.request_s:g} s a request and {self.launch_s:g} s a launch, gathers "
                f"for {self.gather_steps:g} steps and looks every {self.poll_steps:g} steps: none may be "
                "negative, and it looks once a step (1) at most"
            )

    def arrival_wait_s(self, rate_per_s: float, step_s: float) -> float:
        """Mean wait of a request that arrives at any time, beside the step that is running then (s).

        Args:
            rate_per_s: arrivals (requests/s).
            step_s: a decode step (s).
        """
        looks = (self.poll_steps - 1.0) / 2.0 * step_s
        return self.request_s + looks + self._gathering_s(rate_per_s, step_s)

    def answer_wait_s(self, rate_per_s: float, step_s: float, missed_s: float) -> float:
        """Mean wait of a request that follows an answer, until a step takes it up (s).

        Its answer came at the end of a step, and the next step starts before the client's request is back: it
        misses that step, however short the host's own work is.

        Args:
            rate_per_s: requests completed (requests/s).
            step_s: a decode step (s).
            missed_s: the step that is missed (s).
        """
        looked = missed_s + (self.poll_steps - 1.0) / 2.0 * step_s
        arrived = self.request_s + step_s / 2.0 if self.request_s else 0.0
        return max(looked, arrived) + self._gathering_s(rate_per_s, step_s)

    def _gathering_s(self, rate_per_s: float, step_s: float) -> float:
        """The first prompt waits for the whole time, those that join it for half of it (s)."""
        held = self.gather_steps * step_s
        joining = rate_per_s * held
        return held * (1.0 + joining / 2.0) / (1.0 + joining)


AT_ONCE: Final = Host()


def launch_floor_s(model: ModelSpec) -> float:
    """Least time of a pass of a model whose kernels the host launches one by one (s).

    From one measured model of each kind: a layer with experts takes thrice a dense one.
    """
    sparse = sum(
        any(isinstance(block, MixtureOfExperts) for block in layer.feed_forwards) for layer in model.layers
    )
    return sparse * _SPARSE_LAYER_S + (len(model.layers) - sparse) * _DENSE_LAYER_S
