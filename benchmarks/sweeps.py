"""How many points a second, on one core: grids, scattered points, Parquet, a plain loop; and workers.

Run it on quiet cores: python benchmarks/sweeps.py [--large] [--peers]
"""

from __future__ import annotations

import argparse
import itertools
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import peers

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.studies.sweep.asked import Axes, Served
from rooflines.studies.sweep.columns import COLUMNS, empty
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.price import price_grid
from rooflines.studies.sweep.run import run_sweep
from rooflines.studies.sweep.scattered import Points, price_points

HARDWARE, TARGET, DRAFTER, DEVICES = "h100-sxm5-80gb", "llama-3.1-70b", "independent:llama-3.2-1b", 4
AXES = Axes(
    batch=np.arange(1.0, 257.0),
    context=np.linspace(0.0, 32_000.0, 200),
    draft_length=np.arange(1.0, 11.0),
    rates=Acceptance.constant(np.linspace(0.5, 0.95, 20)),
)
SCATTERED = 1_000_000
# The loop is slower by far, so a part of the points is enough to time it.
LOOPED = 300
REPEATS = 3
# 12 columns that say which point it is, and these.
WRITTEN = ("fits", "tokens_per_cycle", "verify_s", "speedup")
# What is asked for (points/s): one column of a grid, all of its columns, scattered points, rows of Parquet.
ASKED = {
    "grid, one column": 5e7,
    "grid, all columns": 1e7,
    "the same, into fresh arrays": 1e7,
    "the same, of float32": 1e7,
    "scattered points": 2e6,
    "Parquet, 16 columns": 2e6,
}
LARGE = {
    "hardware": [HARDWARE],
    "target": [TARGET],
    "drafter": [DRAFTER],
    "tensor_parallel": [DEVICES],
    "batch": {"first": 1, "last": 500, "step": 1},
    "context": {"first": 0, "last": 32_000, "count": 500},
    "draft_length": {"first": 1, "last": 10, "step": 1},
    "acceptance": {"first": 0.05, "last": 1.0, "count": 40},
    "columns": list(WRITTEN),
}
# Prices the large grid in a process of its own, and says how long that took and how much memory the largest
# process needed. Of its own it asks the kernel's high-water mark: ru_maxrss starts at that of who started it.
_RUN = """
import json, re, resource, sys
from pathlib import Path
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.run import run_sweep
if __name__ == "__main__":
    grid = SweepGrid.read(json.loads(sys.argv[1]), "benchmark")
    outcome = run_sweep(grid, Path(sys.argv[2]), workers=int(sys.argv[3]))
    own = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(outcome.rows, outcome.seconds, 1024 * max(own, children))
"""


# Does nothing but count, so that two of them share nothing but the processor.
_COUNT = "total = 0\nfor number in range(30_000_000): total += number"


def served() -> Served:
    target = make_deployment(TARGET, make_machine(HARDWARE), tensor=DEVICES)
    return Served(target, make_drafter(DRAFTER, target))


def scattered(count: int) -> Points:
    """Whole batches and contexts, and any acceptance, at random."""
    rng = np.random.default_rng(0)
    return Points(
        batch=rng.integers(1, 257, count).astype(float),
        context=rng.integers(0, 32_001, count).astype(float),
        draft_length=rng.integers(1, 11, count).astype(float),
        rates=Acceptance.constant(rng.uniform(0.4, 0.95, count)),
    )


def loop(what: Served, points: Points) -> np.ndarray:
    """The first points, one call each."""
    (alphas,) = (np.asarray(rate) for rate in points.rates.listed)
    return np.array(
        [
            cycle(cycle_times(what.target, what.drafter, b, s, n), Acceptance.constant(a)).speedup
            for b, s, n, a in itertools.islice(
                zip(points.batch, points.context, points.draft_length, alphas, strict=True), LOOPED
            )
        ]
    )


