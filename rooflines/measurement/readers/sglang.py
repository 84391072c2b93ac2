"""SGLang: JSON lines of ``sglang.bench_serving``, and decode lines of the server's log.

Fields: sglang/benchmark/serving.py and srt/managers/scheduler_components/metrics_reporter.py, SGLang 0.5.23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rooflines.engines.sglang import accept_rate_meaning
from rooflines.errors import FileFormatError, InputError
from rooflines.measurement.readers.files import (
    Record,
    number,
    optional_number,
    records_of,
    require,
    require_version,
)
from rooflines.measurement.readers.load import run_under_load
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, Source

_TOOL: Final = "SGLang"
_KNOWN: Final = ("0.5.",)
_DECODE: Final = re.compile(
    r"Decode batch.*?#running-req: (?P<running>\d+).*?accept len: (?P<length>\d+(?:\.\d+)?)"
    r"(?:, accept rate: (?P<rate>\d+(?:\.\d+)?))?"
)
_WIDTH: Final = re.compile(r"speculative_num_draft_tokens=(\d+)")
# Wider verify passes than this were never seen; the search for the width ends here.
_WIDEST: Final = 256

Interval = tuple[int, float, float | None]


def read_bench(source: Source) -> Imported:
    """``python -m sglang.bench_serving --output-file``: one JSON object a line.

    Raises:
        FileFormatError: fields of every known version are missing, or another version of the server.
        InputError: an accepted length without the draft length that it was measured at.
    """
    records = records_of(source.text, source.where)
    acceptance, serving, versions = [], [], {}
    for index, record in enumerate(records, start=1):
        require(record, ("backend", "duration", "completed", "output_throughput"), source.where, _TOOL)
        label = f"run {index}, {record.get('dataset_name', 'requests')}"
        server = record.get("server_info")
        server = server if isinstance(server, dict) else {}
        if "version" in server:
            versions["sglang"] = require_version(server["version"], _KNOWN, source.where, _TOOL)
        if record.get("accept_length"):
            acceptance.append(_bench_acceptance(record, server, label, source))
        serving.append(run_under_load(record, label, source.where, concurrency="concurrency"))
    note = "accept_length is the server's since it was started, not of the run alone"
    return Imported(
        source=f"sglang.bench_serving, {source.where}",
        versions=versions,
        acceptance=tuple(acceptance),
        serving=tuple(serving),
        notes=(note,) if acceptance else ("no speculation: the file has no accept_length",),
    )


def read_log(source: Source) -> Imported:
    """Lines "Decode batch" of the server's log, weighted by the requests that were running.

    A line is about a fixed number of passes of all running requests, so that their number is its weight. The
    accept rate beside the accept length tells the verify width where neither the log nor the user does, and
    which of its two definitions it follows.

    Raises:
        FileFormatError: there is no such line.
        InputError: the verify width is unknown, or contradicts what is printed.
    """
    intervals: list[Interval] = [
        (int(match["running"]), float(match["length"]), float(match["rate"]) if match["rate"] else None)
        for match in _DECODE.finditer(source.text)
        if int(match["running"]) > 0
    ]
    if not intervals:
        raise FileFormatError(f"{source.where} has no line 'Decode batch ... accept len: ...' of SGLang")
    width, meaning = _width(intervals, source)
    weights = sum(running for running, _, _ in intervals)
    tau = sum(running * length for running, length, _ in intervals) / weights
    return Imported(
        source=f"SGLang log, {source.where}",
        settings={"speculative_num_draft_tokens": width},
        acceptance=(
            AcceptanceRecord.of_length(
                tau,
                label=f"{len(intervals)} intervals",
                draft_length=width - 1,
                cycles=None,
                meaning=f"accept len, bonus included; accept rate is {meaning}",
            ),
        ),
    )


def _width(intervals: Sequence[Interval], source: Source) -> tuple[int, str]:
    """The verify width, stated or inferred, and what "accept rate" means with it."""
    stated = source.draft_length + 1 if source.draft_length else None
    logged = _WIDTH.search(source.text)
    if stated is None and logged is not None:
        stated = int(logged[1])
    if stated is not None:
        return stated, _meaning(intervals, stated) or "not printed"
    found = []
    for width in range(2, _WIDEST + 1):
        try:
            meaning = _meaning(intervals, width)
        except InputError:
            continue
        if meaning is not None and max(length for _, length, _ in intervals) <= width:
            found.append((width, meaning))
    if len(found) != 1:
        raise InputError(
            f"{source.where} does not say how much was drafted (speculative_num_draft_tokens), and its rates "
            f"fit {len(found)} verify widths: state the draft length, which is num_draft_tokens - 1"
        )
    return found[0]


def _meaning(intervals: Sequence[Interval], width: int) -> str | None:
    """The one meaning of "accept rate" that all intervals agree on; None where it is not printed."""
    rated = [(length, rate) for _, length, rate in intervals if rate is not None]
    meanings = {accept_rate_meaning(length, rate, width) for length, rate in rated}
    if len(meanings) > 1:
        raise InputError(f"accept rate changes its meaning within the log at verify width {width}")
    return meanings.pop() if meanings else None


def _bench_acceptance(record: Record, server: Record, label: str, source: Source) -> AcceptanceRecord:
    tau = number(record, "accept_length", source.where)
    width = optional_number(server, "speculative_num_draft_tokens", source.where)
    draft_length = source.draft_length or (int(width) - 1 if width else 0)
    if draft_length < 1:
        raise InputError(
            f"{source.where} does not say how much was drafted (server_info.speculative_num_draft_tokens): "
            "state the draft length, which is num_draft_tokens - 1"
        )
    return AcceptanceRecord.of_length(
        tau,
        label=label,
        draft_length=draft_length,
        cycles=None,
        meaning="accept_length, bonus included",
    )
