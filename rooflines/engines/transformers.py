"""Hugging Face Transformers: assisted generation counts candidates and matches, and prints neither.

`num_assistant_tokens` is the number of drafted tokens and by default changes at run time (schedule
``heuristic``: + 2 after a full match, else - 1), and a draft ends early below
`assistant_confidence_threshold` (generation/configuration_utils.py, 5.23). A cycle of `_assisted_decoding`
has `candidate_length` drafted tokens, `n_matches` of them accepted, and emits n_matches + 1
(generation/utils.py, 5.23).
"""

from __future__ import annotations

from typing import Final

from rooflines.engines.words import Engine, Method, Word

_UTILS: Final = "transformers/generation/utils.py, 5.23"
_TOKENS: Final = "num_assistant_tokens"

TRANSFORMERS: Final = Engine(
    name="transformers",
    title="Transformers",
    version="5.23",
    words=(
        Word("candidate_length", "drafted tokens of a cycle", "", _UTILS),
        Word("n_matches", "accepted tokens of a cycle; counted over cycles", "histogram", _UTILS),
    ),
    methods={
        "independent": Method("assistant_model", _TOKENS),
        "quantized": Method("assistant_model", _TOKENS),
        "layerskip": Method("assistant_early_exit", _TOKENS, needs_model=False),
        "ngram": Method("prompt_lookup", "prompt_lookup_num_tokens", needs_model=False),
    },
    schedule="",
)
