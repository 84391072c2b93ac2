"""The machine probe: what memory and arithmetic units sustain, and what a launch costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import JsonValue

from rooflines.errors import InputError, UnknownNameError
from rooflines.measurement.clock import Work, timer
from rooflines.measurement.files import Journal, read_measured
from rooflines.measurement.models import require_torch
from rooflines.measurement.rounds import Progress, Rounds, Task, run_rounds
from rooflines.measurement.schema import Inputs, MachineFacts, MachineFile, ProbeSample
from rooflines.measurement.surroundings import (
    environment,
    last_cache_bytes,
    machine_facts,
    now,
    rooflines_version,
    versions,
)
from rooflines.measurement.threads import computing_threads

# Formats that torch multiplies at speed on each kind of device; fp16 on CPUs has no kernel of its own.
DTYPES: Final = {"cpu": ("fp32", "bf16", "int8"), "gpu": ("fp32", "bf16", "fp16", "int8")}
# Times the last cache that a stream must exceed: a tenth of it in the cache changes a rate by as much.
_BEYOND_CACHE: Final = 8
_SMALLEST_STREAM_BYTES: Final = {"cpu": 256 * 2**20, "gpu": 2 * 2**30}
# Sides of square products that reach the plateau (measured on Zen 4: 512 to 2048 differ by 3 %).
_GEMM_SIDE: Final = {"cpu": 1024, "gpu": 8192}
_LAUNCHES: Final = 1000
_FP32_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to time, and what one repetition moves and computes."""

    quantity: str
    dtype: str
    shape: tuple[int, ...]
    moved_bytes: float
    flops: float
    work: Work
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class MachineQuestion:
    """What to probe.

    Attributes:
        device: as torch calls it.
        threads: that compute, on a CPU.
        dtypes: of products; None for those the device is fast in.
        stream_bytes: of the array that is read; None for one far beyond the last cache.
        gemm_side: of square products; None for one that reaches the plateau.
        rounds: times each probe is timed.
    """

    device: str = "cpu"
    threads: int = 1
    dtypes: tuple[str, ...] | None = None
    stream_bytes: int | None = None
    gemm_side: int | None = None
    rounds: int = 20


def measure_machine(question: MachineQuestion, output: Path, progress: Progress) -> MachineFile:
    """Probe the machine and write the raw times to `output` (JSON).

    A file that answers this very question is taken as it is: a run may die between it and what is made of it.

    Raises:
        InputError: torch is missing, the file holds other measurements, or the memory does not hold the
            arrays.
        UnknownNameError: a dtype that is not multiplied.
    """
    require_torch()
    import torch

    kind = "gpu" if question.device.startswith("cuda") else "cpu"
    dtypes = question.dtypes or DTYPES[kind]
    for dtype in dtypes:
        if dtype not in DTYPES["gpu"]:
            raise UnknownNameError("dtype", dtype, DTYPES["gpu"], f"(known: {', '.join(DTYPES['gpu'])})")
    machine = machine_facts(question.device, question.threads)
    stream = question.stream_bytes or stream_size(machine)
    side = question.gemm_side or _GEMM_SIDE[kind]
    options: dict[str, JsonValue] = {
        "device": question.device,
        "threads": question.threads,
        "dtypes": list(dtypes),
        "stream_bytes": stream,
        "gemm_side": side,
        "rounds": question.rounds,
        "environment": {**environment()},
    }
    if output.exists():
        return _finished(output, machine, options)
    journal = Journal.open(
        output, {"kind": "machine", "rooflines": rooflines_version(), "device": machine.device, **options}
    )
    with computing_threads(question.threads), torch.inference_mode():
        probes = _probes(question.device, stream, side, dtypes)
        rounds = run_rounds(
            {name: Task(_repeated(probe)) for name, probe in probes.items()},
            rounds=question.rounds,
            warmup=2,
            seed=0,
            time_once=timer(question.device),
            journal=journal,
            progress=progress,
        )
    file = MachineFile(
        created=now(),
        rooflines=rooflines_version(),
        machine=machine,
        versions=versions(),
        inputs=Inputs(options=options),
        stability=rounds.stability,
        samples=tuple(_sample(probe, rounds, name) for name, probe in probes.items()),
    )
    journal.finish(file, output)
    return file


