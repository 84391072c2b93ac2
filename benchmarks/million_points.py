"""One million (batch, context, draft length, acceptance) points of one target, drafter and device.

Run it on a quiet core: python benchmarks/million_points.py
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.deployment import Deployment

HARDWARE, TARGET, DRAFTER, DEVICES = "h100-sxm5-80gb", "llama-3.1-70b", "llama-3.2-1b", 4
BATCHES = np.arange(1.0, 101.0)
CONTEXTS = np.linspace(0.0, 32_000.0, 100)
DRAFT_LENGTHS = np.arange(1.0, 11.0)
ACCEPTANCES = np.linspace(0.5, 0.95, 10)
# The loop is this much slower, so a part of the points is enough to time it.
LOOPED = 300
REPEATS = 3


def grid(target: Deployment, drafter: Drafter) -> np.ndarray:
    """Speedup over all four axes at once."""
    times = cycle_times(
        target,
        drafter,
        BATCHES[:, None, None, None],
        CONTEXTS[None, :, None, None],
        DRAFT_LENGTHS[None, None, :, None],
    )
    outcome = cycle(times, Acceptance.constant(ACCEPTANCES[None, None, None, :]))
    return np.asarray(outcome.speedup)


def every_point_by_itself(target: Deployment, drafter: Drafter) -> np.ndarray:
    """The same million points as four flat columns, as a table of questions would come."""
    columns = [
        axis.ravel() for axis in np.meshgrid(BATCHES, CONTEXTS, DRAFT_LENGTHS, ACCEPTANCES, indexing="ij")
    ]
    batch, context, length, alpha = columns
    return np.asarray(
        cycle(cycle_times(target, drafter, batch, context, length), Acceptance.constant(alpha)).speedup
    )


def loop(target: Deployment, drafter: Drafter) -> np.ndarray:
    """The first points, one call each."""
    points = itertools.islice(itertools.product(BATCHES, CONTEXTS, DRAFT_LENGTHS, ACCEPTANCES), LOOPED)
    return np.array(
        [
            float(cycle(cycle_times(target, drafter, b, s, n), Acceptance.constant(a)).speedup)
            for b, s, n, a in points
        ]
    )


def best_time_s(function: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """The shortest of a few runs, and what it returned (s)."""
    shortest_s, result = np.inf, np.empty(0)
    for _ in range(REPEATS):
        start_s = time.perf_counter()
        result = function()
        shortest_s = min(shortest_s, time.perf_counter() - start_s)
    return shortest_s, result


def main() -> None:
    machine = make_machine(HARDWARE)
    target = make_deployment(TARGET, machine, tensor=DEVICES)
    drafter = IndependentDrafter(make_deployment(DRAFTER, machine, tensor=DEVICES), target.model)
    grid_s, whole = best_time_s(lambda: grid(target, drafter))
    flat_s, flat = best_time_s(lambda: every_point_by_itself(target, drafter))
    loop_s, looped = best_time_s(lambda: loop(target, drafter))
    np.testing.assert_allclose(whole.ravel(), flat, rtol=1e-12)
    np.testing.assert_allclose(flat[:LOOPED], looped, rtol=1e-12)
    loop_rate = LOOPED / loop_s
    print(f"{TARGET} with {DRAFTER} on {DEVICES} x {HARDWARE}, {whole.size:,} points, best of {REPEATS}")
    for name, seconds, points in (
        ("grid of four axes", grid_s, whole.size),
        ("four flat columns", flat_s, flat.size),
        ("plain loop", loop_s, LOOPED),
    ):
        rate = points / seconds
        print(
            f"{name:18} {seconds:6.3f} s, {points:9,} points, {rate:13,.0f} points/s, "
            f"{rate / loop_rate:8,.0f} x loop"
        )


if __name__ == "__main__":
    main()
