"""vLLM: counters without the bonus token, rates by position that are survival, settings that count drafts.

`num_speculative_tokens` is the number of drafted tokens; the verify pass is one wider. A DFlash block of 16
is therefore 15 here (`max_query_tokens = max_batch_size * (1 + num_speculative_tokens)`, dflash.py), a DSpark
block is all drafted (the engine takes `num_speculative_tokens` = block size from its config).
Cycles of requests for which nothing was drafted are not counted: `observe_draft` is called only with drafts.
"""

from __future__ import annotations

from typing import Final

from rooflines.engines.words import Engine, Method, Word

_METRICS: Final = "vllm/v1/spec_decode/metrics.py, 0.33.0"
_SERVE: Final = "vllm/benchmarks/serve.py, 0.33.0"
_CONFIG: Final = "num_speculative_tokens"

DRAFTS: Final = "vllm:spec_decode_num_drafts"
DRAFT_TOKENS: Final = "vllm:spec_decode_num_draft_tokens"
ACCEPTED_TOKENS: Final = "vllm:spec_decode_num_accepted_tokens"
ACCEPTED_PER_POSITION: Final = "vllm:spec_decode_num_accepted_tokens_per_pos"

VLLM: Final = Engine(
    name="vllm",
    title="vLLM",
    version="0.33.0",
    words=(
        Word("Mean acceptance length", "tokens per cycle, bonus included", "accepted-length", _METRICS),
        Word("Per-position acceptance rate", "survival of each position", "survival", _METRICS),
        Word("Avg Draft acceptance rate", "accepted / drafted, in percent", "accepted-per-drafted", _METRICS),
        Word("spec_decode_acceptance_length", "tokens per cycle, bonus included", "accepted-length", _SERVE),
        Word("spec_decode_acceptance_rate", "accepted / drafted, in percent", "accepted-per-drafted", _SERVE),
        Word("spec_decode_per_position_acceptance_rates", "survival of each position", "survival", _SERVE),
        Word(f"{ACCEPTED_PER_POSITION}_total", "counter; over drafts it is survival", "survival", _METRICS),
    ),
    methods={
        "independent": Method("draft_model", _CONFIG),
        "quantized": Method("draft_model", _CONFIG),
        "eagle": Method("eagle", _CONFIG),
        "eagle3": Method("eagle3", _CONFIG),
        "mtp": Method("mtp", _CONFIG, needs_model=False),
        "dflash": Method("dflash", _CONFIG),
        "dspark": Method("dspark", _CONFIG),
        "ngram": Method("ngram", _CONFIG, needs_model=False),
    },
    schedule="num_speculative_tokens_per_batch_size: [first, last, tokens], both ends included, the last "
    "entry carried on beyond (vllm/v1/spec_decode/dynamic/utils.py, 0.33.0)",
)