def _finished(output: Path, machine: MachineFacts, options: Mapping[str, JsonValue]) -> MachineFile:
    """The file of an earlier run of the same question on this machine.

    Raises:
        InputError: it answers another one.
    """
    file = read_measured(output)
    if (
        isinstance(file, MachineFile)
        and (file.machine, file.rooflines) == (machine, rooflines_version())
        and file.inputs.options == options
    ):
        return file
    raise InputError(
        f"{output} exists and holds other measurements, which are never replaced: name another output"
    )


def stream_size(machine: MachineFacts) -> int:
    """Bytes of an array that no cache holds (bytes), a multiple of 1 MiB.

    Raises:
        InputError: two of them do not fit into memory.
    """
    cache = last_cache_bytes(machine) or 0
    wanted = max(_BEYOND_CACHE * cache, _SMALLEST_STREAM_BYTES[machine.kind])
    if 4 * wanted > machine.memory_bytes:
        raise InputError(
            f"{machine.device} has {machine.memory_bytes} bytes of memory: too few to stream beyond its "
            f"caches ({cache} bytes); name a smaller --stream"
        )
    return wanted // 2**20 * 2**20


def _probes(device: str, stream_bytes: int, side: int, dtypes: tuple[str, ...]) -> Mapping[str, Probe]:
    import torch

    source = torch.ones(stream_bytes // _FP32_BYTES, device=device)
    target = torch.empty_like(source)
    one = torch.zeros(1, device=device)
    probes = {
        "read": Probe("read", "fp32", tuple(source.shape), float(stream_bytes), 0.0, source.sum),
        "copy": Probe(
            "copy", "fp32", tuple(source.shape), 2.0 * stream_bytes, 0.0, lambda: target.copy_(source)
        ),
        "launch": Probe("launch", "fp32", (1,), 0.0, 0.0, lambda: one.add_(1.0), _LAUNCHES),
    }
    for dtype in dtypes:
        size = {"fp32": 4, "int8": 1}.get(dtype, 2)
        moved = 2.0 * size * side**2 + (4 if dtype == "int8" else size) * side**2
        product = _product(device, side, dtype)
        probes[f"gemm {dtype}"] = Probe("gemm", dtype, (side, side, side), moved, 2.0 * side**3, product)
    return probes


def _product(device: str, side: int, dtype: str) -> Callable[[], Any]:
    import torch

    if dtype == "int8":
        levels = torch.randint(-9, 9, (side, side), dtype=torch.int8, device=device)
        columns = levels.t().contiguous().t()  # what int8 kernels on GPUs ask for
        return lambda: torch._int_mm(levels, columns)  # noqa: SLF001 - torch has no public name for it
    names = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    left, right = (torch.randn(side, side, device=device).to(names[dtype]) for _ in range(2))
    out = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


def _repeated(probe: Probe) -> Work:
    if probe.repeats == 1:
        return probe.work

    def work() -> None:
        for _ in range(probe.repeats):
            probe.work()

    return work


def _sample(probe: Probe, rounds: Rounds, name: str) -> ProbeSample:
    times = rounds.times[name]
    return ProbeSample.model_validate(
        {
            "quantity": probe.quantity,
            "dtype": probe.dtype,
            "shape": probe.shape,
            "moved_bytes": probe.moved_bytes,
            "flops": probe.flops,
            "cpu_s": tuple(one.cpu_s / probe.repeats for one in times),
            "wall_s": tuple(one.wall_s / probe.repeats for one in times),
            "device_s": tuple(one.device_s / probe.repeats for one in times if one.device_s is not None),
        }
    )


def sustained(sample: ProbeSample) -> tuple[float, float]:
    """Median rate of a probe and its relative spread (IQR / median).

    Returns:
        Bytes/s of ``read`` and ``copy``, FLOP/s of ``gemm``, seconds of ``launch``; and the spread.
    """
    times = np.asarray(sample.seconds)
    amount = {"gemm": sample.flops, "launch": 1.0}.get(sample.quantity, sample.moved_bytes)
    values = times if sample.quantity == "launch" else amount / times
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), float((high - low) / middle)
