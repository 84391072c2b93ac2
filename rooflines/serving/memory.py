"""Does it fit: weights, drafter, KV caches and logits against the memory of one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.costs.storage import kv_cache_bytes, state_bytes, weight_bytes
from rooflines.speculation.drafters.base import Drafter
from rooflines.timing.deployment import Deployment

# vLLM leaves a tenth of the device to everything else: its `gpu_memory_utilization` defaults to 0.9
# (https://docs.vllm.ai/en/latest/configuration/engine_args.html). SGLang's `mem_fraction_static` is near it.
DEFAULT_RESERVE: Final = 0.1
_LOGIT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Memory of one device, at one batch or an array of batches.

    Attributes:
        capacity_bytes: what the device has (bytes).
        reserve_bytes: kept free for activations, workspaces, graphs and the context of the driver (bytes).
        weights_bytes: the target's share (bytes).
        drafter_weights_bytes: the drafter's (bytes).
        kv_bytes: the target's KV cache (bytes).
        state_bytes: the target's recurrent states, with a snapshot per verified position (bytes).
        drafter_kv_bytes: the drafter's cache (bytes).
        logits_bytes: fp32 logits of the verified positions (bytes).
    """

    capacity_bytes: float
    reserve_bytes: float
    weights_bytes: float
    drafter_weights_bytes: float
    kv_bytes: Number
    state_bytes: Number
    drafter_kv_bytes: Number
    logits_bytes: Number

    @property
    def used_bytes(self) -> Number:
        """All of it but the reserve (bytes)."""
        fixed = self.weights_bytes + self.drafter_weights_bytes
        return fixed + self.kv_bytes + self.state_bytes + self.drafter_kv_bytes + self.logits_bytes

    @property
    def fits(self) -> bool | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether used and reserved bytes stay within the capacity."""
        return self.used_bytes + self.reserve_bytes <= self.capacity_bytes


def memory_fit(
    target: Deployment,
    drafter: Drafter | None,
    batch: Number,
    context: Number,
    draft_length: Number = 0.0,
    *,
    reserve: float = DEFAULT_RESERVE,
) -> MemoryFit:
    """Memory of one device for `batch` sequences of `context` positions and a draft on top.

    Args:
        target: the model as it is served.
        drafter: what drafts for it, if anything does.
        batch: B.
        context: S.
        draft_length: gamma; its positions are cached until they are accepted or rejected.
        reserve: share of the capacity kept free.
    """
    positions = context + draft_length + 1.0
    vocabulary = target.model.vocabulary / target.parallelism.tensor
    capacity = target.machine.profile.capacity_bytes
    # A recurrent state cannot be cut back to where a draft was rejected: one snapshot a verified position.
    states = state_bytes(target.model, batch, target.precision, target.parallelism)
    return MemoryFit(
        capacity_bytes=capacity,
        reserve_bytes=reserve * capacity,
        weights_bytes=weight_bytes(target.model, target.precision, target.parallelism),
        drafter_weights_bytes=drafter.weight_bytes() if drafter else 0.0,
        kv_bytes=kv_cache_bytes(
            target.model,
            batch,
            positions,
            target.precision,
            target.parallelism,
            encoder_positions=target.encoder_positions,
        ),
        state_bytes=states * (draft_length + 1.0),
        drafter_kv_bytes=drafter.kv_cache_bytes(batch, positions) if drafter else 0.0,
        logits_bytes=batch * (draft_length + 1.0) * vocabulary * _LOGIT_BYTES,
    )


def largest_batch(
    target: Deployment,
    drafter: Drafter | None,
    context: float,
    draft_length: float = 0.0,
    *,
    reserve: float = DEFAULT_RESERVE,
) -> int:
    """The largest whole batch that fits; 0 where even the weights or one sequence do not.

    Memory is linear in the batch, so two points give it.
    """
    one = memory_fit(target, drafter, 1.0, context, draft_length, reserve=reserve)
    fixed = one.weights_bytes + one.drafter_weights_bytes
    each = float(one.used_bytes) - fixed
    room = one.capacity_bytes - one.reserve_bytes - fixed
    return max(int(room // each), 0) if room > 0 else 0
