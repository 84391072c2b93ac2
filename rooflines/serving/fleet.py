"""Engines side by side: together (each does prefill and decode) or apart (pools of either).

A load is spread evenly over the engines of a pool. Apart, prompts are processed whole by prefill engines, and
their keys and values are sent to a decode engine (DistServe, arXiv 2401.09670; Mooncake, arXiv 2407.00079).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rooflines.costs.storage import kv_cache_bytes
from rooflines.errors import InputError
from rooflines.serving.engine import Engine, StepCurve, step_curve
from rooflines.serving.goodput import Objective, engines_needed, goodput_per_s, highest
from rooflines.serving.lengths import Array
from rooflines.serving.queueing import exceeded_wait_s, mean_prompt_wait_s, weighted_quantile
from rooflines.serving.steady import OpenState, open_state, saturation_per_s
from rooflines.serving.workload import Workload


@dataclass(frozen=True, slots=True)
class PrefillPool:
    """Engines that only process prompts.

    Attributes:
        prompt_s: shape (K,), time of each kind of prompt (s).
        weights: shape (K,), share of each.
        transfer_s: time to send the mean prompt's keys and values to a decode engine, the drafter's too (s).
        request_s: time of a request on the server's host (s).
    """

    prompt_s: Array
    weights: Array
    transfer_s: float
    request_s: float = 0.0

    @property
    def saturation_per_s(self) -> float:
        """Prompts that one engine processes at most (requests/s)."""
        return 1.0 / float(self.prompt_s @ self.weights)

    def ttft_s(self, rate_per_s: float) -> float:
        """Mean time to first token at a rate an engine (s); infinite where it is overloaded."""
        load = rate_per_s / self.saturation_per_s
        wait = mean_prompt_wait_s(load, rate_per_s, self.prompt_s, self.weights)
        return wait + float(self.prompt_s @ self.weights) + self._beside_s

    def ttft_quantile_s(self, rate_per_s: float, share: float) -> float:
        """Time to first token that about this share of the requests does not exceed (s)."""
        load = rate_per_s / self.saturation_per_s
        wait = mean_prompt_wait_s(load, rate_per_s, self.prompt_s, self.weights)
        if math.isinf(wait):
            return wait
        queue = exceeded_wait_s(load, wait / max(load, 1e-300), share)
        return queue + weighted_quantile(self.prompt_s, self.weights, share) + self._beside_s

    @property
    def _beside_s(self) -> float:
        """What every request takes beside the engine (s)."""
        return self.transfer_s + self.request_s


@dataclass(frozen=True, slots=True)
class Load:
    """A fleet under a load.

    Attributes:
        state: one decode engine (or one that does both).
        ttft_s: mean time to first token (s).
        ttft_quantile_s: the same at the objective's share (s).
    """

    state: OpenState
    ttft_s: float
    ttft_quantile_s: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """Equal engines that serve one workload.

    Attributes:
        engine: each of them, as far as it decodes.
        curve: its steps.
        decode_tokens: D of the workload.
        pool: the prefill engines beside them; None where each engine does both.
    """

    engine: Engine
    curve: StepCurve
    decode_tokens: float
    pool: PrefillPool | None = None

    @property
    def cards_per_engine(self) -> float:
        """Devices whose sequences one batch holds; groups that share experts have a batch each."""
        return float(self.engine.target.parallelism.tensor)

    @property
    def saturation_per_s(self) -> float:
        """Requests that one decode engine carries at most (requests/s)."""
        return saturation_per_s(self.curve, self.decode_tokens)

    def goodput_per_s(self, objective: Objective) -> float:
        """Requests that one decode engine carries within the objective (requests/s)."""
        if self.pool is None:
            return goodput_per_s(self.curve, self.decode_tokens, objective)
        return goodput_per_s(self.curve, self.decode_tokens, replace(objective, ttft_s=None))

    def prefill_goodput_per_s(self, objective: Objective) -> float:
        """Requests that one prefill engine carries within the objective; infinite where there is none."""
        pool = self.pool
        if pool is None:
            return math.inf
        if objective.ttft_s is None:
            return pool.saturation_per_s
        return highest(
            lambda rate: objective.kept_by_ttft(pool.ttft_quantile_s(rate, objective.share)),
            pool.saturation_per_s,
        )

    def cards_per_request_per_s(self, objective: Objective) -> float:
        """Devices that a request per second takes at goodput, prefill engines included; may be infinite."""
        rates = [self.goodput_per_s(objective), self.prefill_goodput_per_s(objective)]
        return sum(self.cards_per_engine / rate if rate > 0 else math.inf for rate in rates)

    def needed(self, rate_per_s: float, objective: Objective) -> tuple[int, int] | None:
        """Decode and prefill engines that carry a load within the objective; None where none can."""
        replicas = self.engine.target.parallelism.replicas
        decode = engines_needed(rate_per_s, self.goodput_per_s(objective))
        prefill = (
            0 if self.pool is None else engines_needed(rate_per_s, self.prefill_goodput_per_s(objective))
        )
        if decode is None or prefill is None:
            return None
        return math.ceil(decode / replicas) * replicas, math.ceil(prefill / replicas) * replicas

    def cards(self, engines: tuple[int, int]) -> int:
        """Devices of so many decode and prefill engines."""
        return round(sum(engines) * self.cards_per_engine)

    def under(self, rate_per_s: float, engines: tuple[int, int], objective: Objective) -> Load | None:
        """The fleet at a load; None where it is overloaded.

        Args:
            rate_per_s: of all engines together (requests/s).
            engines: decode and prefill engines.
            objective: whose share the quantile is taken at.
        """
        decode, prefill = engines
        state = open_state(self.curve, self.decode_tokens, rate_per_s / decode)
        if state is None:
            return None
        if self.pool is None:
            return Load(state, state.ttft_s, state.ttft_quantile_s(objective.share))
        each = rate_per_s / prefill
        if each >= self.pool.saturation_per_s:
            return None
        return Load(state, self.pool.ttft_s(each), self.pool.ttft_quantile_s(each, objective.share))


def make_fleet(engine: Engine, workload: Workload, transfer_bytes_per_s: float | None = None) -> Fleet:
    """Price an engine for a workload.

    Args:
        engine: as it is served.
        workload: what it serves.
        transfer_bytes_per_s: bandwidth from a prefill engine to a decode engine; with it they are apart.

    Raises:
        DoesNotFitError: the memory does not hold one sequence.
        InputError: a step has no room for a prompt, or the link carries nothing.
    """
    if transfer_bytes_per_s is None:
        return Fleet(engine, step_curve(engine, workload), workload.decode_tokens)
    if not transfer_bytes_per_s > 0:
        raise InputError(
            f"the link from prefill to decode engines carries {transfer_bytes_per_s:g} bytes/s: it must be "
            "above 0, such as '50 GB/s'"
        )
    alone = step_curve(replace(engine, max_sequences=1), workload)
    target = engine.target
    sent = kv_cache_bytes(
        target.model,
        1.0,
        workload.mean_prompt,
        target.precision,
        target.parallelism,
        encoder_positions=target.encoder_positions,
    )
    if engine.drafter is not None:
        sent = sent + engine.drafter.kv_cache_bytes(1.0, workload.mean_prompt)
    pool = PrefillPool(
        alone.launched().prompt_extra_s[0],
        alone.prompt_weights,
        float(sent) / transfer_bytes_per_s,
        engine.host.request_s,
    )
    apart = replace(engine, prefill_apart=True)
    return Fleet(apart, step_curve(apart, workload), workload.decode_tokens, pool)
