from __future__ import annotations

import datetime as dt
import os
import platform
from importlib import metadata

from rooflines.measurement.schema import CacheLevel
from rooflines.measurement.surroundings import (
    cache_levels,
    environment,
    last_cache_bytes,
    machine_facts,
    now,
    rooflines_version,
    versions,
)


def _cache(folder, index, kind, level, size):
    place = folder / f"index{index}"
    place.mkdir()
    for name, value in (("type", kind), ("level", level), ("size", size)):
        (place / name).write_text(f"{value}\n")


def test_data_caches_are_read_and_instruction_caches_are_not(tmp_path):
    _cache(tmp_path, 0, "Data", 1, "32K")
    _cache(tmp_path, 1, "Instruction", 1, "64K")
    _cache(tmp_path, 2, "Unified", 2, "1024K")
    _cache(tmp_path, 3, "Unified", 3, "32M")
    (tmp_path / "index4").mkdir()
    levels = cache_levels(tmp_path)
    assert levels == (
        CacheLevel(level=1, size_bytes=32 * 2**10),
        CacheLevel(level=2, size_bytes=2**20),
        CacheLevel(level=3, size_bytes=32 * 2**20),
    )
    facts = machine_facts("cpu", 1)
    assert last_cache_bytes(facts.model_copy(update={"caches": levels})) == 32 * 2**20
    assert last_cache_bytes(facts.model_copy(update={"caches": ()})) is None
    assert cache_levels(tmp_path / "none") == ()


def test_the_machine_is_this_one():
    facts = machine_facts("cpu", 2)
    assert facts.kind == "cpu"
    assert facts.threads == 2
    assert 1 <= facts.cores <= (os.cpu_count() or 1)
    assert facts.memory_bytes > 2**28
    assert platform.release() in facts.system
    assert facts.device


def test_versions_and_time_are_those_of_this_process(monkeypatch):
    assert versions()["python"] == platform.python_version()
    assert versions()["numpy"] == metadata.version("numpy")
    assert rooflines_version() == metadata.version("rooflines")
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(now())
    assert dt.timedelta(0) <= age < dt.timedelta(minutes=1)
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")
    assert environment()["THP_MEM_ALLOC_ENABLE"] == "1"
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE")
    assert "THP_MEM_ALLOC_ENABLE" not in environment()
