"""Time that an engine's host takes between passes: a fact about the engine, with its source.

A plan assumes none (`--overhead` and `--cycle-overhead` add it). Where a published row is predicted, the
figure must come from another source than the row, so each entry names who measured it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rooflines.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class HostTime:
    """Host time of one engine that overlaps nothing on the device.

    Attributes:
        engine: name, with the mode of scheduling where that decides.
        plain_s: of one plain decode step (s).
        cycle_s: of one cycle of draft and verify (s).
        layer_s: of one layer of a pass that the host launches kernel by kernel (s); such a pass takes the
            longer of this and the device's time; 0 where graphs are replayed.
        pass_s: of such a pass beside its layers (s).
        measured_by: key of the source in tables of speedups; empty where it is no source of them.
        basis: ``measured``, or ``assumed`` where it is another engine's figure.
        source: where it can be read.
        note: what it means.
    """

    engine: str
    plain_s: float
    cycle_s: float
    measured_by: str
    basis: str
    source: str
    note: str
    layer_s: float = 0.0
    pass_s: float = 0.0


# c_overhead of the simulator's fit to vLLM 0.10.1 on an H100: 1.207 ms a step, speculating or not.
_VLLM_STEP_S: Final = 1.207e-3
_SIMULATOR: Final = "https://github.com/SpecDecode-Bench/simulator"

HOST_TIMES: Final[tuple[HostTime, ...]] = (
    HostTime(
        "vllm",
        _VLLM_STEP_S,
        _VLLM_STEP_S,
        "specdecodebench2026",
        "measured",
        _SIMULATOR,
        "vLLM 0.10.1 on an H100, scheduling between steps: the same with and without speculation",
    ),
    HostTime(
        "sglang",
        0.0,
        _VLLM_STEP_S,
        "specdecodebench2026",
        "assumed",
        f"{_SIMULATOR}; https://lmsys.org/blog/2024-12-04-sglang-v0-4/",
        "plain steps overlap with the scheduler; speculation of version 1 does not "
        "(https://github.com/sgl-project/sglang/pull/9588), and is given vLLM's time",
    ),
    HostTime(
        "sglang-overlap",
        0.0,
        0.0,
        "",
        "assumed",
        "https://github.com/sgl-project/sglang/issues/11762",
        "speculation of version 2 overlaps with the scheduler",
    ),
    # Figure 3: DFlash drafts of 1, 3 and 5 layers take 2, 4 and 5 to 6 ms: 0.9 ms a layer and 1.1 ms beside.
    HostTime(
        "transformers",
        0.0,
        0.0,
        "dflash2026",
        "measured",
        "https://arxiv.org/abs/2602.06036, figure 3 (bars read off)",
        "Transformers on an H200, kernel by kernel",
        layer_s=0.9e-3,
        pass_s=1.1e-3,
    ),
    # Latency files: 17.24 ms for one position of Qwen3-8B (36 layers), 2.75 ms for its DFlash draft of 5.
    HostTime(
        "transformers",
        0.0,
        0.0,
        "cast2026",
        "measured",
        "https://github.com/js-lee-AI/CAST, data/ (MIT)",
        "Transformers on an RTX PRO 6000, kernel by kernel",
        layer_s=(17.24e-3 - 2.75e-3) / (36 - 5),
        pass_s=2.75e-3 - 5 * (17.24e-3 - 2.75e-3) / (36 - 5),
    ),
)


def host_time(engine: str, judged: str = "") -> HostTime | None:
    """The host time of an engine, from another source than the rows it is used for.

    Args:
        engine: name.
        judged: key of the source of these rows; empty where no published row is judged.

    Returns:
        None where no other source states one.

    Raises:
        UnknownNameError: no engine of that name has an entry.
    """
    of_engine = [one for one in HOST_TIMES if one.engine == engine]
    if not of_engine:
        known = sorted({one.engine for one in HOST_TIMES})
        raise UnknownNameError("host time of engine", engine, known, f"(known: {', '.join(known)})")
    return next((one for one in of_engine if not judged or one.measured_by != judged), None)
