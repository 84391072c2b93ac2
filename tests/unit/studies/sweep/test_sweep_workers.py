"""Several workers: the same parts, whoever dies on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from rooflines.errors import InputError
from rooflines.studies.sweep.grid import SweepGrid, read_grid
from rooflines.studies.sweep.run import run_sweep
from rooflines.studies.sweep.store import read_manifest

pytest.importorskip("pyarrow", reason="sweeps need pyarrow (extra [scale])")

GRID = """
hardware = ["h100-sxm5-80gb"]
target = ["llama-3.1-8b"]
drafter = ["independent:llama-3.2-1b"]
batch = { first = 1, last = 40, step = 1 }
context = { first = 0, last = 20000, count = 5 }
draft_length = [1, 4]
acceptance = [0.6, 0.8]
rows_per_part = 20
"""
POINT = ["batch", "context", "draft_length", "acceptance"]


@pytest.fixture
def grid_file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID, encoding="utf-8")
    return path


@pytest.fixture
def undisturbed(grid_file, tmp_path):
    """Rows of the same grid, priced in one go."""
    run_sweep(read_grid(grid_file), tmp_path / "undisturbed")
    return rows_of(tmp_path / "undisturbed")


def rows_of(folder):
    return pd.read_parquet(folder).sort_values(POINT, ignore_index=True)


def parts_of(folder):
    return sorted(folder.glob("part-*"))


def wait_for_parts(folder, count, process):
    ends = time.monotonic() + 60
    while len(parts_of(folder)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < ends, "no parts came"
        time.sleep(0.002)


def test_a_sweep_that_is_killed_loses_nothing(grid_file, tmp_path, undisturbed):
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "rooflines", "sweep", str(grid_file), "--output", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - our own command
    wait_for_parts(folder, 3, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in parts_of(folder)}
    total = len(read_manifest(folder).rows)
    assert 3 <= len(kept) < total
    assert len(pd.read_parquet(folder)) == 20 * len(kept)  # nothing half-written is read
    outcome = run_sweep(read_grid(grid_file), folder)
    assert outcome.rows_priced == 20 * (total - len(kept))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    pd.testing.assert_frame_equal(rows_of(folder), undisturbed)


# Runs a scheduler and two workers of its own, kills one worker after the first part, and ends as the sweep ends.
KILL_A_WORKER = """
import os, signal, sys
from pathlib import Path
from distributed import LocalCluster
from rooflines.studies.sweep import run as module
from rooflines.studies.sweep.grid import read_grid

if __name__ == "__main__":
    grid, folder = read_grid(Path(sys.argv[1])), Path(sys.argv[2])
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60)
    with LocalCluster(**options) as cluster:
        killed = []

        def told(done, total):
            if done and not killed:
                nanny = next(iter(cluster.workers.values()))
                killed.append(nanny.process.pid)
                os.kill(killed[0], signal.SIGKILL)

        outcome = module.run_sweep(grid, folder, dask=cluster.scheduler_address, told=told)
        assert killed, "no worker was killed"
        print(outcome.rows_priced)
"""


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(grid_file, tmp_path, undisturbed):
    pytest.importorskip("distributed", reason="workers need distributed (extra [scale])")
    script, folder = tmp_path / "kill.py", tmp_path / "shared"
    script.write_text(KILL_A_WORKER, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - the script above
        [sys.executable, str(script), str(grid_file), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len(undisturbed)
    assert not list(folder.glob(".part-*"))
    pd.testing.assert_frame_equal(rows_of(folder), undisturbed)


@pytest.mark.slow
def test_two_workers_write_the_rows_of_one(grid_file, tmp_path, undisturbed):
    pytest.importorskip("distributed", reason="workers need distributed (extra [scale])")
    folder = tmp_path / "shared"
    command = [
        sys.executable,
        "-m",
        "rooflines",
        "sweep",
        str(grid_file),
        "--output",
        str(folder),
        "--workers",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - our own command
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "800 priced now" in done.stdout
    pd.testing.assert_frame_equal(rows_of(folder), undisturbed)


def test_a_scheduler_that_does_not_answer_is_named(grid_file, tmp_path):
    pytest.importorskip("distributed", reason="workers need distributed (extra [scale])")
    with pytest.raises(InputError, match="no dask scheduler answers at nowhere"):
        run_sweep(read_grid(grid_file), tmp_path / "swept", dask="nowhere:x")


def test_what_is_missing_says_what_to_install(grid_file, tmp_path, monkeypatch):
    import importlib.util

    def find(name, found=importlib.util.find_spec):
        return None if name == "pyarrow" else found(name)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(InputError, match=r"pip install 'rooflines\[scale\]', .* EXTRAS=dev,scale"):
        run_sweep(read_grid(grid_file), tmp_path / "swept")
    assert not Path(tmp_path / "swept").exists()


def test_a_grid_travels_to_workers_and_back(small):
    import pickle

    grid = SweepGrid.read(dict(small), "grid")
    assert pickle.loads(pickle.dumps(grid)).fingerprint() == grid.fingerprint()  # noqa: S301 - our own bytes
