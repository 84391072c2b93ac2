"""One drafter of a plan over the grid of batches and draft lengths, as tidy rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.serving.memory import largest_batch, memory_fit
from rooflines.speculation.crossover import BatchSearch, Crossover, end_of, search_batches
from rooflines.speculation.cycle import (
    Cycle,
    CycleTimes,
    cycle,
    cycle_break_even_acceptance,
    cycle_break_even_cost_ratio,
    cycle_times,
)
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.host import DEVICE_ALONE, CycleHost
from rooflines.speculation.schedule import best_by_batch
from rooflines.studies.plan_acceptance import GivenAcceptance
from rooflines.studies.plan_extras import Extras, asked_for
from rooflines.studies.plan_intervals import interval_columns
from rooflines.studies.plan_steps import Timing
from rooflines.timing.deployment import Deployment

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion

# The search for the crossover ends at the largest batch that fits, and here at the latest: engines cap
# concurrent sequences well below (vLLM's `max_num_seqs` defaults to 256 or 1024).
LARGEST_SEARCHED: Final = 2048
# What a draft of a schedule may lose against the best of its batch: less than predictions resolve, since the
# premium of a verify pass is off by 1.3 to 5 % in the median (reports/accuracy).
SCHEDULE_SLACK: Final = 0.02
# Columns that hold even where the configuration does not fit.
_WITHOUT_TIME: Final = ("acceptance", "tokens_per_cycle", "extrapolated")
Grid = np.ndarray[tuple[int, ...], Any]


@dataclass(frozen=True, slots=True)
class Priced:
    """One drafter over the grid of batches (rows) and draft lengths (columns).

    Attributes:
        name: of the drafter.
        is_tree: whether it proposes trees.
        rows: one a batch and draft length.
        memory: one a batch.
        search: speedups of every batch up to the largest that fits.
        crossover: where it stops paying.
        extras: what else was asked for.
    """

    name: str
    is_tree: bool
    rows: list[dict[str, Any]]
    memory: list[dict[str, Any]]
    search: BatchSearch
    crossover: Crossover
    extras: Extras


def price(
    question: PlanQuestion,
    target: Deployment,
    drafter: Drafter,
    given: GivenAcceptance,
    timing: Timing,
    *,
    host: CycleHost = DEVICE_ALONE,
) -> Priced:
    """Price a drafter over the whole grid at once.

    Args:
        question: what is asked.
        target: what stands in memory.
        drafter: who proposes.
        given: its acceptance.
        timing: what times the target.
        host: what it adds to passes and cycles.

    Raises:
        InputError: a batch or width beyond those that were measured.
    """
    lengths = drafter.draft_lengths(question.draft_lengths)
    batches = np.asarray(question.batches, dtype=float)[:, None]
    gammas = np.asarray(lengths, dtype=float)[None, :]
    context = float(question.context)
    verified = verify_length_of(question, drafter)
    times = cycle_times(timing.target, drafter, batches, context, gammas, host=host, verify_length=verified)
    held = max(float(np.max(times.draft.verify_width)) - 1.0, float(max(lengths)))
    room = largest_batch(target, drafter, question.context, held, reserve=question.memory_reserve)
    memory = _memory_rows(question, target, drafter, held, room)
    outcome = cycle(times, given.rates)
    ends = interval_columns(target.machine, times, outcome)
    grids = {**_grids(question, lengths, times, given, outcome), **_over(question, lengths, ends)}
    fits = [row["fits"] for row in memory]
    search = search_batches(
        timing.target,
        drafter,
        given.rates,
        lengths,
        context,
        largest_batch=min(room, timing.largest_batch or LARGEST_SEARCHED, LARGEST_SEARCHED),
        host=host,
        verify_length=verified,
    )
    rows = _rows(question, lengths, grids, fits, drafter=drafter.name, basis=timing.basis)
    return Priced(
        name=drafter.name,
        is_tree=times.draft.tree is not None,
        rows=rows,
        memory=memory,
        search=search,
        crossover=end_of(search, timing.target, drafter, context, verify_length=verified),
        extras=asked_for(
            question, timing.target, drafter, given, tree=times.draft.tree, host=host, rows=rows
        ),
    )


def verify_length_of(question: PlanQuestion, drafter: Drafter) -> int | None:
    """The verify length that was asked for; None for a tree, of which its nodes say it."""
    if question.verify_length is None or drafts_tree(drafter, question.draft_lengths):
        return None
    return question.verify_length


def drafts_tree(drafter: Drafter, asked: Sequence[int]) -> bool:
    """Whether a drafter proposes trees."""
    return drafter.draft(1.0, 0.0, float(max(drafter.draft_lengths(asked)))).tree is not None


def _grids(
    question: PlanQuestion,
    lengths: Sequence[int],
    times: CycleTimes,
    given: GivenAcceptance,
    outcome: Cycle,
) -> dict[str, Grid]:
    """Every number of the table over batches (rows) and draft lengths (columns)."""
    batches = np.asarray(question.batches, dtype=float)[:, None]
    tau, length = np.asarray(outcome.tokens_per_cycle), np.asarray(outcome.draft_length)
    free_verify = tau / (length * outcome.cost_ratio + 1.0)
    grids = {
        "acceptance": (tau - 1.0) / np.maximum(length, 1.0),
        "tokens_per_cycle": tau,
        "target_step_s": outcome.target_step_s,
        "draft_s": outcome.draft_s,
        "verify_s": outcome.verify_s,
        "overhead_s": outcome.overhead_s,
        "cycle_cost": outcome.cycle_cost,
        "cost_ratio": outcome.cost_ratio,
        "speedup": outcome.speedup,
        "leviathan_speedup": free_verify if times.draft.tree is None else np.nan,
        "tokens_per_s_per_sequence": 1.0 / np.asarray(outcome.time_per_token_s),
        "tokens_per_s": batches / np.asarray(outcome.time_per_token_s),
        "break_even_acceptance": cycle_break_even_acceptance(times),
        "break_even_cost_ratio": cycle_break_even_cost_ratio(outcome),
        "verify_width": outcome.verify_width,
        "extrapolated": given.by_depth.is_extrapolated(np.asarray(times.verify_length)),
        "target_bound": times.target.bound,
        "verify_bound": times.verify.bound,
    }
    return _over(question, lengths, grids)


def _over(
    question: PlanQuestion, lengths: Sequence[int], columns: Mapping[str, Number | str | NDArray[np.str_]]
) -> dict[str, Grid]:
    """Columns over batches (rows) and draft lengths (columns)."""
    shape = (len(question.batches), len(lengths))
    return {key: np.broadcast_to(np.asarray(value), shape) for key, value in columns.items()}


def _rows(
    question: PlanQuestion,
    lengths: Sequence[int],
    grids: dict[str, Grid],
    fits: list[bool],
    *,
    drafter: str,
    basis: str,
) -> list[dict[str, Any]]:
    """The grid as rows; what does not fit gets no speed."""
    rows = []
    for i, batch in enumerate(question.batches):
        for j, draft_length in enumerate(lengths):
            row = {
                "drafter": drafter,
                "batch": batch,
                "context": question.context,
                "draft_length": draft_length,
                "verify_width": _cell(grids["verify_width"][i, j]),
            }
            for key, grid in grids.items():
                if key not in row:
                    row[key] = _cell(grid[i, j]) if fits[i] or key in _WITHOUT_TIME else None
            rows.append({**row, "basis": basis})
    return rows


def _cell(value: np.generic) -> Any:  # noqa: ANN401 - whatever a table cell holds
    plain = value.item()
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def _memory_rows(
    question: PlanQuestion, target: Deployment, drafter: Drafter, held: float, room: int
) -> list[dict[str, Any]]:
    """Memory of one device at each batch, for the longest draft or largest tree."""
    fit = memory_fit(
        target,
        drafter,
        np.asarray(question.batches, dtype=float),
        float(question.context),
        held,
        reserve=question.memory_reserve,
    )
    names = [field.name for field in fields(fit)]
    columns = {name: np.broadcast_to(getattr(fit, name), len(question.batches)) for name in (*names, "fits")}
    return [
        {
            "drafter": drafter.name,
            "batch": batch,
            **{name: values[i].item() for name, values in columns.items()},
            "largest_batch": room,
        }
        for i, batch in enumerate(question.batches)
    ]


def schedule(priced: Sequence[Priced]) -> list[dict[str, Any]]:
    """Drafter and draft length of every batch that was searched, in the fewest ranges near the best.

    `speedup` is the least among the batches of an entry; draft length 0 means plain decoding. No choice is
    slower than plain decoding.
    """
    longest = max((one.search.largest_batch for one in priced), default=0)
    if not longest:
        return []
    choices: list[tuple[str | None, int]] = [(None, 0)]
    columns = [np.ones(longest)]
    for one in priced:
        for index, length in enumerate(one.search.draft_lengths):
            column = np.full(longest, -np.inf)
            found = one.search.speedups[:, index]
            column[: one.search.largest_batch] = np.where(found >= 1.0, found, -np.inf)
            choices.append((one.name, length))
            columns.append(column)
    return [
        {
            "first_batch": entry.first_batch,
            "last_batch": entry.last_batch,
            "drafter": choices[entry.choice][0],
            "draft_length": choices[entry.choice][1],
            "speedup": entry.speedup,
        }
        for entry in best_by_batch(range(1, longest + 1), np.stack(columns, axis=1), SCHEDULE_SLACK)
    ]
