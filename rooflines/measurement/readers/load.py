"""What the benchmarks under load of vLLM and SGLang write alike: SGLang's began as vLLM's."""

from __future__ import annotations

import re
from typing import Final

from rooflines.measurement.readers.files import Record, number, optional_number
from rooflines.measurement.readers.results import ServingRecord

_MILLISECONDS: Final = re.compile(r"(mean|median|std|p[\d.]+)_(ttft|tpot|itl|e2el|e2e_latency)_ms")


def run_under_load(record: Record, label: str, where: str, *, concurrency: str) -> ServingRecord:
    """Throughput and latency of one run.

    Args:
        record: as the benchmark wrote it.
        label: which run.
        where: the file, for messages.
        concurrency: the field with the sequences at a time, which the two name differently.

    Raises:
        FileFormatError: a field is missing, or no number.
    """
    completed = int(number(record, "completed", where))
    inputs = optional_number(record, "total_input_tokens", where)
    outputs = optional_number(record, "total_output_tokens", where)
    return ServingRecord(
        label=label,
        concurrency=optional_number(record, concurrency, where),
        requests=completed,
        duration_s=number(record, "duration", where),
        input_tokens=inputs / completed if inputs is not None and completed else None,
        output_tokens=outputs / completed if outputs is not None and completed else None,
        output_tokens_per_s=number(record, "output_throughput", where),
        latencies_s=_latencies_s(record, where),
    )


def _latencies_s(record: Record, where: str) -> dict[str, float]:
    """Statistics such as ``mean_ttft_ms`` as seconds, by name without the unit."""
    return {
        name.removesuffix("_ms"): number(record, name, where) / 1e3
        for name in record
        if _MILLISECONDS.fullmatch(name) and record[name] is not None
    }
