"""How a planned target is started: its devices, formats, memory and limits in the flags of each engine.

What an engine has no flag for, or takes from the checkpoint, is said in a note. Flags as of vLLM 0.33.0
(https://docs.vllm.ai/en/latest/configuration/engine_args/), SGLang 0.5.23
(https://docs.sglang.io/advanced_features/server_arguments.html), TensorRT-LLM 1.x
(tensorrt_llm/llmapi/llm_args.py) and llama.cpp (tools/server/README.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

# Formats that a checkpoint is not quantised in; an engine converts between them, and quantises from them.
_PLAIN: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# "fp8 weight quantization, add --quantization fp8 on a fp16 checkpoint" (SGLang); the same of vLLM.
_ONLINE: Final[Mapping[str, Mapping[str, str]]] = {
    "vLLM": {"fp8": "fp8", "fp8-block": "fp8_per_block"},
    "SGLang": {"fp8": "fp8"},
}
# CacheDType of vllm/config/cache.py; --kv-cache-dtype of SGLang; KvCacheConfig.dtype of TensorRT-LLM;
# --cache-type-k of llama.cpp.
_CACHES: Final[Mapping[str, Mapping[str, str]]] = {
    "vLLM": {"bf16": "bfloat16", "fp16": "float16", "fp8": "fp8"},
    "SGLang": {"bf16": "bf16", "fp8": "fp8_e4m3"},
    "TensorRT-LLM": {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "nvfp4": "nvfp4"},
    "llama.cpp": {
        "fp32": "f32",
        "fp16": "f16",
        "bf16": "bf16",
        **{name: name for name in ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl")},
    },
}
Started: TypeAlias = tuple[list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Served:
    """How the target is served in a plan.

    Attributes:
        tensor_parallel: t, devices that the dense layers are split over.
        expert_parallel: e, devices that the experts are spread over, a multiple of t; 1 where they are split
            like all else.
        checkpoint_dtype: format of the checkpoint's linear layers.
        weight_dtype: format of the linear layers as planned.
        kv_dtype: format of cached keys and values; None for the engine's own choice.
        memory_reserve: share of the memory kept free.
        cache_share: what cached keys and values may take of the memory that weights leave, as a share.
        positions: of a sequence at most: those cached, and those of a cycle.
        largest_batch: of one group of t devices, at which the plan ends.
        asked_batch: the largest that the plan was asked for, which has its place in memory.
    """

    checkpoint_dtype: str
    weight_dtype: str
    memory_reserve: float
    cache_share: float
    positions: int
    largest_batch: int
    asked_batch: int
    kv_dtype: str | None = None
    tensor_parallel: int = 1
    expert_parallel: int = 1

    @property
    def devices(self) -> int:
        """Devices of all groups."""
        return max(self.tensor_parallel, self.expert_parallel)

    @property
    def groups(self) -> int:
        """Groups of t devices that share the experts, each with sequences of its own."""
        return self.devices // self.tensor_parallel


def vllm_start(served: Served) -> Started:
    """Flags of ``vllm serve``, and notes."""
    flags = _flag("--tensor-parallel-size", served.tensor_parallel)
    flags += _flag("--data-parallel-size", served.groups)
    flags += ["--enable-expert-parallel"] if served.expert_parallel > 1 else []
    formats, notes = _formats(served, "vLLM")
    flags += [*formats, "--gpu-memory-utilization", f"{1.0 - served.memory_reserve:.4g}"]
    flags += ["--max-model-len", str(served.positions), "--max-num-seqs", str(served.largest_batch)]
    return flags, [*notes, _limits("--max-model-len", "--max-num-seqs")]


def sglang_start(served: Served) -> Started:
    """Flags of ``sglang.launch_server``, and notes; its tensor parallelism counts all devices."""
    flags = _flag("--tp-size", served.devices)
    if served.groups > 1:
        flags += ["--dp-size", str(served.groups), "--enable-dp-attention"]
    flags += _flag("--ep-size", served.expert_parallel)
    formats, notes = _formats(served, "SGLang")
    flags += [*formats, "--mem-fraction-static", f"{1.0 - served.memory_reserve:.4g}"]
    running = served.largest_batch * served.groups
    flags += ["--context-length", str(served.positions), "--max-running-requests", str(running)]
    return flags, [*notes, _limits("--context-length", "--max-running-requests")]


def tensorrt_llm_start(served: Served) -> Started:
    """Lines of TensorRT-LLM's YAML, and notes."""
    notes = []
    lines = [f"tensor_parallel_size: {served.devices}"] if served.devices > 1 else []
    if served.expert_parallel > 1:
        lines.append(f"moe_expert_parallel_size: {served.expert_parallel}")
    if served.groups > 1 and served.tensor_parallel == 1:
        lines.append("enable_attention_dp: true")
    elif served.groups > 1:
        notes.append(
            f"TensorRT-LLM splits attention over all devices or none: the plan's {served.groups} groups of "
            f"{served.tensor_parallel} are not written."
        )
    lines += [f"max_batch_size: {served.largest_batch}", f"max_seq_len: {served.positions}"]
    lines += ["kv_cache_config:", f"  free_gpu_memory_fraction: {served.cache_share:.3f}"]
    cache = _cache(served, "TensorRT-LLM")
    lines += [f"  dtype: {cache}"] if cache else []
    notes += _unwritten(served, "TensorRT-LLM")
    return lines, [*notes, _limits("max_seq_len", "max_batch_size")]


