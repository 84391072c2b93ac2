"""Clocks: CPU time of the thread beside the time that passes, events on a GPU, and the wait for a core.

On a shared machine the time that passes says what the neighbours do; CPU time of the thread stays within a
few percent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

_TASKS: Final = Path("/proc/self/task")


class Timing(NamedTuple):
    """How long one piece of work took.

    Attributes:
        cpu_s: CPU time of this thread (s).
        wall_s: time that passed (s).
        device_s: between events on the GPU (s); None on a CPU.
    """

    cpu_s: float
    wall_s: float
    device_s: float | None = None

    @property
    def seconds(self) -> float:
        """The time to use: between events on a GPU, of the thread on a CPU."""
        return self.cpu_s if self.device_s is None else self.device_s


Work = Callable[[], object]


def time_on_cpu(work: Work) -> Timing:
    """Do it once."""
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    return Timing(time.thread_time() - cpu, time.perf_counter() - wall)


def time_on_gpu(work: Work) -> Timing:
    """Do it once, between two events of the current stream."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    wall, cpu = time.perf_counter(), time.thread_time()
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    milliseconds = begin.elapsed_time(end)
    return Timing(time.thread_time() - cpu, time.perf_counter() - wall, milliseconds / 1e3)


def timer(device: str) -> Callable[[Work], Timing]:
    """The clock of a device, as torch calls it."""
    return time_on_gpu if device.startswith("cuda") else time_on_cpu


@dataclass(frozen=True, slots=True)
class RunDelay:
    """A reading of the scheduler's own account.

    Attributes:
        waited_s: how long this process's threads were ready to run and had no core (s); None where the
            system keeps no account.
        at_s: when it was read, on the clock of `time.perf_counter` (s).
    """

    waited_s: float | None
    at_s: float

    @classmethod
    def read(cls, tasks: Path = _TASKS) -> RunDelay:
        """Read ``/proc/self/task/*/schedstat``: its second number is the time on the run queue, in ns."""
        waited_ns = [
            value for file in tasks.glob("*/schedstat") if (value := _second_number(file)) is not None
        ]
        return cls(sum(waited_ns) / 1e9 if waited_ns else None, time.perf_counter())

    def share_since(self, earlier: RunDelay) -> float | None:
        """Time waited / time passed since an earlier reading, 1 at most; None where it is not known."""
        passed = self.at_s - earlier.at_s
        if self.waited_s is None or earlier.waited_s is None or passed <= 0:
            return None
        return min(max((self.waited_s - earlier.waited_s) / passed, 0.0), 1.0)


def _second_number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):  # the thread has ended, or the kernel counts otherwise
        return None
