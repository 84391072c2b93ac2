"""SGLang: `num_draft_tokens` counts the anchor, and "accept rate" has had two meanings.

The verify pass is `speculative_num_draft_tokens` wide, the root included, so a chain of `num_steps` drafts
has num_steps + 1 (forced where topk is 1: arg_groups/speculative_hook.py). A DFlash block size is that
width too; a DSpark block size is the number of drafts: "the verify window is gamma + 1"
(arg_groups/fields/spec.py).

"accept len" includes the bonus token. "accept rate" beside it in the log was accept len / num_draft_tokens in
older releases and is accepted drafts / (forwards (num_draft_tokens - 1)) now (metrics_reporter.py, 0.5.23).
`accept_rate_meaning` tells which from the two numbers printed together.
"""

from __future__ import annotations

from typing import Final

from rooflines.engines.words import Engine, Method, Word
from rooflines.errors import InputError

_REPORTER: Final = "srt/managers/scheduler_components/metrics_reporter.py, 0.5.23"
_COLLECTOR: Final = "srt/observability/metrics_collector.py, 0.5.23"
_WIDTH: Final = "--speculative-num-draft-tokens"
# Both numbers are printed with two digits.
_PRINTED: Final = 0.005

SGLANG: Final = Engine(
    name="sglang",
    title="SGLang",
    version="0.5.23",
    words=(
        Word("accept len", "tokens per cycle, bonus included", "accepted-length", _REPORTER),
        Word("accept rate", "accepted / drafted", "accepted-per-drafted", _REPORTER),
        Word(
            "accept rate (older)",
            "tokens per cycle / verify width",
            "tau-per-width",
            "srt/managers/scheduler_metrics_mixin.py, where accepted tokens include the bonus",
        ),
        Word(
            "accept_length",
            "tokens per cycle over the server's life, bonus included",
            "accepted-length",
            "sglang/benchmark/serving.py, 0.5.23",
        ),
        Word("sglang:spec_accept_length", "gauge of the last interval", "accepted-length", _COLLECTOR),
        Word("sglang:spec_accept_rate", "gauge of the last interval", "accepted-per-drafted", _COLLECTOR),
    ),
    methods={
        "independent": Method("STANDALONE", _WIDTH, anchor=1),
        "quantized": Method("STANDALONE", _WIDTH, anchor=1),
        "eagle": Method("EAGLE", _WIDTH, anchor=1),
        "eagle2": Method("EAGLE", _WIDTH, anchor=1),
        "eagle3": Method("EAGLE3", _WIDTH, anchor=1),
        "mtp": Method("NEXTN", _WIDTH, anchor=1, needs_model=False),
        "dflash": Method("DFLASH", "--speculative-dflash-block-size", anchor=1),
        "dspark": Method("DSPARK", "--speculative-dspark-block-size"),
        "ngram": Method("NGRAM", _WIDTH, anchor=1, needs_model=False),
    },
    schedule="--speculative-adaptive-config: candidate_steps by the smallest batch of each range "
    "(srt/speculative/adaptive_spec_params.py, 0.5.23); EAGLE and EAGLE3 chains only",
)


def accept_rate_meaning(accept_length: float, accept_rate: float, verify_width: int) -> str:
    """Which definition a printed "accept rate" follows, from the "accept len" beside it.

    Args:
        accept_length: tokens per cycle, the target's own included.
        accept_rate: as printed, two digits.
        verify_width: positions verified, `speculative_num_draft_tokens`.

    Returns:
        ``accepted-per-drafted`` or ``tau-per-width``.

    Raises:
        InputError: neither fits (the width is another one), or nothing was drafted.
    """
    if verify_width < 2:  # noqa: PLR2004 - the anchor and one drafted token
        raise InputError(f"verify width is {verify_width}: with the anchor it is 2 or more")
    newer = (accept_length - 1.0) / (verify_width - 1)
    older = accept_length / verify_width
    # The error of the printed length is carried into the rate that follows from it.
    if abs(accept_rate - newer) <= _PRINTED * (1 + 1 / (verify_width - 1)) + 1e-9:
        return "accepted-per-drafted"
    if abs(accept_rate - older) <= _PRINTED * (1 + 1 / verify_width) + 1e-9:
        return "tau-per-width"
    raise InputError(
        f"accept len {accept_length:g} and accept rate {accept_rate:g} fit no definition at verify width "
        f"{verify_width}: newer SGLang would print {newer:.2f}, older {older:.2f}; was the width another?"
    )
