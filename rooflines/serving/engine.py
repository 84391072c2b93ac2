"""An engine as a curve: what a step takes and yields at every batch, and what a prompt adds to it.

Everything that the steady state needs is here, priced once; whatever makes such a curve (a roofline, a
measured table) can be served.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import DoesNotFitError, InputError
from rooflines.serving.host import AT_ONCE, Host
from rooflines.serving.memory import DEFAULT_RESERVE, largest_batch
from rooflines.serving.mixed import chunk_extra_s
from rooflines.serving.schedule import PLAIN, Schedule
from rooflines.serving.workload import Workload
from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.timing.deployment import Deployment

Array = NDArray[np.float64]

# vLLM's defaults on devices of 70 GiB or more when it serves: max_num_seqs 1024 (256 below), and
# max_num_batched_tokens 8192 (2048 below); get_batch_defaults of
# https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py
DEFAULT_SEQUENCES: Final = 256
DEFAULT_BATCHED_TOKENS: Final = 8192
# Batches at which a chunk is priced; between them its time is interpolated, as it changes slowly.
_CHUNK_BATCHES: Final = 10


@dataclass(frozen=True, slots=True)
class Engine:
    """How a model is served.

    Attributes:
        target: the model on a group of devices.
        drafter: who drafts, if anyone does.
        acceptance: how often drafts are accepted; needed with a drafter.
        schedule: draft length by batch.
        cycle_host: host time of a plain step, and of a cycle outside draft and verify.
        max_sequences: most sequences that run at once.
        batched_tokens: most positions in a step; decode comes first, chunks of prompts fill up.
        reserve: share of the memory kept free.
        prefill_apart: prompts are processed by other devices, so that no chunk rides along with a step.
        host: what the server's host adds to a request.
    """

    target: Deployment
    drafter: Drafter | None = None
    acceptance: Rates | None = None
    schedule: Schedule = PLAIN
    cycle_host: CycleHost = DEVICE_ALONE
    max_sequences: int = DEFAULT_SEQUENCES
    batched_tokens: int = DEFAULT_BATCHED_TOKENS
    reserve: float = DEFAULT_RESERVE
    prefill_apart: bool = False
    host: Host = AT_ONCE

    def __post_init__(self) -> None:
        if self.max_sequences < 1 or self.batched_tokens < 1:
            raise InputError(
                f"at most {self.max_sequences} sequences and {self.batched_tokens} tokens a step: both must "
                "be 1 or more"
            )
        if self.drafter is not None and self.acceptance is None:
            raise InputError(f"{self.drafter.name} drafts, but how often drafts are accepted is not given")
        if self.drafter is None and any(self.schedule.lengths):
            raise InputError("a draft length above 0 needs a drafter")


@dataclass(frozen=True, slots=True)
class StepCurve:
    """Steps of one engine by the number of sequences that are being decoded; index 0 is an idle engine.

    Attributes:
        step_s: shape (N + 1,), a decode step or a whole draft-and-verify cycle (s).
        tokens_per_step: shape (N + 1,), tau, tokens that each sequence gets out of one.
        draft_length: shape (N + 1,), gamma; 0 where the engine decodes plainly.
        prompt_extra_s: shape (N + 1, K), time that one prompt of each kind adds to steps, its chunks
            together, the drafter's pass over it included (s); of the device, see `launched`.
        prompt_chunks: shape (N + 1, K), steps over which the prompt is spread.
        prompt_weights: shape (K,), share of each kind of prompt.
        chunk_share: shape (N + 1,), part of a full chunk that the mean prompt fills: several short prompts
            share a step.
        max_sequences: N, most sequences that run at once, prompts in work included.
        host: what the server's host adds.
    """

    step_s: Array
    tokens_per_step: Array
    draft_length: Array
    prompt_extra_s: Array
    prompt_chunks: Array
    prompt_weights: Array
    chunk_share: Array
    max_sequences: int
    host: Host = AT_ONCE

    @property
    def extra_s(self) -> Array:
        """M, time that the mean prompt adds to steps; shape (N + 1,) (s)."""
        return np.asarray(self.prompt_extra_s @ self.prompt_weights)

    @property
    def chunks(self) -> Array:
        """Steps over which the mean prompt is spread; shape (N + 1,)."""
        return np.asarray(self.prompt_chunks @ self.prompt_weights)

    @property
    def prompt_s(self) -> Array:
        """From the first chunk of a prompt to the end of its last, by kind; shape (N + 1, K) (s)."""
        return self.prompt_extra_s + self.prompt_chunks * self.step_s[:, None]

    @property
    def chunk_step_s(self) -> Array:
        """A step that carries a chunk; shape (N + 1,) (s)."""
        return self.step_s + self.extra_s / np.maximum(self.chunks, 1e-300)

    def launched(self, together: int = 1) -> Self:
        """The same with steps that take as long as the host needs to launch them.

        Args:
            together: prompts that share a step, where a step holds several.
        """
        if not self.host.launch_s:
            return self
        sharing = np.where(self.prompt_chunks > 1.0, 1.0, float(together))
        spare = np.maximum(self.host.launch_s - self.step_s, 0.0)[:, None] * self.prompt_chunks / sharing
        return replace(
            self,
            prompt_extra_s=np.maximum(self.prompt_extra_s, spare),
            host=replace(self.host, launch_s=0.0),
        )


def most_sequences(engine: Engine, workload: Workload) -> int:
    """Sequences that run at once: what the engine allows and what the memory holds at the mean context.

    Paged caches grow with the sequence, so the mean over its life counts (a trace's tail may preempt).

    Raises:
        DoesNotFitError: not even one sequence of the mean, or of the greatest, length fits.
    """
    held = positions_held(engine)
    room, alone = (
        largest_batch(engine.target, engine.drafter, context, held, reserve=engine.reserve)
        for context in (workload.mean_context, workload.longest)
    )
    if room < 1 or alone < 1:
        cards = engine.target.parallelism.devices
        raise DoesNotFitError(
            f"{engine.target.model.name} with one sequence of {workload.longest:,.0f} positions does not fit "
            f"on {cards} x {engine.target.machine.profile.name}: use more devices, a smaller weight or KV "
            "format, or shorter requests"
        )
    return min(room, engine.max_sequences)


def positions_held(engine: Engine) -> float:
    """Drafted positions of a sequence that are cached until they are judged: a tree holds all its nodes."""
    longest = float(max(engine.schedule.lengths))
    if engine.drafter is None or not longest:
        return 0.0
    width = engine.drafter.draft(1.0, 1.0, longest).verify_width
    return max(float(np.asarray(width)) - 1.0, longest)


def step_curve(engine: Engine, workload: Workload) -> StepCurve:
    """Price every batch from one sequence to the most that run at once.

    Raises:
        DoesNotFitError: the memory does not hold one sequence.
        InputError: the token budget of a step leaves no room for a prompt.
    """
    most = most_sequences(engine, workload)
    batches = np.arange(1, most + 1, dtype=float)
    step_s, tokens, lengths = _decode_steps(engine, workload.mean_context, batches)
    prompts, weights = workload.prompt_slices()
    if engine.prefill_apart:
        none = np.zeros((most + 1, weights.size))
        return StepCurve(step_s, tokens, lengths, none, none, weights, np.zeros(most + 1), most, engine.host)
    probes = np.unique(np.concatenate([[0.0, 1.0], np.geomspace(1, most, _CHUNK_BATCHES).round()]))
    priced = _prompts_at(engine, workload, prompts, probes, lengths[probes.astype(np.int64)])
    every = np.arange(most + 1, dtype=float)
    extras, chunks, filled = (
        np.stack([np.interp(every, probes, kind) for kind in values.T], axis=1) for values in priced
    )
    return StepCurve(step_s, tokens, lengths, extras, chunks, weights, filled @ weights, most, engine.host)


def _decode_steps(engine: Engine, context: float, batches: Array) -> tuple[Array, Array, Array]:
    """Step time, tokens and draft length at each batch; at index 0 no time passes."""
    edge = np.zeros(1)
    if engine.drafter is None or engine.acceptance is None:
        step = engine.cycle_host.plain(engine.target.decode(batches, context))
        seconds = np.broadcast_to(step.seconds, batches.shape)
        ones = np.ones(batches.size + 1)
        return np.concatenate([edge, seconds]), ones, np.zeros(batches.size + 1)
    lengths = np.asarray(engine.schedule.lengths, dtype=float)
    shape = (batches.size, lengths.size)
    times = cycle_times(
        engine.target,
        engine.drafter,
        batches[:, None],
        context,
        lengths[None, :],
        host=engine.cycle_host,
    )
    outcome = cycle(times, engine.acceptance)
    seconds = np.broadcast_to(outcome.cycle_s, shape)
    tokens = np.broadcast_to(outcome.tokens_per_cycle, shape)
    rate = np.where(engine.schedule.allowed(batches), tokens / seconds, -np.inf)
    best = rate.argmax(axis=1)
    rows = np.arange(batches.size)
    chosen = lengths[best]
    return (
        np.concatenate([edge, seconds[rows, best]]),
        np.concatenate([np.ones(1), tokens[rows, best]]),
        np.concatenate([chosen[:1], chosen]),
    )


def _prompts_at(
    engine: Engine, workload: Workload, prompts: Array, batches: Array, lengths: Array
) -> tuple[Array, Array, Array]:
    """What prompts add to steps: extra time (s), chunks, full chunks; shape (P, K) each.

    Args:
        engine: as it is served.
        workload: what it serves.
        prompts: shape (K,), lengths (tokens).
        batches: shape (P,), sequences that are decoded; 0 is an idle engine.
        lengths: shape (P,), draft length at each. Without drafts the drafter's cache is not filled either.
    """
    widths, ancestors = _widths(engine, workload.mean_context, batches, lengths)
    room = _room(engine, batches, widths)
    cached = np.floor(workload.prefix_hit * prompts)
    new = np.maximum(prompts - cached, 1.0)
    filled = new / room[:, None]
    count = np.ceil(filled)
    # All chunks of all prompts at all batches in one row: where each belongs, and its place in its prompt.
    chunks = count.ravel().astype(np.int64)
    owner = np.repeat(np.arange(chunks.size), chunks)
    index = np.arange(owner.size) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    at, kind = np.divmod(owner, prompts.size)
    sizes = np.minimum(new[kind] - index * room[at], room[at])
    before = cached[kind] + index * room[at]
    target = engine.target
    chunk = target.prefill(1.0, sizes, before)
    step = target.verify(
        np.maximum(batches, 1.0)[at],
        workload.mean_context,
        widths[at],
        None if ancestors is None else ancestors[at],
    )
    extra = np.where(batches[at] > 0, chunk_extra_s(step, chunk, target.machine), chunk.seconds)
    if engine.drafter is not None:
        extra = extra + np.where(lengths[at] > 0, engine.drafter.prefill(sizes, before), 0.0)
    extras = np.zeros(count.shape)
    np.add.at(extras, (at, kind), extra)
    return extras, count, filled


def _widths(engine: Engine, context: float, batches: Array, lengths: Array) -> tuple[Array, Array | None]:
    """Positions of a sequence in a step, and the pairs among those of a tree; shape (P,) each."""
    plain = np.ones(batches.shape)
    if engine.drafter is None:
        return plain, None
    draft = engine.drafter.draft(np.maximum(batches, 1.0), context, lengths)
    drafting = (batches > 0) & (lengths > 0)
    widths = np.where(drafting, draft.sent_width(), plain)
    return widths, None if draft.ancestors is None else np.where(drafting, draft.ancestors, plain)


def _room(engine: Engine, batches: Array, widths: Array) -> Array:
    """Positions that are left for prompts beside each batch; shape (P,).

    Raises:
        InputError: none.
    """
    room = engine.batched_tokens - batches * widths
    if np.any(room < 1):
        full = int(np.argmax(room < 1))
        raise InputError(
            f"{batches[full]:.0f} sequences of {widths[full]:g} positions fill the {engine.batched_tokens} "
            "tokens of a step, so that no prompt can start: allow more tokens or fewer sequences"
        )
    return np.asarray(room)
