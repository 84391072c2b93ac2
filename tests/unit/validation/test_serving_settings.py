from __future__ import annotations

import pytest

from rooflines.models.readers import read_model
from rooflines.serving.host import AT_ONCE, Host, launch_floor_s
from rooflines.validation.serving_settings import Settings, settings_of

LLAMA, EXPERTS, DEEPSEEK = (read_model(name) for name in ("llama-3.1-70b", "gpt-oss-120b", "deepseek-r1"))


def settings(
    backend, model=LLAMA, *, system="h200_sxm", version="", mode="fp8", origin="2026-04-06.csv", **run
):
    texts = {
        "system": system,
        "backend": backend,
        "backend_version": version,
        "gemm_quant_mode": mode,
        "origin_file": origin,
    }
    return settings_of(
        texts, model, run.get("tensor", 2), run.get("lengths", (1024, 1024)), run.get("at_most", 16)
    )


@pytest.mark.parametrize("origin", ["2026-04-06.csv", "db-dump/2026-04-27"])
def test_inferencemax_draws_lengths_down_to_four_fifths(origin):
    assert settings("vllm", origin=origin) == Settings(0.8, 8192, AT_ONCE)


def test_tensorrt_llm_gathers_short_prompts_on_few_cards():
    """70b_fp8_h200_trt_slurm.sh: 20 iterations where both lengths are 1024, on fewer than eight cards."""
    short = settings("trtllm")
    assert (short.host.gather_steps, short.batched_tokens) == (20.0, 2248)
    assert settings("trtllm", tensor=8).host.gather_steps == 0.0
    assert settings("trtllm", lengths=(8192, 1024)).host.gather_steps == 0.0
    assert settings("trtllm", lengths=(8192, 1024)).batched_tokens == 9416
    assert settings("trtllm", EXPERTS) == Settings(0.8, 20_000, Host(launch_s=launch_floor_s(EXPERTS)))


def test_sglang_looks_for_requests_as_often_as_it_is_told():
    few, many = (
        settings("sglang", DEEPSEEK, system="b200_sxm", mode="nvfp4", at_most=most) for most in (8, 16)
    )
    assert (few.host.poll_steps, many.host.poll_steps, many.batched_tokens) == (10.0, 30.0, 16_384)
    assert settings("sglang", DEEPSEEK).host.poll_steps == 1.0
    assert settings("sglang", DEEPSEEK).batched_tokens == 32_768
    assert settings("sglang", DEEPSEEK, system="gb200").batched_tokens == 8192


def test_what_vllm_captures_is_not_launched():
    assert settings("vllm").host.launch_s == 0.0
    assert settings("vllm", system="b200_sxm").host.launch_s == launch_floor_s(LLAMA)
    assert settings("vllm", EXPERTS, system="b200_sxm").host.launch_s == 0.0


def test_generated_deployments_leave_room_for_a_prompt_and_1500_tokens():
    origin = "data/h100_sxm/trtllm/1.0.0rc3/Qwen_Qwen3-32B.csv"
    run = settings("trtllm", origin=origin, at_most=64)
    assert (run.shortest, run.batched_tokens) == (1.0, 64 + 1024 + 1500)
    assert run.host.launch_s > 0
    assert settings("vllm", origin=origin).host == AT_ONCE


@pytest.mark.parametrize(
    ("version", "first"), [("0.5.1.post1", True), ("0.5.6.post2", False), ("0.5.10", False)]
)
def test_sglang_mixes_chunks_where_the_flag_reached_it(version, first):
    run = settings("sglang", origin="data/sglang/x.csv", version=version)
    assert run.host.prompts_first is first
    assert run.batched_tokens == 8192


def test_of_other_tables_nothing_is_assumed():
    assert settings("vllm", origin="mine.csv") == Settings(1.0, 8192, AT_ONCE)
