"""How a planned target is started: flags held against what they mean in each engine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from rooflines.engines.served import (
    STARTS,
    Served,
    llama_cpp_start,
    sglang_start,
    tensorrt_llm_start,
    vllm_start,
)

SERVED = Served(
    checkpoint_dtype="bf16",
    weight_dtype="bf16",
    memory_reserve=0.2,
    cache_share=0.75,
    positions=2053,
    largest_batch=412,
    asked_batch=64,
)


def flags(start, **changes):
    found, _ = start(replace(SERVED, **changes))
    return {name: value for name, value in pairwise([*found, ""]) if name.startswith("--")}


def lines(**changes):
    return tensorrt_llm_start(replace(SERVED, **changes))[0]


def notes(start, **changes):
    return " ".join(start(replace(SERVED, **changes))[1])


def test_memory_length_and_batch_are_those_of_the_plan():
    vllm, sglang = flags(vllm_start), flags(sglang_start)
    assert vllm["--gpu-memory-utilization"] == sglang["--mem-fraction-static"] == "0.8"
    assert vllm["--max-model-len"] == sglang["--context-length"] == "2053"
    assert vllm["--max-num-seqs"] == sglang["--max-running-requests"] == "412"
    assert lines() == [
        "max_batch_size: 412",
        "max_seq_len: 2053",
        "kv_cache_config:",
        "  free_gpu_memory_fraction: 0.750",  # of what weights leave, not of the device
    ]


def test_llama_holds_the_cache_of_each_slot_that_was_asked_for():
    """`--ctx-size` is divided among the slots (https://github.com/ggml-org/llama.cpp/issues/11681)."""
    found = flags(llama_cpp_start)
    assert int(found["--ctx-size"]) == int(found["--parallel"]) * 2053 == 64 * 2053


@pytest.mark.parametrize("start", [vllm_start, sglang_start])
def test_formats_of_the_checkpoint_need_no_flag(start):
    assert not {"--quantization", "--kv-cache-dtype", "--dtype"} & flags(start).keys()
    quantised = {"checkpoint_dtype": "fp8-block", "weight_dtype": "fp8-block"}
    assert "--quantization" not in flags(start, **quantised)
    assert "checkpoint" not in notes(start, **quantised)


def test_an_engine_makes_fp8_of_a_checkpoint_of_16_bits():
    for start in (vllm_start, sglang_start):
        assert flags(start, weight_dtype="fp8")["--quantization"] == "fp8"
        assert flags(start, weight_dtype="fp16")["--dtype"] == "float16"
    assert flags(vllm_start, weight_dtype="fp8-block")["--quantization"] == "fp8_per_block"


@pytest.mark.parametrize(
    ("start", "stored", "planned"),
    [
        (vllm_start, "bf16", "int4-g128"),
        (sglang_start, "bf16", "int4-g128"),
        (sglang_start, "bf16", "fp8-block"),
        (vllm_start, "fp8-block", "bf16"),
        (vllm_start, "int4-g128", "fp8"),
        (tensorrt_llm_start, "bf16", "fp8"),
        (llama_cpp_start, "bf16", "q4_k"),
    ],
)
def test_other_formats_come_with_the_checkpoint(start, stored, planned):
    changes = {"checkpoint_dtype": stored, "weight_dtype": planned}
    assert f"Serve a checkpoint in {planned}, as planned" in notes(start, **changes)
    assert not {"--quantization", "--dtype"} & set(start(replace(SERVED, **changes))[0])


def test_caches_are_written_in_the_words_of_each_engine():
    assert flags(vllm_start, kv_dtype="fp8")["--kv-cache-dtype"] == "fp8"
    assert flags(sglang_start, kv_dtype="fp8")["--kv-cache-dtype"] == "fp8_e4m3"
    assert lines(kv_dtype="fp8")[-2:] == ["  free_gpu_memory_fraction: 0.750", "  dtype: fp8"]
    llama = flags(llama_cpp_start, kv_dtype="q8_0")
    assert (llama["--cache-type-k"], llama["--cache-type-v"]) == ("q8_0", "q8_0")


@pytest.mark.parametrize(
    ("name", "unknown"), [("vllm", "q8_0"), ("sglang", "q8_0"), ("trtllm", "q8_0"), ("llamacpp", "fp8")]
)
def test_a_cache_that_an_engine_has_not_is_said(name, unknown):
    started, said = STARTS[name](replace(SERVED, kv_dtype=unknown))
    assert any(f"has no cache in {unknown}" in note for note in said)
    assert not any("cache-dtype" in word or "cache-type" in word or "  dtype" in word for word in started)


def test_one_device_is_not_mentioned():
    assert not {"--tensor-parallel-size", "--enable-expert-parallel"} & flags(vllm_start).keys()
    assert not {"--tp-size", "--ep-size", "--dp-size"} & flags(sglang_start).keys()
    assert "devices" not in notes(llama_cpp_start)


def test_experts_spread_over_the_devices_of_tensor_parallelism():
    spread = {"tensor_parallel": 8, "expert_parallel": 8}
    vllm = flags(vllm_start, **spread)
    assert vllm["--tensor-parallel-size"] == "8"
    assert "--enable-expert-parallel" in vllm
    assert "--data-parallel-size" not in vllm
    sglang = flags(sglang_start, **spread)
    assert (sglang["--tp-size"], sglang["--ep-size"]) == ("8", "8")
    assert "--dp-size" not in sglang
    assert lines(**spread)[:2] == ["tensor_parallel_size: 8", "moe_expert_parallel_size: 8"]
    assert "--enable-expert-parallel" not in flags(vllm_start, tensor_parallel=8)
    assert "8 devices side by side" in notes(llama_cpp_start, **spread)


def test_groups_that_share_experts_attend_to_sequences_of_their_own():
    """vLLM's devices are tensor x data parallel, and a batch is one rank's; SGLang's are tensor parallel."""
    groups = {"tensor_parallel": 2, "expert_parallel": 8}
    vllm = flags(vllm_start, **groups)
    assert (vllm["--tensor-parallel-size"], vllm["--data-parallel-size"]) == ("2", "4")
    assert vllm["--max-num-seqs"] == "412"
    sglang = flags(sglang_start, **groups)
    assert (sglang["--tp-size"], sglang["--dp-size"], sglang["--ep-size"]) == ("8", "4", "8")
    assert "--enable-dp-attention" in sglang
    assert sglang["--max-running-requests"] == str(4 * 412)
    assert "enable_attention_dp: true" not in lines(**groups)
    assert "4 groups of 2 are not written" in notes(tensorrt_llm_start, **groups)
    assert "enable_attention_dp: true" in lines(tensor_parallel=1, expert_parallel=8)