def best_time_s(function: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of a few runs in time of the processor, and what the last one returned (s)."""
    shortest_s, result = np.inf, None
    for _ in range(REPEATS):
        start_s = time.process_time()
        result = function()
        shortest_s = min(shortest_s, time.process_time() - start_s)
    return shortest_s, result


def parquet(columns: tuple[str, ...]) -> int:
    """Tidy rows of the same grid on disk: these columns, and 12 that say which point it is."""
    grid = SweepGrid.read(
        {
            **LARGE,
            "batch": {"first": 1, "last": 256, "step": 1},
            "context": {"first": 0, "last": 32_000, "count": 200},
            "acceptance": {"first": 0.5, "last": 0.95, "count": 20},
            "columns": list(columns),
        },
        "benchmark",
    )
    folder = Path(tempfile.mkdtemp())
    try:
        return run_sweep(grid, folder).rows
    finally:
        shutil.rmtree(folder)


def rates() -> float:
    """Print points a second of each way; returns that of the loop."""
    what, points = served(), scattered(SCATTERED)
    arrays, points_of_grid = empty(COLUMNS, AXES.shape), int(np.prod(AXES.shape))
    one = {"speedup": arrays["speedup"]}
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "grid, one column": (lambda: price_grid(what, AXES, ("speedup",), out=one), points_of_grid),
        "grid, all columns": (lambda: price_grid(what, AXES, COLUMNS, out=arrays), points_of_grid),
        "the same, into fresh arrays": (lambda: price_grid(what, AXES), points_of_grid),
        "the same, of float32": (lambda: price_grid(what, AXES, dtype=np.float32), points_of_grid),
        "scattered points": (lambda: price_points(what, points, ("speedup",)), SCATTERED),
        "Parquet, 16 columns": (lambda: parquet(WRITTEN), points_of_grid),
        "Parquet, all columns": (lambda: parquet(COLUMNS), points_of_grid),
        "plain loop": (lambda: loop(what, points), LOOPED),
    }
    loop_rate, checked = 0.0, {}
    print(f"{TARGET} with {DRAFTER} on {DEVICES} x {HARDWARE}; time of the processor, best of {REPEATS}\n")
    for name, (way, count) in reversed(ways.items()):
        seconds, checked[name] = best_time_s(way)
        rate = count / seconds
        loop_rate = loop_rate or rate
        asked = f", {rate / ASKED[name]:5.2f} x what is asked" if name in ASKED else ""
        print(
            f"{name:28} {count:11,} in {seconds:7.3f} s: {rate:13,.0f}/s, {rate / loop_rate:9,.0f} x loop"
            f"{asked}"
        )
    np.testing.assert_allclose(
        checked["scattered points"]["speedup"][:LOOPED], checked["plain loop"], rtol=1e-12
    )
    return loop_rate


def two_at_once() -> float:
    """Time that two processes of nothing but counting take at once, over that of one after the other.

    Half on two cores; near one where the two "cores" of a virtual machine are threads of one.
    """

    def seconds(processes: int) -> float:
        start_s = time.perf_counter()
        running = [subprocess.Popen([sys.executable, "-c", _COUNT]) for _ in range(processes)]  # noqa: S603 - this interpreter and the text above
        for process in running:
            process.wait()
        return time.perf_counter() - start_s

    return min(seconds(2) for _ in range(3)) / (2 * min(seconds(1) for _ in range(3)))


def large() -> None:
    """A hundred million rows, by one worker and by two: memory, and wall-clock time."""
    import json

    print("\nA sweep of 100,000,000 rows onto disk (wall-clock)")
    taken = {}
    for workers in (1, 2):
        folder = Path(tempfile.mkdtemp())
        try:
            command = [sys.executable, "-c", _RUN, json.dumps(LARGE), str(folder), str(workers)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this interpreter and the text above
        finally:
            shutil.rmtree(folder)
        rows, seconds, most = (float(part) for part in done.stdout.split())
        taken[workers] = seconds
        print(
            f"{workers} worker(s): {rows:,.0f} rows in {seconds:6.1f} s, {rows / seconds:10,.0f} rows/s, "
            f"{most / 2**20:,.0f} MiB of the largest process"
        )
    print(
        f"two workers take {taken[2] / taken[1]:.0%} of the time of one (asked: 60 % on two quiet cores); "
        f"two processes that only count took {two_at_once():.0%} of that of one after the other"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also sweep 1e8 rows with one and two workers")
    parser.add_argument("--peers", action="store_true", help="also time other tools, installed apart")
    asked = parser.parse_args()
    rates()
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB at most")
    if asked.peers:
        what, points = served(), scattered(SCATTERED)
        seconds, _ = best_time_s(lambda: price_points(what, points, ("speedup",)))
        peers.compare(SCATTERED / seconds)
    if asked.large:
        large()


if __name__ == "__main__":
    main()
