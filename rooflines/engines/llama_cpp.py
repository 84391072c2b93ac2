"""llama.cpp: acceptance is accepted / drafted tokens, and drafts may be shorter than asked.

`n_max` counts drafted tokens; the target evaluates [last token, draft...], one more
(examples/speculative-simple). A DFlash input is "[id_last, <mask> * (block_size-1)]", so a block of 16 drafts
15, and an anchor-first DSpark block drafts all of it (common/speculative.cpp). Passes without a draft, as
n-gram lookups that find nothing, are not counted in "mean acceptance length" nor in rates by position.
`llama-bench -p n -d S` evaluates n tokens after S: T(n), with logits of the last position only.
"""

from __future__ import annotations

from typing import Final

from rooflines.engines.words import Engine, Method, Word

_SPECULATIVE: Final = "common/speculative.cpp (common_speculative_print_stats)"
_SERVER: Final = "tools/server/server-context.cpp"
_DRAFT: Final = "--spec-draft-n-max"

LLAMA_CPP: Final = Engine(
    name="llamacpp",
    title="llama.cpp",
    version="at commit 001d906",
    words=(
        Word("draft acceptance (rate)", "accepted / drafted tokens", "accepted-per-drafted", _SERVER),
        Word("mean acceptance length", "tokens per pass that had a draft", "accepted-length", _SERVER),
        Word("acceptance rate per position", "survival, over passes that had a draft", "survival", _SERVER),
        Word("#acc rate/pos", "survival, over passes that had a draft", "survival", _SPECULATIVE),
        Word(
            "n_drafted, n_accept, accept",
            "drafted tokens, accepted tokens, accepted / drafted",
            "accepted-per-drafted",
            "examples/speculative-simple/speculative-simple.cpp",
        ),
    ),
    methods={
        "independent": Method("draft-simple", _DRAFT),
        "quantized": Method("draft-simple", _DRAFT),
        "eagle3": Method("draft-eagle3", _DRAFT),
        "mtp": Method("draft-mtp", _DRAFT, needs_model=False),
        "dflash": Method("draft-dflash", _DRAFT),
        "dspark": Method("draft-dspark", _DRAFT),
        "ngram": Method("ngram-simple", "--spec-ngram-simple-size-m", needs_model=False),
    },
    schedule="",
)
