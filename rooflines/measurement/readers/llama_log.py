"""llama.cpp's words about speculation: ``llama-server``, ``llama-speculative-simple``, statistics.

Newer servers print rates by position with each request, older ones accepted and generated tokens only;
``llama-speculative-simple`` prints totals from which the cycles follow, since every cycle emits the accepted
tokens and one more; statistics count drafts. Whatever says most is used. Sources: tools/server,
examples/speculative-simple, common/speculative.cpp and docs/speculative.md of llama.cpp.
"""

from __future__ import annotations

import re
from typing import Final

from rooflines.errors import FileFormatError, InputError
from rooflines.measurement.readers.files import decimals
from rooflines.measurement.readers.pooling import Interval, pooled_survival
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, Source

_REQUEST: Final = re.compile(
    r"draft acceptance(?: rate)? = [\d.]+ \(\s*(?P<accepted>\d+) accepted /\s*(?P<drafted>\d+) generated\)"
    r"(?:, mean acceptance length =\s*[\d.]+, acceptance rate per position = \((?P<rates>[\d., ]*)\))?"
)
_STATISTICS: Final = re.compile(
    r"statistics\s+(?P<drafter>[\w-]+): #calls.*?#gen drafts =\s*(?P<cycles>\d+), #acc drafts =\s*\d+, "
    r"#gen tokens =\s*(?P<drafted>\d+), #acc tokens =\s*(?P<accepted>\d+)"
)
_TOTAL: Final = re.compile(r"^\s*(n_draft|n_predict|n_drafted|n_accept)\s*=\s*(\d+)", re.MULTILINE)
_SHORTER: Final = (
    "drafts may be shorter than the draft length, which then overstates what each position yields"
)


def read_log(source: Source) -> Imported:
    """Acceptance from a log, by the line that says most.

    Raises:
        FileFormatError: no line is known.
        InputError: the draft length is needed and stated nowhere.
    """
    requests = list(_REQUEST.finditer(source.text))
    totals = {name: int(value) for name, value in _TOTAL.findall(source.text)}
    statistics = {match["drafter"]: match for match in _STATISTICS.finditer(source.text)}
    positions = [match for match in requests if match["rates"]]
    if positions:
        records = [_by_position(positions, source.where)]
    elif {"n_predict", "n_drafted", "n_accept"} <= set(totals):
        records = [_simple(totals, source)]
    elif statistics:
        records = [_statistics(drafter, match, source) for drafter, match in statistics.items()]
    elif requests:
        records = [_ratio(requests, source)]
    else:
        raise FileFormatError(
            f"{source.where} has no line of llama.cpp about drafts: 'draft acceptance = ...', "
            "'n_drafted = ...' or 'statistics DRAFTER: ...'"
        )
    return Imported(
        source=f"llama.cpp log, {source.where}",
        acceptance=tuple(records),
        notes=() if positions else (_SHORTER,),
    )


def _by_position(requests: list[re.Match[str]], where: str) -> AcceptanceRecord:
    intervals = [
        Interval(
            int(match["accepted"]),
            int(match["drafted"]),
            decimals(match["rates"], where),
        )
        for match in requests
    ]
    return pooled_survival(
        intervals,
        label=f"{len(intervals)} requests",
        meaning="acceptance rate per position: survival, over passes that had a draft",
    )


def _simple(totals: dict[str, int], source: Source) -> AcceptanceRecord:
    cycles = totals["n_predict"] - totals["n_accept"]
    if cycles < 1:
        raise FileFormatError(f"{source.where}: n_accept {totals['n_accept']} leaves no cycle of n_predict")
    return AcceptanceRecord.of_length(
        1.0 + totals["n_accept"] / cycles,
        label="llama-speculative-simple",
        cycles=cycles,
        draft_length=_stated(source, totals.get("n_draft")),
        meaning="n_predict / (n_predict - n_accept): tokens per cycle",
    )


def _statistics(drafter: str, match: re.Match[str], source: Source) -> AcceptanceRecord:
    cycles = int(match["cycles"])
    if cycles == 0:
        raise FileFormatError(f"{source.where}: {drafter} made no draft, so there is no acceptance to read")
    return AcceptanceRecord.of_length(
        1.0 + int(match["accepted"]) / cycles,
        label=drafter,
        cycles=cycles,
        draft_length=_stated(source, None),
        meaning="1 + #acc tokens / #gen drafts, over passes that had a draft of this kind",
    )


def _ratio(requests: list[re.Match[str]], source: Source) -> AcceptanceRecord:
    drafted = sum(int(match["drafted"]) for match in requests)
    if drafted == 0:
        raise FileFormatError(f"{source.where}: nothing was drafted, so there is no acceptance to read")
    return AcceptanceRecord(
        label=f"{len(requests)} requests",
        definition="accepted-per-drafted",
        values=(sum(int(match["accepted"]) for match in requests) / drafted,),
        draft_length=_stated(source, None),
        cycles=None,
        tokens_per_cycle=None,
        meaning="draft acceptance: accepted / generated tokens of all requests",
    )


def _stated(source: Source, logged: int | None) -> int:
    """The draft length: the user's, else the log's."""
    length = source.draft_length or logged
    if not length:
        raise InputError(
            f"{source.where} does not say how much was drafted: state the draft length (--spec-draft-n-max, "
            "formerly --draft-max)"
        )
    return length
