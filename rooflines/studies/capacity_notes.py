"""What is odd about a capacity question, or about its answer: the warnings beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rooflines.models.spec import ModelSpec
from rooflines.serving.goodput import Objective
from rooflines.serving.trace import Trace
from rooflines.serving.workload import Workload
from rooflines.studies.capacity_question import ServedOption
from rooflines.studies.capacity_words import who
from rooflines.units import format_quantity

Row = Mapping[str, Any]
# Beyond it an engine queues for long, and a small error of its times is an overload.
_NEAR_FULL: Final = 0.95
# An engine whose goodput is this share of its saturation rate is bounded by its size, not by a promise.
_BOUNDED: Final = 0.9
# Gaps between arrivals twice as variable as Poisson's make queues that the steady state does not see.
_BURSTY: Final = 2.0


def beyond_positions(model: ModelSpec, workload: Workload) -> list[str]:
    """Requests that are longer than what the config of the model states."""
    most = model.max_positions
    if most is None or workload.longest <= most:
        return []
    note = (
        f"the longest request takes {workload.longest:,.0f} positions, prompt and output together, and the "
        f"config of {model.name} states {most:,}: engines refuse or cut such requests unless told otherwise"
    )
    return [note]


def uncompared_cost(options: Iterable[ServedOption], *, loaded: bool) -> list[str]:
    """Prices that are given and that no cost follows from.

    Args:
        options: those that are answered.
        loaded: whether there is a load or a promise, and so a state of which tokens cost something.
    """
    options = tuple(options)
    bare = dict.fromkeys(option.name for option in options if option.price_per_hour is None)
    if all(option.price_per_hour is None for option in options):
        return []
    if not loaded:
        return ["no cost follows from the price without a load or a promise: see --rate and --slo-tpot"]
    if not bare:
        return []
    note = (
        f"cost is not compared, as no price is given for {', '.join(bare)}: --price holds for the first "
        "option and others on its device; another takes its own, as in --option 'hardware=NAME;price=4'"
    )
    return [note]


def long_waits(rows: Sequence[Row], objective: Objective) -> list[str]:
    """Fleets that are sized so close to an overload that first tokens wait."""
    if objective.ttft_s is not None:
        return []
    return [
        f"engines of {who(row)} run at {row['utilisation']:.1%} of what they carry, "
        f"so that first tokens wait {format_quantity(row['ttft_s'], 's')}: promise a time with --slo-ttft "
        "to size for it"
        for row in rows
        if row["utilisation"] and row["utilisation"] > _NEAR_FULL and row["cards"]
    ]


def limited(rows: Sequence[Row], memory: Sequence[Row], most: int) -> list[str]:
    """Loads that fewer engines might carry, were more sequences let in: as many again fit at least."""
    return [
        f"engines of {who(row)} run {most:,} sequences at once, as --max-sequences says, while memory holds "
        f"{held['sequences_that_fit']:,}: with more, fewer cards may do"
        for row, held in zip(rows, memory, strict=True)
        if held["sequences_at_once"] == most <= held["sequences_that_fit"] / 2
        and (row["engines"] or 0) > 1
        and row["goodput_requests_per_s"] >= _BOUNDED * row["saturation_requests_per_s"]
    ]


def waiting(closed: Sequence[Row]) -> list[str]:
    """Requests of a client that find no place."""
    return [
        f"of {row['concurrency']:,} requests at once an engine of {who(row)} runs "
        f"{row['concurrency'] - row['waiting']:,}; the other {row['waiting']:,} wait for a place"
        for row in closed
        if row["waiting"]
    ]


def bursts(trace: Trace, rows: Sequence[Row], rate_per_s: float) -> list[str]:
    """Arrivals of a trace that come more unevenly, or at times faster, than was sized for."""
    notes = []
    if trace.gap_variation > _BURSTY:
        notes.append(
            f"gaps between arrivals vary {trace.gap_variation:.1f} times as much as Poisson arrivals do: "
            "waits before the first token are longer than stated"
        )
    peak = rate_per_s * trace.peak_rate_per_s / trace.rate_per_s
    notes += [
        f"the busiest minute brings {peak:.3g} requests/s, more than the {row['engines']} engines of "
        f"{who(row)} carry: size for the peak with --rate"
        for row in rows
        if row["engines"] and peak > row["saturation_requests_per_s"] * row["engines"]
    ]
    return notes
