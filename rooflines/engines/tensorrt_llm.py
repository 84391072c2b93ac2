"""TensorRT-LLM: `max_draft_len` counts drafts, and a schedule that ends switches speculation off.

`draft_len_schedule` maps the largest batch of each range to a draft length: {4: 4, 8: 2} drafts 4 up to batch
4, 2 up to batch 8, and nothing beyond (https://github.com/NVIDIA/TensorRT-LLM/pull/10860, March 2026).
Before, the keys were the smallest batch of each range: {1: 4, 4: 2, 8: 0}. In both the first entry must equal
`max_draft_len` (tensorrt_llm/llmapi/llm_args.py, `validate_draft_len_schedule_and_sort`). The benchmark
counts every iteration as `max_draft_len` drafted tokens, whether or not so many were
(bench/dataclasses/reporting.py, `num_draft_tokens`), and its percentiles are over requests: the mean of
ratios, not the ratio of means.
"""

from __future__ import annotations

from typing import Final

from rooflines.engines.words import Engine, Method, Word

_REPORTING: Final = "tensorrt_llm/bench/dataclasses/reporting.py, 1.x"
_LENGTH: Final = "max_draft_len"

TENSORRT_LLM: Final = Engine(
    name="trtllm",
    title="TensorRT-LLM",
    version="1.x",
    words=(
        Word(
            "acceptance_length_percentiles",
            "output tokens / iterations of each request, bonus and first token included",
            "accepted-length",
            _REPORTING,
        ),
        Word(
            "draft_acceptance_rate_percentiles",
            "accepted / (max_draft_len x iterations) of each request",
            "accepted-per-drafted",
            _REPORTING,
        ),
        Word("num_draft_tokens_percentiles", "max_draft_len x iterations of each request", "", _REPORTING),
        Word("num_accepted_draft_tokens_percentiles", "output tokens - iterations", "", _REPORTING),
    ),
    # decoding_type of the classes in tensorrt_llm/llmapi/llm_args.py.
    methods={
        "independent": Method("Draft_Target", _LENGTH),
        "quantized": Method("Draft_Target", _LENGTH),
        "eagle": Method("Eagle", _LENGTH),
        "eagle3": Method("Eagle3", _LENGTH),
        "mtp": Method("MTP", _LENGTH, needs_model=False),
        "ngram": Method("NGram", _LENGTH, needs_model=False),
    },
    schedule="draft_len_schedule: {largest batch of the range: draft length}, 0 beyond the last "
    "(https://github.com/NVIDIA/TensorRT-LLM/pull/10860)",
)
