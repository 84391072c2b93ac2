"""Running a sweep: the parts that are missing, one after another or shared among workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import CannotTellError, InputError
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.parts import Part, plan_parts, served
from rooflines.studies.sweep.store import (
    is_whole,
    open_folder,
    part_file,
    remove_half_written,
    write_part,
)

if TYPE_CHECKING:
    from distributed import Client

SCHEMA_VERSION: Final = 1
# Rows finished in this run, and all rows that it has to do.
Told = Callable[[int, int], None]
# How the C library of a worker keeps memory. Dask has it hand back what is free at once; arrays of every part
# would be pages that the system has to clear again, which took two workers as long as one.
_KEEPS_MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": 2**25,  # more is refused by some (glibc, mallopt(3))
    "MALLOC_TRIM_THRESHOLD_": 2**28,
    "OMP_NUM_THREADS": 1,
}
# More processes than any machine has cores.
_MOST_WORKERS: Final = 1024


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """What a run did.

    Attributes:
        folder: where the rows are.
        rows: of the whole sweep.
        parts: of the whole sweep.
        rows_priced: in this run; the others were there.
        seconds: of this run (s).
        refused: combinations that cannot be, each with its reason.
        routing: what is assumed of how experts are hit; None where no target has any.
    """

    folder: Path
    rows: int
    parts: int
    rows_priced: int
    seconds: float
    refused: tuple[dict[str, Any], ...]
    routing: str | None

    @property
    def text(self) -> str:
        """The outcome in words."""
        there = self.rows - self.rows_priced
        assumed = f" Assumed: {self.routing}." if self.routing else ""
        rate = f" at {self.rows_priced / self.seconds:,.0f} rows/s" if self.rows_priced else ""
        return (
            f"{self.rows:,} rows in {self.parts:,} parts of {self.folder}: {self.rows_priced:,} priced now"
            f"{rate}, {there:,} were there.{assumed}"
        )

    def refused_by_reason(self) -> list[dict[str, Any]]:
        """Each reason once: how many combinations it holds for, and the first of them."""
        rows: dict[str, dict[str, Any]] = {}
        for one in self.refused:
            first = ", ".join(
                str(value) for name, value in one.items() if name not in ("reason", "acceptance")
            )
            row = rows.setdefault(
                one["reason"], {"reason": one["reason"], "combinations": 0, "the first of them": first}
            )
            row["combinations"] += 1
        return list(rows.values())

    def document(self) -> dict[str, Any]:
        """The outcome as JSON takes it (schema: docs/schemas/sweep.schema.json)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "folder": str(self.folder),
            "rows": self.rows,
            "parts": self.parts,
            "rows_priced": self.rows_priced,
            "seconds": self.seconds,
            "routing": self.routing,
            "refused": [{**one, "acceptance": list(one["acceptance"])} for one in self.refused],
        }


def run_sweep(
    grid: SweepGrid,
    folder: Path,
    *,
    workers: int = 1,
    dask: str | None = None,
    told: Told = lambda _done, _total: None,
) -> SweepOutcome:
    """Price a grid into a folder, or go on where an earlier run of the same grid ended.

    Args:
        grid: what to price.
        folder: new, empty, or of the same grid. One run at a time writes into it.
        workers: processes on this machine.
        dask: address of a dask scheduler whose workers share `folder`, in place of `workers`.
        told: called after each part with the rows of this run that are done, and all of them.

    Raises:
        RooflinesError: names that do not exist, a folder of something else, or workers that write elsewhere.
        CannotTellError: workers died again and again; what was written stays.
    """
    require_extra(distributed=workers > 1 or dask is not None)
    if not 1 <= workers <= _MOST_WORKERS:
        raise InputError(f"workers are {workers}: use 1 to {_MOST_WORKERS}")
    folder = folder.resolve()
    parts, refused = plan_parts(grid)
    manifest = open_folder(folder, grid, parts, refused)

    def missing() -> list[Part]:
        return [
            part
            for part in parts
            if not is_whole(folder / part_file(part.number), part.rows, manifest.fingerprint)
        ]

    todo, start_s = missing(), time.perf_counter()
    total, done = sum(part.rows for part in todo), 0
    told(done, total)
    for rows in _price(todo, (folder, grid, manifest.fingerprint), workers, dask):
        done += rows
        told(done, total)
    if todo and missing():
        raise InputError(
            f"workers of {dask} wrote {len(todo)} parts that do not appear in {folder}: workers and this "
            "machine must share that folder under one path"
        )
    remove_half_written(folder)
    seconds = time.perf_counter() - start_s
    return SweepOutcome(
        folder,
        sum(manifest.rows),
        len(parts),
        total,
        seconds,
        manifest.refused,
        _assumed_routing(parts, grid),
    )


def _assumed_routing(parts: Sequence[Part], grid: SweepGrid) -> str | None:
    """What is assumed of how experts are hit, if any target has some."""
    cases = {part.case.target: part.case for part in parts}.values()
    return next(filter(None, (served(case, grid).target.assumed_routing for case in cases)), None)


def require_extra(*, distributed: bool = False) -> None:
    """Say what to install where it is missing.

    Raises:
        InputError: pyarrow, or where it is needed distributed, is not installed.
    """
    from importlib.util import find_spec

    for name, needed in (("pyarrow", True), ("distributed", distributed)):
        if needed and find_spec(name) is None:
            raise InputError(
                f"sweeps need {name}: run pip install 'rooflines[scale]', or in a checkout "
                "make install EXTRAS=dev,scale"
            )


def _price(
    parts: Sequence[Part], where: tuple[Path, SweepGrid, str], workers: int, dask: str | None
) -> Iterator[int]:
    """Rows of each part as it is finished."""
    if not parts:
        return
    if dask is None and workers == 1:
        folder, grid, fingerprint = where
        for part in parts:
            yield write_part(folder, part, grid, fingerprint)
        return
    with _client(min(workers, len(parts)), dask) as client:
        yield from _shared(client, parts, where)


def _shared(client: Client, parts: Sequence[Part], where: tuple[Path, SweepGrid, str]) -> Iterator[int]:
    """Parts on whichever worker is free; those of a worker that dies go to another."""
    from distributed import KilledWorker, as_completed

    folder, grid, fingerprint = where
    futures = [client.submit(write_part, folder, part, grid, fingerprint, pure=False) for part in parts]
    try:
        for future in as_completed(futures):
            yield future.result()
            future.release()
    except KilledWorker as error:
        raise CannotTellError(
            f"workers died again and again over one part ({error}): what was written stays, and the same "
            "command goes on with it; a smaller rows_per_part needs less memory"
        ) from None


@contextmanager
def _client(workers: int, dask: str | None) -> Iterator[Client]:
    """A dask client: of the scheduler at an address, or of processes on this machine.

    Raises:
        InputError: no scheduler answers.
    """
    import dask as dask_settings
    from distributed import Client, LocalCluster

    if dask is not None:
        try:
            client = Client(dask, timeout="10s")
        except (OSError, ValueError) as error:
            raise InputError(f"no dask scheduler answers at {dask}: {error}") from None
        with client:
            yield client
        return
    with dask_settings.config.set({"distributed.nanny.pre-spawn-environ": _KEEPS_MEMORY}):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
    with cluster, Client(cluster) as client:
        yield client
