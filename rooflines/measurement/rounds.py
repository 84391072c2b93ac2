"""Interleaved rounds: every case once a round, in a new order each time, so that drift hits all alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflines.errors import InputError
from rooflines.measurement.clock import RunDelay, Timing, Work
from rooflines.measurement.files import Journal
from rooflines.measurement.schema import Stability
from rooflines.measurement.stability import judge

# Told after every case: what was done, of how much.
Progress = Callable[[int, int], None]


def _nothing() -> None:
    """No preparation."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is timed.

    Attributes:
        work: the timed part.
        prepare: what must be done before each time, untimed.
    """

    work: Work
    prepare: Work = _nothing


_RUN_DELAY = "run_delay_share"


@dataclass(frozen=True, slots=True)
class Rounds:
    """What came out: raw times of each case, and whether the machine held still.

    Attributes:
        times: case -> its times, in the order they were taken.
        stability: judged by the reference case, which every round begins with.
    """

    times: Mapping[str, Sequence[Timing]]
    stability: Stability


def run_rounds(
    cases: Mapping[str, Task],
    *,
    rounds: int,
    warmup: int,
    seed: int,
    time_once: Callable[[Work], Timing],
    journal: Journal,
    progress: Progress,
) -> Rounds:
    """Time every case `rounds` times.

    Args:
        cases: by name; the first is the reference, timed at the beginning of every round.
        rounds: times each case is timed.
        warmup: times each case is done before, untimed; done again when a killed run continues.
        seed: of the order within rounds.
        time_once: the clock.
        journal: keeps finished rounds, and has those of a run that was killed.
        progress: told how far it is.

    Raises:
        InputError: no cases, or less than one round.
    """
    if not cases or rounds < 1:
        raise InputError(f"{len(cases)} cases in {rounds} rounds: at least one of each is needed")
    names = list(cases)
    missing = [index for index in range(rounds) if _part(index) not in journal.parts]
    total, done = len(names) * (warmup + len(missing)), 0
    with _no_collection():
        for _ in range(warmup if missing else 0):
            for case in cases.values():
                case.prepare()
                case.work()
                done += 1
                progress(done, total)
        for index in missing:
            order = np.random.default_rng((seed, index)).permutation(len(names) - 1) + 1
            times: dict[str, Timing] = {}
            start = RunDelay.read()
            for name in (names[0], *(names[place] for place in order)):
                cases[name].prepare()
                times[name] = time_once(cases[name].work)
                done += 1
                progress(done, total)
            share = RunDelay.read().share_since(start)
            journal.add(_part(index), {_RUN_DELAY: share, "times": {k: list(v) for k, v in times.items()}})
            gc.collect()
    return _collected(names, [journal.parts[_part(index)] for index in range(rounds)])


def _collected(names: Sequence[str], parts: Sequence[Mapping[str, Any]]) -> Rounds:
    times = {name: [Timing(*part["times"][name]) for part in parts] for name in names}
    shares = [part[_RUN_DELAY] for part in parts if part[_RUN_DELAY] is not None]
    reference = [timing.seconds for timing in times[names[0]]]
    return Rounds(times, judge(reference, float(np.mean(shares)) if shares else None))


def _part(index: int) -> str:
    return f"round {index}"


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector out of what is timed; it runs between rounds."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
