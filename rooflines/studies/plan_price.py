"""One drafter of a plan over the grid of batches and draft lengths, as tidy rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.serving.memory import largest_batch, memory_fit
from rooflines.speculation.branches import BranchAcceptance
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
from rooflines.speculation.schedule import Steadiness, steady_by_batch
from rooflines.studies.plan_acceptance import GivenAcceptance
from rooflines.studies.plan_extras import Extras, asked_for
from rooflines.studies.plan_intervals import interval_columns
from rooflines.studies.plan_steps import Timing
from rooflines.studies.plan_trees import BestTree, best_trees, grown_by
from rooflines.timing.deployment import Deployment

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion

# The search for the crossover ends at the largest batch that fits, and here at the latest: engines cap
# concurrent sequences well below (vLLM's `max_num_seqs` defaults to 256 or 1024).
LARGEST_SEARCHED: Final = 2048
# What a draft of a schedule may lose against the best of its batch: less than intervals of a speedup span to
# either side (some 15 %), so that no prediction tells the two apart.
SCHEDULE_SLACK: Final = 0.1
# Another range must gain 1 % over a doubling of the batch. One that drafts more must gain 5 %, the most that
# the premium of a verify pass is off in the median (1.3 to 5 %, reports/accuracy): edges of tiles gain less.
_STEADINESS: Final = Steadiness(SCHEDULE_SLACK, shorter=0.01, longer=0.05)
# Columns that hold even where the configuration does not fit.
_WITHOUT_TIME: Final = ("accepted_per_drafted", "tokens_per_cycle", "extrapolated")
Grid = np.ndarray[tuple[int, ...], Any]


@dataclass(frozen=True, slots=True)
class Priced:
    """One drafter over the grid of batches (rows) and draft lengths (columns).

    Attributes:
        name: of the drafter.
        is_tree: whether it proposes trees.
        rows: one a batch and draft length.
        memory: one a batch.
        searches: speedups of every batch up to the largest that fits; of its own tree, then of best trees.
        crossover: where it stops paying, best trees included.
        best_trees: the best tree, one a batch, where asked for.
        extras: what else was asked for.
    """

    name: str
    is_tree: bool
    rows: list[dict[str, Any]]
    memory: list[dict[str, Any]]
    searches: tuple[Searched, ...]
    crossover: Crossover
    best_trees: list[dict[str, Any]]
    extras: Extras


@dataclass(frozen=True, slots=True)
class Searched:
    """What every batch gains with one drafter and one size of its trees.

    Attributes:
        batches: speedups by batch and draft length.
        verify_widths: positions verified, one a draft length.
        crossover: where it stops paying.
    """

    batches: BatchSearch
    verify_widths: tuple[int, ...]
    crossover: Crossover


@dataclass(frozen=True, slots=True)
class Pricing:
    """What prices a drafter, whatever the size of its trees.

    Attributes:
        question: what is asked.
        target: what stands in memory.
        given: the drafter's acceptance.
        timing: what times the target.
        host: what it adds to passes and cycles.
    """

    question: PlanQuestion
    target: Deployment
    given: GivenAcceptance
    timing: Timing
    host: CycleHost


def price(
    question: PlanQuestion,
    target: Deployment,
    drafter: Drafter,
    given: GivenAcceptance,
    timing: Timing,
    *,
    host: CycleHost = DEVICE_ALONE,
) -> Priced:
    """Price a drafter over the whole grid at once, and with best trees where asked for.

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
    how = Pricing(question, target, given, timing, host)
    lengths = drafter.draft_lengths(question.draft_lengths)
    tree = drafter.draft(1.0, 0.0, float(max(lengths))).tree
    rows, memory = _table(how, drafter, question.batches, lengths)
    searches = [_searched(how, drafter, lengths, memory[0]["largest_batch"])]
    trees: list[BestTree] = []
    if question.best_tree and tree is not None:
        fitting = [row["batch"] for row in memory if row["fits"]]
        trees = _best_trees(how, drafter, tree.top_k, fitting, searches[0].batches.largest_batch)
        for growth, depth in dict.fromkeys((one.growth, one.depth) for one in trees):
            grown = grown_by(drafter, growth)
            searches.append(_searched(how, grown, (depth,), _room(how, grown, float(growth.nodes))))
    priced = [_tree_row(how, drafter, one) for one in trees if one.batch in question.batches]
    best = [row for row in priced if row["speedup"] is not None]
    return Priced(
        name=drafter.name,
        is_tree=tree is not None,
        rows=rows,
        memory=memory,
        searches=tuple(searches),
        crossover=_last([one.crossover for one in searches]),
        best_trees=best,
        extras=asked_for(question, timing.target, drafter, given, tree=tree, host=host, rows=[*rows, *best]),
    )


