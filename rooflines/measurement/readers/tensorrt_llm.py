"""TensorRT-LLM: ``trtllm-bench throughput|latency --report_json``.

Fields: tensorrt_llm/bench/dataclasses/reporting.py. Its percentiles of acceptance are over requests, and
their average is a mean of ratios; from the averages of counts beside them the ratio of means follows, which
is what a speedup depends on: iterations = output tokens - accepted drafts.
"""

from __future__ import annotations

from typing import Final

from rooflines.errors import FileFormatError
from rooflines.measurement.readers.files import Record, number, record_of, require, require_version
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, ServingRecord, Source

_TOOL: Final = "TensorRT-LLM"
_KNOWN: Final = ("1.",)
# How far the draft length that follows from the counts may lie from a whole number.
_WHOLE: Final = 0.01


def read_bench(source: Source) -> Imported:
    """A report of ``trtllm-bench``.

    Raises:
        FileFormatError: another version, or fields missing.
    """
    record = record_of(source.text, source.where)
    require(record, ("engine", "request_info", "performance"), source.where, f"{_TOOL} (known: 1.x)")
    engine = _part(record, "engine", source.where)
    version = require_version(engine.get("version"), _KNOWN, source.where, _TOOL)
    decoding = record.get("decoding_stats")
    acceptance = (_acceptance(record, source.where),) if decoding else ()
    return Imported(
        source=f"trtllm-bench {version}, {source.where}",
        versions={"tensorrt_llm": version},
        settings={
            key: value
            for key in ("model", "backend", "dtype", "quantization")
            if isinstance(value := engine.get(key), str)
        },
        acceptance=acceptance,
        serving=(_serving(record, source.where),),
        notes=("every iteration counts as a full draft, whether or not so much was drafted",)
        if acceptance
        else ("no speculation: the file has no decoding_stats",),
    )


def _acceptance(record: Record, where: str) -> AcceptanceRecord:
    stats = _part(record, "decoding_stats", where)
    drafted, accepted = (
        number(_part(stats, key, where), "average", where)
        for key in ("num_draft_tokens_percentiles", "num_accepted_draft_tokens_percentiles")
    )
    iterations = number(_part(record, "request_info", where), "avg_output_length", where) - accepted
    if iterations <= 0:
        raise FileFormatError(f"{where}: {accepted:g} accepted drafts exceed the output tokens")
    draft_length = round(drafted / iterations)
    if draft_length < 1 or abs(drafted / iterations - draft_length) > _WHOLE * draft_length:
        raise FileFormatError(
            f"{where}: {drafted:g} draft tokens in {iterations:g} iterations are no whole draft length"
        )
    tau = 1.0 + accepted / iterations
    return AcceptanceRecord.of_length(
        tau,
        label=str(stats.get("mode", "speculation")),
        draft_length=draft_length,
        cycles=round(iterations * number(_part(record, "request_info", where), "num_requests", where)),
        meaning="output tokens / iterations of all requests, bonus included",
    )


def _serving(record: Record, where: str) -> ServingRecord:
    requests, performance = _part(record, "request_info", where), _part(record, "performance", where)
    streaming = record.get("streaming_metrics")
    latencies = {"mean_request": number(performance, "avg_request_latency_ms", where) / 1e3}
    if isinstance(streaming, dict):
        latencies |= {
            "mean_ttft": number(streaming, "avg_ttft_ms", where) / 1e3,
            "mean_tpot": number(streaming, "avg_tpot_ms", where) / 1e3,
        }
    return ServingRecord(
        label="requests",
        concurrency=number(requests, "avg_num_concurrent_requests", where),
        requests=int(number(requests, "num_requests", where)),
        duration_s=number(performance, "total_latency_ms", where) / 1e3,
        input_tokens=number(requests, "avg_input_length", where),
        output_tokens=number(requests, "avg_output_length", where),
        output_tokens_per_s=number(performance, "system_output_throughput_tok_s", where),
        latencies_s=latencies,
    )


def _part(record: Record, key: str, where: str) -> Record:
    part = record.get(key)
    if not isinstance(part, dict):
        raise FileFormatError(f"{where}: {key} is {part!r}, which is no JSON object")
    return part
