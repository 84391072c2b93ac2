"""The header of a file of measurements: machine, versions, date."""

from __future__ import annotations

import datetime as dt
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Final

from rooflines.measurement.schema import CacheLevel, MachineFacts

_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_PACKAGES: Final = ("torch", "transformers", "numpy", "gguf")
_SETTINGS: Final = (
    "CUDA_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "LD_PRELOAD",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "ONEDNN_MAX_CPU_ISA",
    "THP_MEM_ALLOC_ENABLE",
)
_SCALE: Final = {"K": 2**10, "M": 2**20}


def now() -> str:
    """The time, ISO 8601 in UTC."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def environment() -> dict[str, str]:
    """Settings of the process that change how fast torch is."""
    return {name: os.environ[name] for name in _SETTINGS if name in os.environ}


def rooflines_version() -> str:
    """The version that is installed."""
    return metadata.version("rooflines")


def versions() -> dict[str, str]:
    """Versions of what runs."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine_facts(device: str, threads: int) -> MachineFacts:
    """Where this runs.

    Args:
        device: as torch calls it, ``cpu`` or ``cuda``.
        threads: that compute.
    """
    cpu, cores = _cpu_name(), _cores()
    system = f"{platform.system()} {platform.release()}"
    if device.startswith("cuda"):
        import torch

        facts = torch.cuda.get_device_properties(device)
        second = getattr(facts, "L2_cache_size", 0)
        return MachineFacts(
            device=facts.name,
            kind="gpu",
            cpu=cpu,
            cores=cores,
            threads=threads,
            memory_bytes=facts.total_memory,
            caches=(CacheLevel(level=2, size_bytes=second),) if second else (),
            system=system,
        )
    return MachineFacts(
        device=cpu,
        kind="cpu",
        cpu=cpu,
        cores=cores,
        threads=threads,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        caches=cache_levels(),
        system=system,
    )


def cache_levels(folder: Path = _CACHES) -> tuple[CacheLevel, ...]:
    """Data caches of the first core, as Linux lists them; none elsewhere."""
    found = []
    for index in sorted(folder.glob("index*")):
        try:
            kind, level, size = (
                (index / name).read_text(encoding="ascii").strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found.append(CacheLevel(level=int(level), size_bytes=int(size[:-1]) * _SCALE[size[-1]]))
    return tuple(found)


def last_cache_bytes(machine: MachineFacts) -> int | None:
    """The size of the last cache before memory; None where the system does not say."""
    return max((one.size_bytes for one in machine.caches), default=None)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
