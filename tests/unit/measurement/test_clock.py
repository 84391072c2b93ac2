from __future__ import annotations

import time

import pytest

from rooflines.measurement.clock import RunDelay, Timing, time_on_cpu, timer


def _spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_cpu_time_counts_work_and_not_sleep():
    asleep, busy = time_on_cpu(lambda: time.sleep(0.05)), time_on_cpu(lambda: _spin(0.05))
    assert asleep.cpu_s < 0.01
    assert asleep.wall_s >= 0.05
    assert 0.05 <= busy.cpu_s <= busy.wall_s + 1e-3


def test_the_clock_to_use_is_the_device_s_where_there_is_one():
    assert Timing(1.0, 2.0).seconds == 1.0
    assert Timing(1.0, 2.0, 3.0).seconds == 3.0
    assert timer("cpu") is time_on_cpu
    assert timer("cuda:0") is not time_on_cpu


def test_waiting_for_a_core_is_read_over_all_threads(tmp_path):
    for thread, line in {"1": "10 2000000000 3\n", "2": "10 1000000000 3\n"}.items():
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(line)
    assert RunDelay.read(tmp_path).waited_s == 3.0


@pytest.mark.parametrize("line", ["", "10", "ten twenty thirty"])
def test_a_kernel_that_counts_otherwise_is_not_believed(line, tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "schedstat").write_text(line)
    assert RunDelay.read(tmp_path).waited_s is None
    assert RunDelay.read(tmp_path / "nowhere").waited_s is None


def test_the_share_of_time_waited():
    assert RunDelay(1.5, 12.0).share_since(RunDelay(1.0, 10.0)) == 0.25
    assert RunDelay(9.0, 11.0).share_since(RunDelay(1.0, 10.0)) == 1.0
    # A thread that waited has ended and takes its account with it.
    assert RunDelay(0.5, 11.0).share_since(RunDelay(1.0, 10.0)) == 0.0
    assert RunDelay(None, 11.0).share_since(RunDelay(1.0, 10.0)) is None
    assert RunDelay(1.0, 10.0).share_since(RunDelay(1.0, 10.0)) is None
