"""What is known of the sources of published speedups: engine, tier, and what their speedup is a ratio of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from rooflines.hardware.calibration_files import calibrations_of

PRODUCTION: Final = "production engine"
TREND: Final = "trend only"
HOST_BOUND: Final = "host-bound"
FIELD: Final = "field report"
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Source:
    """One source of rows.

    Attributes:
        engine: that it ran, as `rooflines.engines.host` names it; empty where none is known.
        tier: what its rows can judge.
        whole_requests: whether speeds are output tokens over the whole time of requests, prompts included.
        masked_trees: whether it names a backend whose attention masks trees in one kernel.
    """

    engine: str
    tier: str
    whole_requests: bool = False
    masked_trees: bool = False


# Keys of the table's `source_key`, or key and first words of `table_or_figure` where one paper ran several.
SOURCES: Final[Mapping[str, Source]] = {
    # https://github.com/sgl-project/SpecForge: bench_eagle3.py divides output tokens by the run's latency.
    "specbundle2026": Source("sglang", PRODUCTION, whole_requests=True),
    # arXiv 2602.06036, tables 3, 5 and 11: throughput of a server at a concurrency.
    "dflash2026/Table 3": Source("sglang-overlap", PRODUCTION, whole_requests=True),
    "dflash2026/Table 5": Source("sglang", PRODUCTION, whole_requests=True, masked_trees=True),
    "dflash2026/Table 11": Source("sglang-overlap", PRODUCTION, whole_requests=True),
    "dflash2026": Source("transformers", HOST_BOUND),
    # https://specdecode-bench.github.io: ratio of token throughputs.
    "specdecodebench2026": Source("vllm", PRODUCTION, whole_requests=True),
    "gptfast": Source("gpt-fast", PRODUCTION),
    "vllm_eagle31_2026": Source("vllm", TREND),
    "vllm_blog2024": Source("vllm", TREND),
    "vllm_parallel2026": Source("vllm", TREND),
    "magicdec2024": Source("magicdec", TREND),
    "lmsys_mtp2025": Source("sglang", TREND),
    "trtllm_ngram2025": Source("tensorrt-llm", TREND, whole_requests=True),
    "trtllm_mtp2025": Source("tensorrt-llm", TREND),
    "cast2026": Source("transformers", HOST_BOUND),
    "specbench": Source("transformers", HOST_BOUND),
    "medusa2024": Source("transformers", HOST_BOUND),
    "eagle2024": Source("transformers", HOST_BOUND),
    "eagle2_2024": Source("transformers", HOST_BOUND),
    "eagle3_2025": Source("transformers", HOST_BOUND),
    "eagle3_2025/Table 3": Source("sglang", TREND, whole_requests=True),
    "eagle3_2025/Table 5": Source("vllm", TREND, whole_requests=True),
    "leviathan2023": Source("", OTHER),
    "chen2023": Source("", OTHER),
    "qwen38_mtp_community": Source("llama.cpp", FIELD),
    "redrafter_mlx2024": Source("mlx", FIELD),
}
# Devices that a source names in its text for a model, where its table is silent.
STATED_DEVICES: Final[Mapping[tuple[str, str], int]] = {
    # "--tp 4" (https://github.com/sgl-project/sgl-cookbook/blob/main/docs/benchmarks/SpecBundle.md).
    ("specbundle2026", "qwen3-30b-a3b"): 4,
}
# What an engine's kernels were measured with, as calibrations name it.
_STACKS: Final = {
    "vllm": "vllm",
    "sglang": "sglang",
    "sglang-overlap": "sglang",
    "tensorrt-llm": "trtllm",
}
# Words of a field report's project -> engine.
_PROJECTS: Final = (
    ("llama.cpp", "llama.cpp"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("tensorrt", "tensorrt-llm"),
    ("transformers", "transformers"),
    ("mlx", "mlx"),
)


def source_of(key: str, table: str) -> Source:
    """What is known of a source; one that nobody described is judged as a field report."""
    for name, source in SOURCES.items():
        own, slash, words = name.partition("/")
        if slash and own == key and table.startswith((f"{words} ", f"{words}:")):
            return source
    return SOURCES.get(key, Source("", FIELD))


@cache
def calibration_name(device: str, engine: str) -> str:
    """The newest calibration of a device whose kernels are the engine's; ``auto`` where there is none.

    Args:
        device: profile id.
        engine: as `rooflines.engines.host` names it.
    """
    stack = _STACKS.get(engine)
    own = (one.name for one in calibrations_of(device) if one.stack.split(" ")[0] == stack)
    return next(own, "auto")


def engine_of_project(text: str) -> str:
    """The engine that a project's name tells; empty where it tells none."""
    return next((engine for word, engine in _PROJECTS if word in text.lower()), "")
