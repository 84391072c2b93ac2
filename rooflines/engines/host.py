"""What an engine adds to a cycle beside its passes: the host's time, and kernels that trees take more.

Each is a fact about the engine, with its source. A plan assumes none: `--cycle-overhead vllm` adds that of
an engine, `--cycle-overhead "1 ms"` and `--overhead` one of your own. Where a published row is predicted, the
figure must come from another source than the row, so each entry names who measured it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rooflines.errors import UnknownNameError
from rooflines.speculation.host import CycleHost


@dataclass(frozen=True, slots=True)
class HostTime:
    """Host time of one engine that overlaps nothing on the device.

    Attributes:
        engine: name, with the mode of scheduling where that decides.
        kinds: drafters that it was measured with; empty where any would do.
        time: what it adds to steps and cycles.
        measured_by: key of the source in tables of speedups; empty where it is no source of them.
        basis: ``measured``, ``derived`` where our own device times were taken off a measured one, or
            ``assumed`` where it is another engine's figure.
        source: where it can be read.
        note: what it means.
        device: profile id of what it was measured on; empty where that is not stated.
        ranks: devices that the model was split over.
    """

    engine: str
    kinds: tuple[str, ...]
    time: CycleHost
    measured_by: str
    basis: str
    source: str
    note: str
    device: str = ""
    ranks: int = 1


def _exposed_s(batch: int, tokens_per_cycle: tuple[float, float], tokens_per_s: tuple[float, float]) -> float:
    """Time of a cycle that overlapping it with the device hides: before minus after (s)."""
    before, after = (batch * tau / rate for tau, rate in zip(tokens_per_cycle, tokens_per_s, strict=True))
    return before - after


# c_overhead of the simulator's fit to vLLM 0.10.1 on an H100: 1.207 ms a step, speculating or not.
_VLLM_STEP_S: Final = 1.207e-3
_SIMULATOR: Final = "https://github.com/SpecDecode-Bench/simulator"
# DFlash for Qwen3-8B on a B200, GSM8K: tokens per second and accept length of versions 1 and 2 at batch 1 and
# 32 (https://github.com/sgl-project/sglang/pull/23000).
_ALONE_S: Final = _exposed_s(1, (6.345, 6.352), (845.98, 1161.88))
_BATCHED_S: Final = _exposed_s(32, (6.487, 6.482), (11405.85, 15326.81))
_PER_SEQUENCE_S: Final = (_BATCHED_S - _ALONE_S) / (32 - 1)
# Latency files: 17.24 ms for one position of Qwen3-8B (36 layers), 2.75 ms for its DFlash draft of 5.
_CAST_LAYER_S: Final = (17.24e-3 - 2.75e-3) / (36 - 5)

_EAGLES: Final = ("eagle", "eagle2", "eagle3", "mtp")

HOST_TIMES: Final[tuple[HostTime, ...]] = (
    HostTime(
        "vllm",
        (),
        CycleHost(plain_s=_VLLM_STEP_S, cycle_s=_VLLM_STEP_S),
        "specdecodebench2026",
        "measured",
        _SIMULATOR,
        "vLLM 0.10.1 on an H100, scheduling between steps: the same with and without speculation",
    ),
    HostTime(
        "sglang",
        ("dflash", "dspark"),
        CycleHost(cycle_s=_ALONE_S - _PER_SEQUENCE_S, sequence_s=_PER_SEQUENCE_S),
        "",
        "measured",
        "https://github.com/sgl-project/sglang/pull/23000",
        "what version 2 of speculation hides of the cycle of version 1, by batch; plain steps overlap",
        device="b200-sxm-180gb",
    ),
    # Of a cycle of version 1, version 2 hid 1.11 ms on one device and 1.96 ms on eight, which have to agree.
    HostTime(
        "sglang",
        _EAGLES,
        CycleHost(cycle_s=_exposed_s(1, (2.99, 3.01), (246.80, 273.43))),
        "",
        "measured",
        "https://github.com/sgl-project/sglang/pull/11398",
        "what version 2 of speculation hides of the cycle of version 1 (Llama-3.1-8B); plain steps overlap",
    ),
    HostTime(
        "sglang",
        _EAGLES,
        CycleHost(cycle_s=_exposed_s(1, (2.296, 2.296), (140.52, 159.71))),
        "",
        "measured",
        "https://github.com/sgl-project/sglang/pull/12128",
        "what version 2 of speculation hides of the cycle of version 1 (DeepSeek-R1 over eight devices)",
        ranks=8,
    ),
    # The same runs with version 2: 5.467 ms a cycle at batch 1 and 13.533 ms at 32, less 4.40 and 9.33 ms of
    # our device times and less 0.04 and 1.44 ms of prompts (tests/golden/test_engine_host.py).
    HostTime(
        "sglang-overlap",
        (),
        CycleHost(cycle_s=0.97e-3, sequence_s=0.056e-3),
        "",
        "derived",
        "https://github.com/sgl-project/sglang/pull/23000",
        "what a cycle of version 2 takes beyond the device's time as predicted here",
        device="b200-sxm-180gb",
    ),
    # Figure 3: DFlash drafts of 1, 3 and 5 layers take 2, 4 and 5 to 6 ms: 0.9 ms a layer and 1.1 ms beside.
    HostTime(
        "transformers",
        (),
        CycleHost(layer_s=0.9e-3, pass_s=1.1e-3),
        "dflash2026",
        "measured",
        "https://arxiv.org/abs/2602.06036, figure 3 (bars read off)",
        "Transformers on an H200, kernel by kernel",
    ),
    HostTime(
        "transformers",
        (),
        CycleHost(layer_s=_CAST_LAYER_S, pass_s=2.75e-3 - 5 * _CAST_LAYER_S),
        "cast2026",
        "measured",
        "https://github.com/js-lee-AI/CAST, data/ (MIT)",
        "Transformers on an RTX PRO 6000, kernel by kernel",
    ),
)
# Attention kernels of a layer over a tree: SGLang attends to cached positions and to the tree apart and
# merges them where topk is above 1 (use_cascade_attn in srt/layers/attention/flashattention_backend.py,
# 0.5.23).
TREE_KERNELS: Final[Mapping[str, int]] = {"sglang": 2}
# Engines that copy, after each cycle, the states of recurrent layers as of the last accepted position to
# where the next cycle starts (https://github.com/sgl-project/sglang/pull/12892 would spare it; not merged).
STATE_COPIERS: Final = ("sglang", "sglang-overlap")

# Engines whose steps carry prompts or decode, prompts first, unless they are told to mix them:
# `enable_mixed_chunk: bool = False` of
# https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/server_args.py
PROMPTS_FIRST: Final = ("sglang", "sglang-overlap")

# Time of a step of few rows over that of one, for weights in blocks of 4 and of 8 bits: llama.cpp's
# matrix-vector kernels unpack them again for every row. Gemma-3-4B in Q4_0 and Qwen2.5-Coder-7B in Q8_0 on a
# DGX Spark, batched bench
# (https://github.com/ggml-org/llama.cpp/blob/master/benches/dgx-spark.md); the caches of the sequences are in
# it, so it is an upper bound.
_ROWS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_ROW_COSTS: Final = {
    4: (1.0, 1.243, 1.358, 1.696, 2.279, 3.13),
    8: (1.0, 1.073, 1.121, 1.195, 1.395, 1.576),
}
_FEW_BITS: Final = 6


def row_cost(engine: str, bits: float, rows: float) -> float:
    """Time of a step over `rows` rows in steps over one, where the engine's kernels cost more a row.

    Args:
        engine: name.
        bits: of an element of the weights.
        rows: positions of all sequences together.
    """
    if engine != "llama.cpp" or bits > max(_ROW_COSTS):
        return 1.0
    costs = _ROW_COSTS[4 if bits <= _FEW_BITS else 8]
    position = next((index for index, known in enumerate(_ROWS) if known >= rows), len(_ROWS) - 1)
    if position == 0:
        return costs[0]
    low, high = _ROWS[position - 1], _ROWS[position]
    share = min((rows - low) / (high - low), 1.0)
    return costs[position - 1] + share * (costs[position] - costs[position - 1])


def host_time(
    engine: str, judged: str = "", kind: str = "", device: str = "", ranks: int = 1
) -> HostTime | None:
    """The host time of an engine, from another source than the rows it is used for.

    Of several, the one that was measured most alike: on the same device (waiting weighs more beside a faster
    one: https://github.com/sgl-project/sglang/issues/26171), with the same drafter, on one device or several.

    Args:
        engine: name.
        judged: key of the source of these rows; empty where no published row is judged.
        kind: of the drafter.
        device: profile id.
        ranks: devices that the model is split over.

    Returns:
        None where no other source states one.

    Raises:
        UnknownNameError: no engine of that name has an entry.
    """
    of_engine = [one for one in HOST_TIMES if one.engine == engine]
    if not of_engine:
        known = sorted({one.engine for one in HOST_TIMES})
        raise UnknownNameError("host time of engine", engine, known, f"(known: {', '.join(known)})")
    others = [one for one in of_engine if not judged or one.measured_by != judged]

    def alike(one: HostTime) -> tuple[bool, bool, bool]:
        return one.device == device != "", kind in one.kinds, (one.ranks > 1) == (ranks > 1)

    return max(others, key=alike, default=None)
