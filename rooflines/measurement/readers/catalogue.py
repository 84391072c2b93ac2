"""Which reader reads what, and how a file is recognised by what stands in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from rooflines.errors import FileFormatError, InputError, UnknownNameError
from rooflines.facts import render_mistakes
from rooflines.measurement.readers import (
    llama_bench,
    llama_log,
    prometheus,
    sglang,
    table,
    tensorrt_llm,
    transformers,
    vllm,
)
from rooflines.measurement.readers.files import read_text
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, Source
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_acceptance


@dataclass(frozen=True, slots=True)
class Reader:
    """A format that can be read.

    Attributes:
        kind: its name.
        read: from the file to what is in it.
        marks: what its text has, and no other's.
        meaning: what it is, in one line.
    """

    kind: str
    read: Callable[[Source], Imported]
    marks: re.Pattern[str]
    meaning: str


# In the order in which they are tried: what is more particular comes first.
READERS: Final[tuple[Reader, ...]] = (
    Reader("llama-bench", llama_bench.read_llama_bench, re.compile('"samples_ns"'), "llama-bench -o json"),
    Reader(
        "llama-batched-bench",
        llama_bench.read_batched_bench,
        re.compile(r'"speed_tg"|S_TG t/s'),
        "llama-batched-bench, JSON lines or table",
    ),
    Reader(
        "trtllm-bench",
        tensorrt_llm.read_bench,
        re.compile('"request_info"'),
        "trtllm-bench --report_json",
    ),
    Reader(
        "vllm-latency", vllm.read_latency, re.compile('"avg_latency"'), "vllm bench latency --output-json"
    ),
    Reader(
        "vllm-throughput",
        vllm.read_throughput,
        re.compile('"total_num_tokens"'),
        "vllm bench throughput --output-json",
    ),
    Reader(
        "sglang-bench",
        sglang.read_bench,
        re.compile('"accept_length"|"server_info"'),
        "sglang.bench_serving --output-file",
    ),
    Reader(
        "vllm-serve",
        vllm.read_serve,
        re.compile('"output_throughput"'),
        "vllm bench serve --save-result",
    ),
    Reader(
        "transformers",
        transformers.read_cycles,
        re.compile('"n_matches"'),
        "cycles of assisted generation, JSON lines",
    ),
    Reader(
        "prometheus",
        prometheus.read_metrics,
        re.compile(r"^(?:vllm:spec_decode|sglang:spec_accept)", re.MULTILINE),
        "/metrics of vLLM or SGLang (--before for an earlier scrape)",
    ),
    Reader("vllm-log", vllm.read_log, re.compile("SpecDecoding metrics:"), "log of a vLLM server"),
    Reader("sglang-log", sglang.read_log, re.compile(r"accept len: "), "log of an SGLang server"),
    Reader(
        "llama-log",
        llama_log.read_log,
        re.compile(r"draft acceptance|n_drafted\s*=|statistics\s+[\w-]+: #calls"),
        "log of llama-server or llama-speculative-simple",
    ),
    Reader(
        "csv",
        table.read_table,
        re.compile(r"\A\s*(?:position|draft_length|accepted)\s*,"),
        "acceptance of your own: position,survival and the like",
    ),
)
_BY_KIND: Final = {reader.kind: reader for reader in READERS}


def reader(kind: str) -> Reader:
    """The reader of a format.

    Raises:
        UnknownNameError: none has that name.
    """
    if kind not in _BY_KIND:
        raise UnknownNameError("kind of file", kind, _BY_KIND, f"(known: {', '.join(_BY_KIND)})")
    return _BY_KIND[kind]


def import_file(
    kind: str | None, path: Path, *, before: Path | None = None, draft_length: int | None = None
) -> Imported:
    """Read a file of another tool.

    Args:
        kind: of the file, see `READERS`; None recognises it by what stands in it.
        path: of the file.
        before: an earlier scrape of the same counters (``prometheus`` only).
        draft_length: drafted tokens per cycle, for files that do not say it.

    Raises:
        UnknownNameError: an unknown kind.
        FileFormatError: the file is not what the kind says, or of an unknown version.
        InputError: `before` or `draft_length` has no place or is missing, or impossible acceptance.
    """
    chosen = recognise(read_text(path), path.name) if kind is None else reader(kind)
    if before is not None and chosen.kind != "prometheus":
        raise InputError(f"an earlier scrape belongs to prometheus, not to {chosen.kind}")
    if draft_length is not None and draft_length < 1:
        raise InputError(f"draft length is {draft_length}: give 1 or more")
    earlier = read_text(before) if before is not None else None
    return read_source(chosen, Source(read_text(path), path.name, earlier, draft_length))


def read_source(chosen: Reader, source: Source) -> Imported:
    """Read a text, and refuse numbers that cannot be.

    Raises:
        FileFormatError: not what the reader reads, or numbers out of all bounds.
        InputError: impossible acceptance.
    """
    try:
        found = chosen.read(source)
    except ValidationError as mistakes:
        raise FileFormatError(f"{source.where}: {render_mistakes(mistakes)}") from None
    for record in found.acceptance:
        record.acceptance()
    return found


def recognise(text: str, where: str) -> Reader:
    """The reader of a text, by what stands in it.

    Raises:
        FileFormatError: it looks like nothing that is known.
    """
    for candidate in READERS:
        if candidate.marks.search(text):
            return candidate
    raise FileFormatError(
        f"{where} looks like no known output: {', '.join(known.kind for known in READERS)} can be read"
    )


@dataclass(frozen=True, slots=True)
class PrintedAcceptance:
    """The acceptance in a file.

    Attributes:
        text: as ``--acceptance`` takes it.
        source: the file, the runs and the cycles behind it, in words.
    """

    text: str
    source: str


def printed_acceptance(path: Path, *, draft_length: int | None = None) -> PrintedAcceptance:
    """The acceptance in whatever an engine printed.

    Runs at several draft lengths become one text, which fits a decay to them.

    Raises:
        FileFormatError: an unknown format, or no speculation in it.
        InputError: runs that cannot be one acceptance, or a missing draft length.
    """
    text = read_text(path)
    source = Source(text, path.name, draft_length=draft_length)
    found = read_source(recognise(text, path.name), source).acceptance
    if not found:
        raise FileFormatError(f"{path.name} says nothing about accepted drafts")
    runs = found[0].label if len(found) == 1 else f"{len(found)} runs"
    counted = [record.cycles for record in found if record.cycles is not None]
    cycles = [f"{sum(counted):,} cycles"] if len(counted) == len(found) else []
    return PrintedAcceptance(_joined(found, path.name), ", ".join([path.name, runs, *cycles]))


def acceptance_text_from(path: Path, *, draft_length: int | None = None) -> str:
    """The acceptance in whatever an engine printed, as ``--acceptance`` takes it.

    Raises:
        RooflinesError: as `printed_acceptance`.
    """
    return printed_acceptance(path, draft_length=draft_length).text


def acceptance_from(path: Path, *, draft_length: int | None = None) -> Acceptance:
    """The acceptance in whatever an engine printed, as conditional rates.

    Raises:
        FileFormatError: an unknown format, or no speculation in it.
        InputError: runs that cannot be one acceptance, impossible values, or a missing draft length.
    """
    return parse_acceptance(acceptance_text_from(path, draft_length=draft_length))


def _joined(records: tuple[AcceptanceRecord, ...], where: str) -> str:
    if len(records) == 1:
        return records[0].text
    definitions = {record.definition for record in records}
    lengths = [record.draft_length for record in records]
    if definitions == {"accepted-length"} and len(set(lengths)) == len(lengths):
        return "accepted-length:" + ",".join(entry for record in records for entry in record.entries)
    listed = "; ".join(f"{record.label}: {record.text}" for record in records)
    raise InputError(
        f"{where} holds {len(records)} runs that are not one acceptance; give one of them: {listed}"
    )
