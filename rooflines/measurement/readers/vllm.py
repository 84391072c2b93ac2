"""vLLM: JSON of ``vllm bench serve``, ``latency`` and ``throughput``, and the engine's log.

Fields: vllm/benchmarks/{serve,latency,throughput}.py and vllm/v1/spec_decode/metrics.py, vLLM 0.33.0. The
files do not say their version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rooflines.errors import FileFormatError
from rooflines.measurement.readers.files import (
    Record,
    decimals,
    number,
    record_of,
    records_of,
    require,
)
from rooflines.measurement.readers.load import run_under_load
from rooflines.measurement.readers.pooling import Interval, pooled_survival
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, ServingRecord, Source

_TOOL: Final = "vLLM (fields as of 0.33.0)"
# Releases differ in what stands before and behind these, and older ones print no rates by position.
_LINE: Final = re.compile(r"SpecDecoding metrics: .*")
_LOG: Final = re.compile(r"Accepted: (?P<accepted>\d+) tokens, Drafted: (?P<drafted>\d+) tokens")
_RATES: Final = re.compile(r"Per-position acceptance rate: (?P<rates>[\d.]+(?:, [\d.]+)*)")
_LENGTH: Final = re.compile(r"Mean acceptance length: (?P<length>[\d.]+)")
# Of a length that is printed to two digits.
_HALF_A_DIGIT: Final = 0.005


def read_serve(source: Source) -> Imported:
    """``vllm bench serve --save-result``: one JSON object, or one a line with ``--append-result``.

    Raises:
        FileFormatError: fields of every known version are missing, or no numbers.
    """
    records = records_of(source.text, source.where)
    for record in records:
        require(
            record, ("duration", "completed", "output_throughput", "total_output_tokens"), source.where, _TOOL
        )
    labels = [_label(record, index) for index, record in enumerate(records, start=1)]
    acceptance = [
        _acceptance(record, label, source.where)
        for record, label in zip(records, labels, strict=True)
        if record.get("spec_decode_num_drafts")
    ]
    return Imported(
        source=f"vllm bench serve, {source.where}",
        created=str(records[0].get("date", "")),
        settings={
            key: value
            for key in ("backend", "model_id", "request_rate", "burstiness")
            if isinstance(value := records[0].get(key), str | int | float)
        },
        acceptance=tuple(acceptance),
        serving=tuple(
            run_under_load(record, label, source.where, concurrency="max_concurrency")
            for record, label in zip(records, labels, strict=True)
        ),
        notes=() if acceptance else ("no speculation: the file has no spec_decode_ fields",),
    )


def read_latency(source: Source) -> Imported:
    """``vllm bench latency --output-json``: seconds of whole batches, prefill and all.

    Raises:
        FileFormatError: fields of every known version are missing, or no numbers.
    """
    record = record_of(source.text, source.where)
    require(record, ("avg_latency", "latencies", "percentiles"), source.where, _TOOL)
    percentiles = record["percentiles"]
    if not isinstance(percentiles, dict) or not isinstance(record["latencies"], list):
        raise FileFormatError(f"{source.where}: percentiles is no object or latencies no list")
    latencies = {f"p{name}_batch": number(percentiles, name, source.where) for name in percentiles}
    return Imported(
        source=f"vllm bench latency, {source.where}",
        settings={"model_id": str(record["model_id"])} if "model_id" in record else {},
        serving=(
            ServingRecord(
                label="batch",
                concurrency=None,
                requests=len(record["latencies"]),
                duration_s=None,
                input_tokens=None,
                output_tokens=None,
                output_tokens_per_s=None,
                latencies_s={"mean_batch": number(record, "avg_latency", source.where), **latencies},
            ),
        ),
        notes=(
            "requests are repetitions of one batch; its size, prompt and output lengths are not in the file",
        ),
    )


def read_throughput(source: Source) -> Imported:
    """``vllm bench throughput --output-json``.

    Raises:
        FileFormatError: fields of every known version are missing, or no numbers.
    """
    record = record_of(source.text, source.where)
    require(
        record,
        ("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"),
        source.where,
        _TOOL,
    )
    return Imported(
        source=f"vllm bench throughput, {source.where}",
        settings={"tokens_per_second": number(record, "tokens_per_second", source.where)},
        serving=(
            ServingRecord(
                label="offline",
                concurrency=None,
                requests=int(number(record, "num_requests", source.where)),
                duration_s=number(record, "elapsed_time", source.where),
                input_tokens=None,
                output_tokens=None,
                output_tokens_per_s=None,
                latencies_s={},
            ),
        ),
        notes=(
            "tokens_per_second counts prompt and output tokens together, and the file does not part them",
        ),
    )


def read_log(source: Source) -> Imported:
    """Lines "SpecDecoding metrics" of the engine's log, pooled by the cycles behind each.

    Raises:
        FileFormatError: there is no such line.
    """
    lines = _LINE.findall(source.text)
    counted = [(line, match) for line in lines if (match := _LOG.search(line))]
    if not counted:
        raise FileFormatError(
            f"{source.where} has no line 'SpecDecoding metrics: ... Accepted: N tokens, Drafted: N tokens'"
        )
    label = f"{len(counted)} intervals"
    rows = [
        Interval(int(match["accepted"]), int(match["drafted"]), decimals(rates["rates"], source.where))
        for line, match in counted
        if (rates := _RATES.search(line))
    ]
    found = (
        pooled_survival(rows, label=label, meaning="Per-position acceptance rate: survival")
        if len(rows) == len(counted)
        else _pooled_length(counted, source, label)
    )
    return Imported(source=f"vLLM log, {source.where}", acceptance=(found,))


def _pooled_length(
    counted: Sequence[tuple[str, re.Match[str]]], source: Source, label: str
) -> AcceptanceRecord:
    """Tokens per cycle without rates by position: 1 + accepted / cycles, with cycles = drafted / gamma."""
    accepted, drafted = (sum(int(match[name]) for _, match in counted) for name in ("accepted", "drafted"))
    gamma = source.draft_length or _draft_length(counted)
    if gamma is None:
        raise FileFormatError(
            f"{source.where} has lines without rates by position, and their draft length does not follow "
            "from what they print: give it (rooflines import vllm-log FILE --draft-length N)"
        )
    cycles = drafted / gamma
    if cycles <= 0:
        raise FileFormatError(f"{label}: nothing was drafted, so there is no acceptance to read")
    return AcceptanceRecord.of_length(
        1.0 + accepted / cycles,
        label=label,
        draft_length=gamma,
        cycles=round(cycles),
        meaning=f"Accepted and Drafted at {gamma} tokens a draft, bonus included",
    )


def _draft_length(counted: Sequence[tuple[str, re.Match[str]]]) -> int | None:
    """The whole (mean length - 1) drafted / accepted on which all lines that can tell agree."""
    found = set()
    for line, match in counted:
        length, accepted, drafted = _LENGTH.search(line), int(match["accepted"]), int(match["drafted"])
        if length is None or not accepted:
            continue
        per_token = drafted / accepted
        gamma = (float(length["length"]) - 1.0) * per_token
        if abs(gamma - round(gamma)) > _HALF_A_DIGIT * per_token + 1e-9 or round(gamma) < 1:
            return None
        found.add(round(gamma))
    return found.pop() if len(found) == 1 else None


def _label(record: Record, index: int) -> str:
    concurrency, rate = record.get("max_concurrency"), record.get("request_rate")
    return f"run {index}, concurrency {concurrency}" if concurrency else f"run {index}, rate {rate}"


def _acceptance(record: Record, label: str, where: str) -> AcceptanceRecord:
    rates = record.get("spec_decode_per_position_acceptance_rates") or []
    if not isinstance(rates, list) or not all(isinstance(rate, int | float) for rate in rates):
        raise FileFormatError(f"{where}: spec_decode_per_position_acceptance_rates is no list of numbers")
    cycles = int(number(record, "spec_decode_num_drafts", where))
    tau = 1.0 + number(record, "spec_decode_accepted_tokens", where) / cycles
    drafted = number(record, "spec_decode_draft_tokens", where) / cycles
    if rates:
        return AcceptanceRecord(
            label=label,
            definition="survival",
            values=tuple(float(rate) for rate in rates),
            draft_length=len(rates),
            cycles=cycles,
            tokens_per_cycle=tau,
            meaning="spec_decode_per_position_acceptance_rates: survival",
        )
    return AcceptanceRecord.of_length(
        tau,
        label=label,
        draft_length=max(1, round(drafted)),
        cycles=cycles,
        meaning="spec_decode_acceptance_length, bonus included",
    )