def _best_trees(
    how: Pricing, drafter: Drafter, top_k: int, asked: Sequence[int], largest: int
) -> list[BestTree]:
    """The best tree of each batch asked for, and of the powers of two between, which a schedule may need."""
    rates = how.given.rates
    if not isinstance(rates, BranchAcceptance):
        return []
    powers = [2**power for power in range(largest.bit_length())]
    return best_trees(
        how.timing.target,
        drafter,
        top_k,
        rates,
        batches=sorted({*asked, *powers}),
        context=float(how.question.context),
        depths=drafter.draft_lengths(how.question.draft_lengths),
        host=how.host,
    )


def _tree_row(how: Pricing, drafter: Drafter, best: BestTree) -> dict[str, Any]:
    """A best tree as a row of the plan, with its nodes by level."""
    rows, _ = _table(how, grown_by(drafter, best.growth), (best.batch,), (best.depth,))
    return {**rows[0], "nodes": best.growth.nodes, "widths": list(best.widths)}


def _table(
    how: Pricing, drafter: Drafter, batches: Sequence[int], lengths: Sequence[int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows over batches and draft lengths, and the memory of each batch."""
    question, target = replace(how.question, batches=tuple(batches)), how.target
    at = np.asarray(batches, dtype=float)[:, None]
    gammas = np.asarray(lengths, dtype=float)[None, :]
    verified = verify_length_of(question, drafter)
    times = cycle_times(
        how.timing.target,
        drafter,
        at,
        float(question.context),
        gammas,
        host=how.host,
        verify_length=verified,
    )
    held = max(float(np.max(times.draft.verify_width)) - 1.0, float(max(lengths)))
    memory = _memory_rows(question, target, drafter, held, _room(how, drafter, held))
    outcome = cycle(times, how.given.rates)
    ends = interval_columns(target.machine, times, outcome)
    grids = {**_grids(question, lengths, times, how.given, outcome), **_over(question, lengths, ends)}
    fits = [row["fits"] for row in memory]
    rows = _rows(question, lengths, grids, fits, drafter=drafter.name, basis=how.timing.basis)
    return rows, memory


def _room(how: Pricing, drafter: Drafter, held: float) -> int:
    """The largest batch that fits, with so many drafted positions held."""
    question = how.question
    return largest_batch(how.target, drafter, question.context, held, reserve=question.memory_reserve)


def _searched(how: Pricing, drafter: Drafter, lengths: Sequence[int], room: int) -> Searched:
    """Speedups of every batch up to the largest that fits, was measured or is searched."""
    question, timer = how.question, how.timing.target
    verified, context = verify_length_of(question, drafter), float(question.context)
    found = search_batches(
        timer,
        drafter,
        how.given.rates,
        lengths,
        context,
        largest_batch=min(room, how.timing.largest_batch or LARGEST_SEARCHED, LARGEST_SEARCHED),
        host=how.host,
        verify_length=verified,
    )
    gammas = np.asarray(found.draft_lengths, dtype=float)
    most = np.inf if verified is None else verified + 1.0
    widths = np.minimum(drafter.draft(1.0, context, gammas).verify_width, most) if gammas.size else gammas
    return Searched(
        found,
        tuple(round(float(width)) for width in np.broadcast_to(widths, gammas.shape)),
        end_of(found, timer, drafter, context, verify_length=verified),
    )


def _last(ends: Sequence[Crossover]) -> Crossover:
    """The end that comes last; one without an end comes after all."""
    endless = [end for end in ends if end.batch is None]
    if endless:
        return max(endless, key=lambda end: end.searched_to)
    return max(ends, key=lambda end: end.batch or 0)


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
        "accepted_per_drafted": (tau - 1.0) / np.maximum(length, 1.0),
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
                "verify_width": round(float(grids["verify_width"][i, j])),
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
    """Drafter and draft length of every batch that was searched, near the best, in few ranges.

    Drafts get longer with the batch only for a gain that predictions resolve.

    `speedup` is the least among the batches of an entry; draft length 0 means plain decoding. No choice is
    slower than plain decoding.
    """
    searches = [(one.name, found) for one in priced for found in one.searches]
    longest = max((found.batches.largest_batch for _, found in searches), default=0)
    if not longest:
        return []
    choices: list[tuple[str | None, int, int]] = [(None, 0, 1)]
    columns = [np.ones(longest)]
    for name, one in searches:
        widths = zip(one.batches.draft_lengths, one.verify_widths, strict=True)
        for index, (length, width) in enumerate(widths):
            column = np.full(longest, -np.inf)
            found = one.batches.speedups[:, index]
            column[: found.size] = np.where(found >= 1.0, found, -np.inf)
            choices.append((name, length, width))
            columns.append(column)
    return [
        {
            "first_batch": entry.first_batch,
            "last_batch": entry.last_batch,
            "drafter": choices[entry.choice][0],
            "draft_length": choices[entry.choice][1],
            "verify_width": choices[entry.choice][2],
            "speedup": entry.speedup,
        }
        for entry in steady_by_batch(
            range(1, longest + 1),
            np.stack(columns, axis=1),
            [length for _, length, _ in choices],
            _STEADINESS,
        )
    ]