def llama_cpp_start(served: Served) -> Started:
    """Flags of ``llama-server``, and notes; it holds the cache of every slot from the start."""
    slots = served.asked_batch
    flags = ["--parallel", str(slots), "--ctx-size", str(slots * served.positions)]
    cache = _cache(served, "llama.cpp")
    flags += ["--cache-type-k", cache, "--cache-type-v", cache] if cache else []
    slot = f"{slots} slots of {served.positions} positions, the context planned and one cycle"
    notes = [f"--ctx-size is {slot}: raise it where requests are longer."]
    notes += _unwritten(served, "llama.cpp")
    if served.devices > 1:
        notes.append(
            f"The plan has {served.devices} devices side by side: llama.cpp gives each some of the layers, "
            "one after another, unless told otherwise (--split-mode)."
        )
    return flags, notes


STARTS: Final[Mapping[str, Callable[[Served], Started]]] = {
    "vllm": vllm_start,
    "sglang": sglang_start,
    "trtllm": tensorrt_llm_start,
    "llamacpp": llama_cpp_start,
}


def _flag(name: str, count: int) -> list[str]:
    return [name, str(count)] if count > 1 else []


def _formats(served: Served, engine: str) -> Started:
    """Flags of the formats of weights and cache, and what there is no flag for."""
    flags: list[str] = []
    wanted, stored = served.weight_dtype, served.checkpoint_dtype
    if wanted != stored and stored in _PLAIN:
        if wanted in _ONLINE[engine]:
            flags += ["--quantization", _ONLINE[engine][wanted]]
        elif wanted in _PLAIN:
            flags += ["--dtype", _PLAIN[wanted]]
    notes = _unwritten(served, engine, weights_written=bool(flags))
    cache = _cache(served, engine)
    flags += ["--kv-cache-dtype", cache] if cache else []
    return flags, notes


def _cache(served: Served, engine: str) -> str | None:
    return _CACHES[engine].get(served.kv_dtype) if served.kv_dtype else None


def _unwritten(served: Served, engine: str, *, weights_written: bool = False) -> list[str]:
    """What is to be done about planned formats that no flag sets."""
    notes = []
    if served.weight_dtype != served.checkpoint_dtype and not weights_written:
        notes.append(
            f"Serve a checkpoint in {served.weight_dtype}, as planned: {engine} takes the format of "
            f"weights from it, and that of this one is {served.checkpoint_dtype}."
        )
    if served.kv_dtype and not _cache(served, engine):
        known = ", ".join(_CACHES[engine].values())
        notes.append(f"{engine} has no cache in {served.kv_dtype}, which the plan has: it knows {known}.")
    return notes


def _limits(length: str, batch: str) -> str:
    return (
        f"{length} is the context planned and one cycle, {batch} the largest batch of the plan that fits: "
        "raise the first where requests are longer, and fewer fit."
    )
