"""What published serving benchmarks set, beside what their tables say: lengths, budgets of steps, hosts.

Two bodies of benchmarks publish their commands. InferenceMAX (https://github.com/SemiAnalysisAI/InferenceX,
earlier InferenceMAX; scripts in `benchmarks/`, named below) draws lengths between 0.8 and 1 times the nominal
ones. AIConfigurator (https://github.com/ai-dynamo/aiconfigurator) deploys what its generator writes
(`src/aiconfigurator/generator/`) and measures it with equal lengths (`src/aiconfigurator/eval/benchmarks/`).
Nothing here comes from measured times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rooflines.models.spec import ModelSpec
from rooflines.serving.engine import DEFAULT_BATCHED_TOKENS
from rooflines.serving.host import AT_ONCE, Host, launch_floor_s

# Dumps of InferenceMAX's database are named after their day.
_DUMP: Final = re.compile(r"(db-dump/)?\d{4}-\d{2}-\d{2}(\.csv)?")
_GENERATED: Final = "data/"
# `--random-range-ratio 0.8`: benchmark_serving.py of https://github.com/kimbochen/bench_serving draws whole
# numbers from ratio times the length up to the length.
_SHORTEST: Final = 0.8
# Servers get `max-model-len` ISL + OSL + 200 (utils/matrix_logic/generate_sweep_configs.py), which
# 70b_fp8_h200_trt_slurm.sh and its like pass on as `--max_num_tokens`. Where both lengths are 1024, they wait
# for more prompts on fewer than eight cards: `batch_wait_timeout_iters: 20`.
_BESIDE_BOTH: Final = 200
_GATHERED: Final = (1024, 1024)
_GATHER_STEPS: Final = 20.0
_ALL_CARDS: Final = 8
# `--max_num_tokens` of gptoss_fp4_b200_trt_slurm.sh and gptoss_fp4_h200_trt.sh.
_GPT_OSS_TOKENS: Final = 20_000
# `--chunked-prefill-size`, and `--scheduler-recv-interval` below 16 requests at once and from there on, of
# dsr1_fp8_h200.sh, dsr1_fp4_b200.sh and dsr1_fp8_b200.sh (four cards: the table has no others).
_SGLANG: Final[Mapping[tuple[str, str], tuple[int, float, float]]] = {
    ("h200_sxm", "fp8"): (32_768, 1.0, 1.0),
    ("b200_sxm", "nvfp4"): (16_384, 10.0, 30.0),
    ("b200_sxm", "fp8"): (8_192, 10.0, 10.0),
}
_MANY: Final = 16
# 70b_fp4_b200_docker.sh: `"cudagraph_mode":"FULL_DECODE_ONLY"`, so that vLLM launches what carries a prompt.
_DECODE_GRAPHS: Final = ("b200_sxm", "llama-3.1-70b")
# The generator leaves room for a prompt and 1500 tokens beside the sequences: `agg max_num_tokens =
# max_batch_size + isl + 1500` (rule_plugin/trtllm.rule and vllm.rule). SGLang's steps keep its default of
# 8192: runs with outputs of 100 tokens take up more prompts a second than two a step would be.
_BESIDE_PROMPT: Final = 1500
# `agg enable_mixed_chunk = true` (sglang.rule), but the template of 0.5.1 writes `--enable-mix-chunk`, which
# is no flag of SGLang (cli_args.0.5.1.post1.j2).
_UNMIXED: Final = re.compile(r"0\.5\.1(\D|$)")


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one run.

    Attributes:
        shortest: shortest request over the nominal length; lengths are uniform from it up to that.
        batched_tokens: most positions in a step.
        host: what the server's host adds.
    """

    shortest: float = 1.0
    batched_tokens: int = DEFAULT_BATCHED_TOKENS
    host: Host = AT_ONCE


def from_inferencemax(texts: Mapping[str, str]) -> bool:
    """Whether the words of a row say that it comes from InferenceMAX's database."""
    return bool(_DUMP.fullmatch(texts["origin_file"]))


def settings_of(
    texts: Mapping[str, str], model: ModelSpec, tensor: int, lengths: tuple[int, int], at_most: int
) -> Settings:
    """What a run set, by where it was published; servers' defaults where that is unknown.

    Args:
        texts: words of the row: system, backend, backend_version, gemm_quant_mode and origin_file.
        model: the model.
        tensor: cards of an engine.
        lengths: nominal tokens in and out.
        at_most: sequences that one batch holds at most.
    """
    backend = texts["backend"]
    if from_inferencemax(texts):
        if backend == "trtllm":
            return _inferencemax_tensorrt(model, tensor, lengths)
        return _inferencemax_other(texts, model, at_most)
    if not texts["origin_file"].startswith(_GENERATED):
        return Settings()
    if backend == "sglang":
        unmixed = bool(_UNMIXED.match(texts["backend_version"]))
        return Settings(host=Host(launch_s=launch_floor_s(model), prompts_first=unmixed))
    # vLLM compiles the model and captures pieces of it around attention; TensorRT-LLM does so on request.
    launch_s = launch_floor_s(model) if backend == "trtllm" else 0.0
    return Settings(1.0, at_most + lengths[0] + _BESIDE_PROMPT, Host(launch_s=launch_s))


def _inferencemax_tensorrt(model: ModelSpec, tensor: int, lengths: tuple[int, int]) -> Settings:
    launch_s = launch_floor_s(model)
    if "gpt-oss" in model.name:
        return Settings(_SHORTEST, _GPT_OSS_TOKENS, Host(launch_s=launch_s))
    gather = _GATHER_STEPS if lengths == _GATHERED and tensor < _ALL_CARDS else 0.0
    return Settings(_SHORTEST, sum(lengths) + _BESIDE_BOTH, Host(gather_steps=gather, launch_s=launch_s))


def _inferencemax_other(texts: Mapping[str, str], model: ModelSpec, at_most: int) -> Settings:
    system = texts["system"]
    if texts["backend"] == "sglang":
        known = _SGLANG.get((system, texts["gemm_quant_mode"]), (DEFAULT_BATCHED_TOKENS, 1.0, 1.0))
        poll = known[2] if at_most >= _MANY else known[1]
        return Settings(_SHORTEST, known[0], Host(poll_steps=poll, launch_s=launch_floor_s(model)))
    if (system, model.name) == _DECODE_GRAPHS:
        return Settings(_SHORTEST, host=Host(launch_s=launch_floor_s(model)))
    return Settings(_SHORTEST)
